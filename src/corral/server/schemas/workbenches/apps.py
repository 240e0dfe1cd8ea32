"""API schemas: apps of jobs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from corral.control.records import AppShare, JobRecord
from corral.control.workbenches import apps
from corral.core.jobs.apps import KNOWN_APPS
from corral.core.model import JobState
from corral.server.schemas.base import Body, Duration, Label, View, rfc3339, rfc3339_or_none


class AppShareView(View):
    kind: str = Field(description="group or link")
    name: str = Field(description="The group, or the id of the link.")
    created_at: str
    expires_at: str | None = Field(description="null: until it is removed.")


class AppLinkView(AppShareView):
    address: str = Field(description="The link, which is shown once. A user must be signed in to use it.")


class AppView(View):
    job_id: str
    name: str = Field(description="The job's name.")
    user: str
    state: JobState
    app: str | None = Field(description="The app, if corral knows it.")
    title: str
    ready: bool = Field(description="Whether the program accepts connections.")
    address: str = Field(description="The page; it leads through the console to an origin of its own.")
    shares: list[AppShareView] = Field(description="Shown to the job's owner and to operators only.")


class KnownAppView(View):
    name: str
    title: str
    command: list[str] = Field(description="The program that must be installed on the node or in the image.")
    socket: bool = Field(description="Whether other accounts of the node cannot connect to it.")


class AppShareCreate(Body):
    group: Label | None = Field(default=None, description="Share with this group; null: make a link.")
    lasts: Annotated[Duration, Field(gt=0)] | None = Field(
        default=None, description="Duration of the share; for a link at most 30 days, by default 1 day."
    )


def app_share_view(share: AppShare) -> AppShareView:
    return AppShareView(
        kind=share.kind.value,
        name=share.name,
        created_at=rfc3339(share.created_at),
        expires_at=rfc3339_or_none(share.expires_at),
    )


def app_view(record: JobRecord, *, ready: bool, server: str, shares: list[AppShare]) -> AppView:
    return AppView(
        job_id=record.job.id,
        name=record.job.name,
        user=record.job.user,
        state=record.job.state,
        app=record.spec.app,
        title=apps.title_of(record.spec),
        ready=ready,
        address=f"{server}{apps.address_of(record.job.id)}",
        shares=[app_share_view(share) for share in shares],
    )


def known_app_views() -> list[KnownAppView]:
    return [
        KnownAppView(name=name, title=app.title, command=list(app.command), socket=app.has_socket)
        for name, app in KNOWN_APPS.items()
    ]
