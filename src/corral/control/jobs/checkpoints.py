"""Checkpoints of jobs: the environment that a program gets at its launch, when it saved, and requests to save now.

What a checkpoint is and which are good is decided by the library that writes them; here it is only passed on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from corral.control.errors import NotFound, WrongState
from corral.control.jobs.jobs import own_job
from corral.control.live.unit_of_work import SYSTEM, Caller, Work
from corral.control.ports import Checkpoints, LaunchOrder, SavedWork
from corral.control.records import JobSpec
from corral.control.system.policies import CheckpointPolicy
from corral.core.jobs.progress import saved_before
from corral.core.model import Job, JobState
from corral.core.scheduling.forecast.run_time_model import predicted

INTERVAL = "CORRAL_CHECKPOINT_INTERVAL_SECONDS"
KEEP = "CORRAL_CHECKPOINT_KEEP"
RESUME_FROM = "CORRAL_RESUME_FROM"
LIBRARY_PATH = "PYTHONPATH"


@dataclass(frozen=True, kw_only=True, slots=True)
class Saved:
    """A job's program was seen to have saved; or what it had saved is gone, if there is no time."""

    job_id: str
    at: float | None


def checkpoint_env(policy: CheckpointPolicy, spec: JobSpec) -> dict[str, str]:
    """The environment variables for saving. Values that the job's owner set are kept: how often, how many, own
    modules."""
    if not policy.enabled:
        return {}
    interval = spec.checkpoint_interval_seconds or policy.interval_seconds
    env = {
        INTERVAL: spec.env.get(INTERVAL) or f"{interval:.12g}",
        KEEP: spec.env.get(KEEP) or str(policy.keep),
    }
    if policy.library is not None:
        own = [part for part in spec.env.get(LIBRARY_PATH, "").split(":") if part != policy.library]
        # First, so that the helper is the platform's own version; it hides nothing else.
        env[LIBRARY_PATH] = ":".join([policy.library, *own] if any(own) else [policy.library])
    return env


def resuming(order: LaunchOrder, saved: SavedWork | None) -> LaunchOrder:
    """The order of an attempt that resumes from this checkpoint. Without one, the owner's own setting stays."""
    return order if saved is None else replace(order, env={**order.env, RESUME_FROM: saved.path})


def note_saved(work: Work, seen: Sequence[Saved]) -> None:
    """Keep when programs last saved. For a running attempt it changes no plan of its own: what would be lost is looked
    up when it matters. A checkpoint of an attempt that has ended shortens what is left of its job."""
    for saved in seen:
        job = work.jobs.get(saved.job_id)
        if job is None or job.checkpointed_at == saved.at:
            continue
        work.jobs.edit(job, _after_save(work, job, saved.at))
        if saved.at is not None and saved.at > (job.checkpointed_at or 0.0):
            detail = {"attempt": job.attempt, "at": saved.at}
            work.record(SYSTEM, "job.checkpointed", job.id, owner=job.user, detail=detail)


def _after_save(work: Work, job: Job, at: float | None) -> Job:
    """The job after its last checkpoint is known to be of that time."""
    after = replace(job, checkpointed_at=at)
    if at is None or not _has_ended_since(job, at):
        return after
    attempts = work.tx.attempts.of_job(job.id)
    spans = [(item.started_at, item.ended_at or at) for item in attempts if item.started_at is not None]
    since, until = max((span for span in spans if span[0] <= at), default=(at, at))
    after = replace(after, saved_seconds=saved_before(job, since, min(at, until)))
    return predicted(work.state.run_times, after) if after.state is JobState.QUEUED else after


def _has_ended_since(job: Job, at: float) -> bool:
    """Whether the attempt that saved at that time has ended, and what it saved shortens the next one."""
    if job.state.is_active:
        # Before the owner started the job, its attempts do not count.
        return job.attained_seconds > 0 and (job.started_at is None or at < job.started_at)
    # A completed job starts from the beginning when it is started again.
    return job.state in (JobState.FAILED, JobState.STOPPED)


def job_to_save(work: Work, caller: Caller, ref: str) -> Job:
    """The running job that the caller may ask to save."""
    job = own_job(work, caller, ref)
    if job.state is not JobState.RUNNING:
        raise WrongState(f"job {job.id} is {job.state}: only a running one can save", state=job.state)
    return job


def ask_to_save(job: Job, checkpoints: Checkpoints) -> None:
    """Ask a job's program to save now. It does so after its present step, if it uses the helper. Never in the
    controller's thread: the job can change that directory."""
    try:
        checkpoints.request(job.id)
    except OSError as error:
        reason = error.strerror or str(error)
        raise WrongState(f"job {job.id} cannot be asked: its checkpoint directory: {reason}") from error


def note_request(work: Work, caller: Caller, job: Job) -> Job:
    """Record that a job's program was asked to save."""
    found = work.jobs.get(job.id)
    if found is None:
        raise NotFound(f"job {job.id} was deleted meanwhile", field="job")
    work.record(caller, "job.checkpoint-requested", job.id, owner=job.user, detail={"attempt": job.attempt})
    return found
