"""The server itself on the wire."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from corral.control.system.licence import Licence, LicenceState
from corral.server.schemas.base import Body, Text, View, rfc3339_or_none
from corral.server.system.isolation import Separation


class HealthView(View):
    status: str


class PartView(View):
    """One part of the server and its health."""

    name: str
    healthy: bool
    detail: str


class IsolationView(View):
    """How jobs of different users are isolated from each other and from the server."""

    separation: Separation = Field(
        description="accounts: each user has an account of the machine; shared_accounts: some users share one; "
        "single_user: jobs run as the server's own account and can change everything that it stores."
    )
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
    licence: LicenceView


def licence_view(licence: Licence) -> LicenceView:
    return LicenceView(
        state=licence.state,
        holder=licence.holder,
        expires_at=rfc3339_or_none(licence.expires_at),
        detail=licence.detail,
    )
