"""Shells in running jobs: decides who may open one, and records it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from corral.control.errors import Invalid, WrongState
from corral.control.jobs.jobs import own_job
from corral.control.live.unit_of_work import Caller, Work
from corral.core.counts import counted
from corral.core.model import JobState

_SHOWN_CHARS = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class ShellPlace:
    """The place where a command is run."""

    job_id: str
    cluster: str
    attempt_id: str
    rank: int


def open_shell(work: Work, caller: Caller, ref: str, *, rank: int, command: Sequence[str]) -> ShellPlace:
    """Checks that the caller may open a shell: the job's owner and operators may. A shell acts as the job does, so each
    one is in the audit log.
    """
    job = own_job(work, caller, ref)
    if job.state is not JobState.RUNNING or job.allocation is None:
        raise WrongState(f"job {job.id} is {job.state}: a shell needs a running job", state=job.state)
    grants = job.allocation.grants
    if rank >= len(grants):
        raise Invalid(f"job {job.id} has {counted(len(grants), 'instance')}, numbered from 0", field="rank")
    node = work.state.snapshot.nodes.get(grants[rank].node)
    if node is None:
        raise WrongState(f"the node of job {job.id} is gone", state=job.state)
    detail = {"attempt": job.attempt, "rank": rank, "command": " ".join(command)[:_SHOWN_CHARS]}
    work.record(caller, "job.shell-opened", job.id, owner=job.user, detail=detail)
    return ShellPlace(job_id=job.id, cluster=node.cluster, attempt_id=job.attempt_id, rank=rank)
