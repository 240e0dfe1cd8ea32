"""API schemas: workbenches: requests, and the addresses of a workbench."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from corral.control.jobs.job_kinds import HOST_COMMAND
from corral.control.jobs.jobs import JobDraft
from corral.control.live.unit_of_work import Caller
from corral.control.ports import WorkbenchStatus
from corral.control.records import JobRecord
from corral.control.workbenches.workbenches import base_url, is_hosted
from corral.core.model import JobState
from corral.server.jobs.drafts import draft_of
from corral.server.schemas.base import Duration, Label, Number, View, number
from corral.server.schemas.jobs.job_bodies import Directory, JobCreate, JobSettings
from corral.server.schemas.jobs.jobs import JobView, job_view

#: Fields that a workbench has and other jobs do not have.
_OWN_FIELDS = frozenset({"jupyter", "ssh", "idle_stop"})


class WorkbenchCreate(JobSettings):
    """A workbench to create. corral decides which programs it runs."""

    name: Label
    jupyter: bool = Field(default=True, description="Offer JupyterLab through this server.")
    ssh: bool | None = Field(
        default=None,
        description="Allow the owner's registered SSH keys to log in; null: yes, if there is a key and the node has an "
        "SSH server. With an image, null means no.",
    )
    workdir: Directory | None = Field(
        default=None,
        description="Working directory; default: a directory of its own, kept until the workbench is deleted.",
    )
    idle_stop: Annotated[Duration, Field(gt=0)] | None = Field(
        default=None, description="Stop the workbench after so much time without use."
    )


class JupyterView(View):
    ready: bool
    address: str = Field(
        description="Redirects a signed-in browser to the workbench's own origin; programs send a token."
    )


class SshView(View):
    ready: bool
    host: str
    port: int | None
    account: str | None = Field(description="Account of the operating system to log in with.")
    host_key: str | None = Field(description="The SSH server's host key, for a known_hosts file.")
    command: str | None = Field(description="To be copied.")
    sessions: int


class WorkbenchView(View):
    id: str
    name: str
    user: str
    state: JobState
    message: str
    jupyter: JupyterView | None
    ssh: SshView | None
    idle_seconds: Number | None = Field(description="Time without use; null while the workbench does not run.")
    idle_stop_seconds: Number | None
    image: str | None
    venv: str | None
    job: JobView


def workbench_draft(body: WorkbenchCreate) -> JobDraft:
    given = body.model_dump(exclude_unset=True, exclude=set(_OWN_FIELDS))
    draft = draft_of(JobCreate.model_validate({**given, "command": list(HOST_COMMAND)}))
    spec = replace(draft.spec, jupyter=body.jupyter, ssh=body.ssh is not False, idle_stop_seconds=body.idle_stop)
    return replace(draft, spec=spec)


def workbench_view(
    record: JobRecord,
    caller: Caller,
    status: WorkbenchStatus | None,
    *,
    idle_seconds: float | None,
    server: str,
    ssh_host: str,
) -> WorkbenchView:
    """`server` is the address of this server as the caller knows it, `ssh_host` the host for SSH."""
    job, spec = record.job, record.spec
    offers = is_hosted(spec)
    return WorkbenchView(
        id=job.id,
        name=job.name,
        user=job.user,
        state=job.state,
        message=job.message,
        jupyter=JupyterView(ready=status is not None and status.jupyter_ready, address=f"{server}{base_url(job.id)}")
        if offers and spec.jupyter
        else None,
        ssh=_ssh_view(status, ssh_host) if offers and spec.ssh else None,
        idle_seconds=None if idle_seconds is None else round(idle_seconds),
        idle_stop_seconds=None if spec.idle_stop_seconds is None else number(spec.idle_stop_seconds),
        image=spec.image,
        venv=spec.venv,
        job=job_view(record, caller),
    )


def _ssh_view(status: WorkbenchStatus | None, host: str) -> SshView:
    if status is None or status.ssh_port is None:
        return SshView(ready=False, host=host, port=None, account=None, host_key=None, command=None, sessions=0)
    return SshView(
        ready=status.ssh_ready,
        host=host,
        port=status.ssh_port,
        account=status.account,
        host_key=status.ssh_host_key,
        command=f"ssh -p {status.ssh_port} {status.account}@{host}" if status.ssh_ready else None,
        sessions=status.ssh_sessions,
    )
