"""Workbenches: long-lived jobs that offer Jupyter, SSH or both. Decides whether one can start, what it offers, and
when an idle one is stopped.

A workbench is a job like all others: it waits, is stopped, started again with the same settings and deleted as they
are. What it runs is `engines/workbenches/program/`, whatever it offers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from corral.control.errors import Missing, NotFound
from corral.control.jobs import jobs
from corral.control.jobs.job_kinds import HOST_COMMAND
from corral.control.live.state import State
from corral.control.live.unit_of_work import SYSTEM, Caller, Work
from corral.control.ports import AttemptStatus, Tool, Transaction, WorkbenchStatus
from corral.control.records import JobRecord, JobSpec
from corral.core.jobs.lifecycle import StopRequested
from corral.core.model import EndReason, Job, JobKind, JobState

#: How long a workbench that says nothing new is believed to be in use.
FRESH_SECONDS = 60.0
#: Messages for the owner, by the exit code of a program that could not start.
LAUNCH_PROBLEMS: Mapping[int, str] = {
    81: "there is no Jupyter in its environment: install jupyterlab there, or create the workbench without Jupyter",
    82: "there is no SSH server in its environment: install openssh-server there, or create the workbench without SSH",
    83: "there is no python3 in its environment: a workbench needs one, in the image too",
    84: "Jupyter did not start: see its log",
    85: "the SSH server did not start: see its log",
    86: "SSH logs in as the account that it runs as, and that account may not log in: ask an operator for one of your "
    "own (local.run_as), or create the workbench without SSH",
    87: "its Jupyter could not be opened for the server, which is on another machine: see its log",
    88: "the python3 in its environment is older than 3.9: name a virtual environment that has a later one",
    89: "it was killed while it started, as happens to what has too little memory: ask for more (--memory 4G)",
}
NO_SSH_THERE = (
    "workbenches in pods offer no SSH: create it without SSH, and log in with corral shell NAME, "
    "or name another cluster"
)
_WHAT_TO_DO = {
    Tool.JUPYTER: (
        "there is no Jupyter in the environment: install it (pip install jupyterlab), name a virtual environment or an "
        "image that has it, or leave Jupyter out"
    ),
    Tool.SSHD: (
        "there is no SSH server on the node: install it (openssh-server), use an image that has it, or leave SSH out; "
        "in pods of Kubernetes there is corral shell instead"
    ),
}
_FIELDS = {Tool.JUPYTER: "jupyter", Tool.SSHD: "ssh"}


# ---------------------------------------------------------------- what one is


def is_workbench(record: JobRecord) -> bool:
    """A task holds GPUs as a job of the same kind, but is none."""
    return record.job.kind is JobKind.WORKBENCH and record.spec.task is None


def is_hosted(spec: JobSpec) -> bool:
    """Whether it offers something; a workbench of an earlier version may run a program of its owner's own."""
    return spec.command == HOST_COMMAND


def base_url(job_id: str) -> str:
    """The path of the workbench's Jupyter on this server."""
    return f"/workbenches/{job_id}/jupyter/"


def needed_tools(spec: JobSpec) -> list[Tool]:
    """The tools that must be installed on the node. With an image none: a missing one shows when the job runs."""
    if spec.image is not None:
        return []
    return [tool for tool, wanted in ((Tool.JUPYTER, spec.jupyter), (Tool.SSHD, spec.ssh)) if wanted]


def host_settings(record: JobRecord, *, listen: str, ports: tuple[int, int], is_elsewhere: bool) -> dict[str, Any]:
    """The settings for the program in the workbench. On another machine than the server's, its Jupyter listens, too."""
    spec = record.spec
    return {
        "base_url": base_url(record.job.id),
        "jupyter": spec.jupyter,
        "ssh": spec.ssh,
        # In an image the paths of the node mean nothing.
        "venv": spec.venv if spec.image is None else None,
        "workdir": spec.workdir,
        "ssh_listen": listen,
        "ssh_ports": list(ports),
        "relay": {"listen": listen, "ports": list(ports)} if is_elsewhere else None,
    }


def allowed_keys(tx: Transaction, record: JobRecord) -> list[str]:
    """The SSH keys that can log in: those of its owner, and none while the owner may not sign in."""
    owner = tx.people.user(record.job.user)
    if not record.spec.ssh or owner is None or owner.disabled:
        return []
    return [key.public_key for key in tx.ssh_keys.of_user(record.job.user)]


# ---------------------------------------------------------------- use cases


def create(
    work: Work, caller: Caller, draft: jobs.JobDraft, missing: Sequence[Tool], *, ssh_if_possible: bool = False
) -> JobRecord:
    """A new workbench that waits for its start, or for its turn. `missing` is what was not found on the node. With
    `ssh_if_possible`, SSH is switched off instead of refused where it cannot be offered."""
    spec = replace(draft.spec, command=HOST_COMMAND)
    if ssh_if_possible and not _offers_ssh(work, caller.name, spec, missing):
        spec, missing = replace(spec, ssh=False), [tool for tool in missing if tool is not Tool.SSHD]
    _check(work, caller, caller.name, spec, missing)
    (record,) = jobs.submit(work, caller, [replace(draft, spec=spec, kind=JobKind.WORKBENCH)])
    return record


def start(work: Work, caller: Caller, ref: str, missing: Sequence[Tool]) -> Job:
    """Again, with the settings that it was created with."""
    job = own_workbench(work, caller, ref)
    _check(work, caller, job.user, work.jobs.spec(job.id), missing)
    return jobs.start(work, caller, job.id)


def own_workbench(work: Work, caller: Caller, ref: str) -> Job:
    job = jobs.own_job(work, caller, ref)
    if not is_workbench(JobRecord(job=job, spec=work.jobs.spec(job.id))):
        raise NotFound(f"there is no workbench {ref!r}", field="workbench")
    return job


def _offers_ssh(work: Work, owner: str, spec: JobSpec, missing: Sequence[Tool]) -> bool:
    """Whether the owner has a key and the node an SSH server; of an image that is not known before it runs."""
    return spec.image is None and Tool.SSHD not in missing and bool(work.tx.ssh_keys.of_user(owner))


def _check(work: Work, caller: Caller, owner: str, spec: JobSpec, missing: Sequence[Tool]) -> None:
    """Refused before it waits for GPUs that it could not use."""
    if spec.ssh and not work.tx.ssh_keys.of_user(owner):
        whose = "you have" if caller.name == owner else f"{owner} has"
        raise Missing(
            f"SSH needs a key, and {whose} none registered: add one with corral key add FILE.pub, or leave SSH out",
            field="ssh",
        )
    for tool in missing:
        raise Missing(_WHAT_TO_DO[tool], field=_FIELDS[tool], program=tool.value)


# ---------------------------------------------------------------- idle workbenches


@dataclass(frozen=True, kw_only=True, slots=True)
class Idle:
    """A workbench that was seen unused."""

    job_id: str
    attempt: int
    idle_seconds: float


def idle_seconds(status: WorkbenchStatus, now: float) -> float:
    """The seconds since the workbench was last used. Its status is valid for a short time only, and never for the
    future.
    """
    if status.is_busy:
        return 0.0 if now - status.at < FRESH_SECONDS else now - status.at
    return max(0.0, now - min(status.used_at, status.at))


def stop_idle(work: Work, seen: Sequence[Idle]) -> None:
    """Stop workbenches that were not used for the time that their owners set. Idempotent."""
    for idle in seen:
        job = running(work.state, idle.job_id, idle.attempt)
        limit = work.jobs.spec(idle.job_id).idle_stop_seconds if job is not None else None
        if job is None or limit is None or idle.idle_seconds < limit:
            continue
        message = (
            f"stopped because it was not used for {idle_text(idle.idle_seconds)}; it was created to stop after "
            f"{idle_text(limit)} without use. Start it again when it is needed: nothing of it is lost"
        )
        work.jobs.advance(job, StopRequested(at=work.now, reason=EndReason.EVICTED, message=message))
        detail = {"attempt": job.attempt, "idle_seconds": round(idle.idle_seconds), "message": message}
        work.record(SYSTEM, "job.idle-stopped", job.id, owner=job.user, detail=detail)


def running(state: State, job_id: str, attempt: int) -> Job | None:
    job = state.snapshot.jobs.get(job_id)
    return job if job is not None and job.state is JobState.RUNNING and job.attempt == attempt else None


def idle_text(seconds: float) -> str:
    for name, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{round(seconds / size, 1):g} {name}"
    return f"{seconds:.0f} s"


# ---------------------------------------------------------------- how it ended


def explained(spec: JobSpec, status: AttemptStatus) -> AttemptStatus:
    """The status with a message for the exit code of the program in the workbench."""
    problem = LAUNCH_PROBLEMS.get(status.exit_code or 0)
    if problem is None or status.reason is not EndReason.EXIT_CODE or not is_hosted(spec):
        return status
    return replace(status, reason=EndReason.LAUNCH_ERROR, message=problem)
