"""API schemas: the server itself."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from pydantic import Field

from corral.control.system.licence import Licence, LicenceState
from corral.server.schemas.base import Body, Text, View, rfc3339, rfc3339_or_none
from corral.server.system.isolation import Separation
from corral.server.system.parts import Part, PartKind


class HealthView(View):
    status: str


class PartView(View):
    """One part of the server and its health."""

    name: str
    healthy: bool
    detail: str


class PartStatusView(View):
    """One part of the platform, as the status page shows it."""

    name: str
    kind: PartKind
    cluster: str | None = Field(description="The cluster that it serves; null if it serves the whole installation.")
    node: str | None = Field(description="The node on which a daemon runs.")
    healthy: bool
    detail: str = Field(description="Description of the problem; of a healthy part, a note.")
    since: str = Field(description="Since when it is healthy, or not, as far as this server has seen.")
    restarts: int = Field(description="Number of restarts, and of recoveries after a failure.")
    last_error: str | None = Field(description="Kept after the part works again.")
    last_error_at: str | None
    log: str | None = Field(description="The path of its last log lines; null if it has no log on the server.")


class IsolationView(View):
    """Isolation of the jobs of different users from each other and from the server."""

    separation: Separation = Field(
        description="accounts: each user has an account of the machine; shared_accounts: some users share one; "
        "single_user: jobs run as the server's own account and can change everything that it stores."
    )
    detail: str


class GpuSharesView(View):
    """Whether a job with a share of a GPU (`gpus` below 1) is limited to it."""

    enforced: bool
    detail: str


class LicenceView(View):
    state: LicenceState
    holder: str | None
    expires_at: str | None
    detail: str


class LicencePut(Body):
    token: Annotated[Text, Field(min_length=1, max_length=4096)]


class AboutView(View):
    version: str
    build: str
    started_at: str
    uptime_seconds: float
    store: dict[str, str]
    engines: list[str]
    parts: list[PartView]
    isolation: IsolationView
    gpu_shares: GpuSharesView
    licence: LicenceView


def part_status_view(part: Part) -> PartStatusView:
    has_log = part.log is not None or part.has_own_log
    return PartStatusView(
        name=part.name,
        kind=part.kind,
        cluster=part.cluster or None,
        node=part.node or None,
        healthy=part.healthy,
        detail=part.detail,
        since=rfc3339(part.since),
        restarts=part.restarts,
        last_error=part.last_error or None,
        last_error_at=rfc3339_or_none(part.last_error_at),
        log=f"/api/v1/parts/{quote(part.name, safe='')}/log" if has_log else None,
    )


def licence_view(licence: Licence) -> LicenceView:
    return LicenceView(
        state=licence.state,
        holder=licence.holder,
        expires_at=rfc3339_or_none(licence.expires_at),
        detail=licence.detail,
    )
