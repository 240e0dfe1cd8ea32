"""Jobs that have more on the disk than a job may have: they are stopped, with the reason `disk_quota`; or `evicted`, if
what they have is temporary storage, which would end with them anyway.

How much a job has is measured elsewhere (`server/system/disk_watch.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from corral.control.live.state import State
from corral.control.live.unit_of_work import SYSTEM, Work
from corral.control.records import JobSpec
from corral.core.jobs.lifecycle import StopRequested
from corral.core.model import EndReason, Job, JobState


@dataclass(frozen=True, kw_only=True, slots=True)
class OverDisk:
    """An attempt whose job uses too much disk, with a message for its owner."""

    job_id: str
    attempt: int
    message: str
    reason: EndReason = EndReason.DISK_QUOTA
    #: how many bytes more it has than a job may have that asks for no disk of the node
    excess_bytes: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Writer:
    """A job that runs, and so may write."""

    job_id: str
    attempt: int
    attempt_id: str
    user: str
    cluster: str
    #: what it has asked for of the node's own disk; 0 also if that is not known at hand
    local_bytes: int


@dataclass(slots=True)
class Writers:
    """The jobs that write, of one state after another. An attempt that goes on keeps its `Writer`."""

    _state: State | None = None
    _changes: int = -1
    _found: Mapping[str, Writer] = field(default_factory=dict)

    def now(self, state: State) -> Mapping[str, Writer]:
        """By attempt. Returns the same mapping until the state changes."""
        if state is not self._state or state.changes != self._changes:
            known, jobs = self._found, state.snapshot.jobs
            self._found = {
                attempt_id: known.get(attempt_id) or _writer(state, job)
                for attempt_id, attempt in state.attempts.items()
                if (job := jobs[attempt.job_id]).state is JobState.RUNNING
            }
            self._state, self._changes = state, state.changes
        return self._found


def _writer(state: State, job: Job) -> Writer:
    return Writer(
        job_id=job.id,
        attempt=job.attempt,
        attempt_id=job.attempt_id,
        user=job.user,
        cluster=_cluster(state, job),
        local_bytes=_local_bytes(state, job),
    )


def stop_over(work: Work, found: Sequence[OverDisk]) -> None:
    """Stop those that still run. Doing it twice changes nothing."""
    for over in found:
        job = work.state.snapshot.jobs.get(over.job_id)
        if job is None or job.state is not JobState.RUNNING or job.attempt != over.attempt:
            continue
        if over.excess_bytes is not None and over.excess_bytes <= _asked_bytes(work.jobs.spec(job.id), job):
            continue
        work.jobs.advance(job, StopRequested(at=work.now, reason=over.reason, message=over.message))
        detail = {"attempt": job.attempt, "reason": over.reason, "message": over.message}
        work.record(SYSTEM, "job.disk-stopped", job.id, owner=job.user, detail=detail)


def _cluster(state: State, job: Job) -> str:
    assert job.allocation is not None
    node = state.snapshot.nodes.get(job.allocation.grants[0].node)
    return "" if node is None else node.cluster


def _local_bytes(state: State, job: Job) -> int:
    spec = state.specs.get(job.id)
    return 0 if spec is None else _asked_bytes(spec, job)


def _asked_bytes(spec: JobSpec, job: Job) -> int:
    return sum(mount.size_bytes for mount in spec.mounts) * job.request.nodes
