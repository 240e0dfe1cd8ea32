"""A job's life: the one place where a state changes.

`advance(job, event)` gives the job after the event and what must be done about it. An event that does not fit
the state is an error: the caller either has a stale picture or a bug, and both must surface.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from corral.core.jobs.backoff import MOST_FAULTS, backoff_seconds, given_back_seconds
from corral.core.jobs.progress import ran_until, reached_until, saved, with_run_counted
from corral.core.model import Allocation, Ceiling, EndReason, Job, JobState

#: Faults of the platform: the job gets another attempt, and spends none of its retries. A launch error is not among
#: them: a mistyped command fails every time, and its owner should hear of it at once. What keeps an engine from
#: launching although the job is right is reported as lost.
RETRIED = frozenset({EndReason.NODE_LOST, EndReason.GPU_FAILED, EndReason.LOST})
#: Interruptions for others, by corral or by the cluster that it runs on: the job goes back to the queue and spends no
#: retry.
REQUEUED = frozenset({EndReason.PREEMPTED})
#: Something under the job has failed, and the next attempt keeps away from it.
BY_FAULTS = frozenset({EndReason.NODE_LOST, EndReason.GPU_FAILED})
#: It took more than it may: the next attempt would, too.
OVER_LIMITS = frozenset({EndReason.TIMED_OUT, EndReason.DISK_QUOTA})
#: A person's word: it ends the job for good.
BY_PERSONS = frozenset({EndReason.STOPPED_BY_USER, EndReason.STOPPED_BY_OPERATOR})

#: How the message begins of a job that has its place, and whose engine cannot launch it yet.
NOT_TAKEN = "its cluster does not take it yet"


@dataclass(frozen=True, kw_only=True, slots=True)
class StartRequested:
    """Its owner wants it to run: from now on it waits in its queue."""

    at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Planned:
    """A scheduling cycle gave it an allocation."""

    at: float
    allocation: Allocation


@dataclass(frozen=True, kw_only=True, slots=True)
class Up:
    """Its processes run."""

    at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class StopRequested:
    """Somebody, or corral itself, ends the present attempt."""

    at: float
    reason: EndReason
    #: GPUs or nodes that failed under it; none named means that it may be anything it holds
    failed: tuple[str, ...] = ()
    #: in words for its owner; it outranks what the engine says about the end
    message: str = ""
    #: when it is preempted: the job that starts instead
    for_job: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """The attempt is over, as its engine reports it."""

    at: float
    reason: EndReason
    exit_code: int | None = None
    message: str = ""
    #: GPUs or nodes that failed under it, where the engine can tell
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ResizeRequested:
    """It shall go on with other GPUs: the present attempt is told to save and end, the next one begins on them."""

    at: float
    allocation: Allocation
    #: set when it did not use what it had
    ceiling: Ceiling | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MoveRequested:
    """It shall go on elsewhere: the present attempt is told to save and end, the next one begins there."""

    at: float
    allocation: Allocation
    #: who starts where it ran
    for_job: str
    #: in words for its owner
    message: str = ""


Event = StartRequested | Planned | Up | StopRequested | ResizeRequested | MoveRequested | Ended


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    attempt_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Stop:
    attempt_id: str
    grace_seconds: float
    #: where it was seen, of one that no job holds; else it is where its job is
    cluster: str | None = None


Instruction = Launch | Stop


@dataclass(frozen=True, kw_only=True, slots=True)
class Transition:
    job: Job
    instructions: tuple[Instruction, ...] = ()


class InvalidTransition(Exception):
    """The event does not fit the state that the job is in."""

    def __init__(self, job: Job, event: Event) -> None:
        super().__init__(f"job {job.id} is {job.state}: {type(event).__name__} does not fit")
        self.job = job
        self.event = event


def advance(job: Job, event: Event) -> Transition:
    """The job after `event`, and what must be done about it."""
    match event:
        case StartRequested() if job.state is JobState.CREATED or job.state.is_ended:
            return Transition(job=_queued_afresh(job, event.at))
        case Planned() if job.state is JobState.QUEUED:
            return _planned(job, event)
        case Up() if job.state is JobState.STARTING:
            up = replace(
                job, state=JobState.RUNNING, started_at=event.at, given_back=0, message=message_when_taken(job)
            )
            return Transition(job=up)
        case Up() if job.state is JobState.STOPPING and job.started_at is None:
            # The stop overtook the start; it stays a stop, but the run time counts.
            return Transition(job=replace(job, started_at=event.at))
        case StopRequested() if job.state in (JobState.CREATED, JobState.QUEUED):
            return Transition(job=_over(job, JobState.STOPPED, event.at, event.reason, message=event.message))
        case StopRequested() if job.state in (JobState.STARTING, JobState.RUNNING):
            stopping = replace(
                job,
                state=JobState.STOPPING,
                reached_seconds=reached_until(job, event.at),
                stopping_for=event.reason,
                message=event.message,
                preempted_for=event.for_job,
            )
            return Transition(
                job=_told_what_failed(stopping, event),
                instructions=(Stop(attempt_id=job.attempt_id, grace_seconds=job.grace_seconds),),
            )
        case ResizeRequested() if job.state in (JobState.STARTING, JobState.RUNNING):
            return _resizing(job, event)
        case MoveRequested() if job.state is JobState.RUNNING:
            return _moving(job, event)
        case ResizeRequested() if job.is_resizing and job.allocation is not None:
            # It is on its way to another size already: it goes to this one instead, for the same price.
            assert {*event.allocation.gpus} <= {*job.allocation.gpus}, "nothing more is held for it"
            return Transition(job=replace(job, next_allocation=event.allocation))
        case StopRequested() if job.is_resizing:
            # Whatever else ends it outranks a resize, which would let it go on.
            stopping = replace(
                job,
                reached_seconds=reached_until(job, event.at),
                stopping_for=event.reason,
                message=event.message,
                next_allocation=None,
            )
            return Transition(job=_told_what_failed(stopping, event))
        case StopRequested(reason=reason) if (
            job.state is JobState.STOPPING and reason in BY_PERSONS and job.stopping_for not in BY_PERSONS
        ):
            # A person's word outranks corral's own: the job must not come back by itself.
            return Transition(job=replace(job, stopping_for=event.reason, message=event.message))
        case StopRequested(reason=reason) if (
            job.state is JobState.STOPPING and reason in BY_FAULTS and job.stopping_for is reason
        ):
            # One more has failed while it ends: the next attempt must keep away from that too.
            return Transition(job=_told_what_failed(job, event))
        case Ended() if job.state in (JobState.STARTING, JobState.RUNNING):
            return Transition(job=_ended_by_itself(job, event))
        case Ended() if job.state is JobState.STOPPING and _goes_on_resized(job, event):
            return _resized(job, event)
        case Ended() if job.state is JobState.STOPPING:
            return Transition(job=_ended_by_stop(job, event))
        case _:
            raise InvalidTransition(job, event)


def message_when_taken(job: Job) -> str:
    """Its message once its engine has taken it."""
    return "" if job.message.startswith(NOT_TAKEN) else job.message


def _queued_afresh(job: Job, at: float) -> Job:
    return replace(
        job,
        state=JobState.QUEUED,
        queued_at=at,
        aged_from=at,
        attained_seconds=0.0,
        reached_seconds=0.0,
        preempted_for=None,
        preemptions=0,
        retries=0,
        faults=0,
        not_before=0.0,
        given_back=0,
        avoid_nodes=(),
        avoid_gpus=(),
        started_at=None,
        ended_at=None,
        resized_at=None,
        ceiling=None,
        end_reason=None,
        exit_code=None,
        message="",
    )


def _planned(job: Job, event: Planned) -> Transition:
    starting = replace(
        _asking_for(job, event.allocation),
        state=JobState.STARTING,
        attempt=job.attempt + 1,
        allocation=event.allocation,
        allocated_at=event.at,
        started_at=None,
        preempted_for=None,
    )
    return Transition(job=starting, instructions=(Launch(attempt_id=starting.attempt_id),))


def _resizing(job: Job, event: ResizeRequested) -> Transition:
    """The GPUs of both attempts are held until the first one is over, so that nobody takes what it shall get."""
    assert job.allocation is not None
    both = together(job.allocation, event.allocation)
    stopping = replace(
        _asking_for(job, both),
        state=JobState.STOPPING,
        stopping_for=EndReason.RESIZED,
        next_allocation=event.allocation,
        allocation=both,
        ceiling=event.ceiling or job.ceiling,
    )
    return Transition(job=stopping, instructions=(Stop(attempt_id=job.attempt_id, grace_seconds=job.grace_seconds),))


def _moving(job: Job, event: MoveRequested) -> Transition:
    """Both places are held until the attempt is over, so that nobody takes where it shall go on."""
    assert job.allocation is not None
    stopping = replace(
        job,
        state=JobState.STOPPING,
        reached_seconds=reached_until(job, event.at),
        stopping_for=EndReason.MOVED,
        next_allocation=event.allocation,
        allocation=together(job.allocation, event.allocation),
        preempted_for=event.for_job,
        message=event.message,
    )
    return Transition(job=stopping, instructions=(Stop(attempt_id=job.attempt_id, grace_seconds=job.grace_seconds),))


def _goes_on_resized(job: Job, event: Ended) -> bool:
    """A failure that is not the program's own may have hit what the next attempt would get: then it is planned anew.

    How the program ended says nothing: one that was warned may save and exit with 0, and is not complete.
    """
    if not job.is_resizing or job.next_allocation is None or event.reason in RETRIED:
        return False
    # One that is moved has its time limit anew, like one that was preempted.
    limit = None if job.is_moving else job.time_limit_seconds
    return event.reason is not EndReason.TIMED_OUT and (limit is None or ran_until(job, event.at) < limit)


def _resized(job: Job, event: Ended) -> Transition:
    assert job.next_allocation is not None
    starting = replace(
        _moved_run(job, event.at) if job.is_moving else _resized_run(job, event.at),
        state=JobState.STARTING,
        attempt=job.attempt + 1,
        allocation=job.next_allocation,
        next_allocation=None,
        allocated_at=event.at,
        started_at=None,
        stopping_for=None,
        preempted_for=None,
    )
    return Transition(job=starting, instructions=(Launch(attempt_id=starting.attempt_id),))


def _resized_run(job: Job, at: float) -> Job:
    """Its run goes on with another size: the time limit is not given anew."""
    assert job.next_allocation is not None
    return replace(
        _asking_for(job, job.next_allocation), resized_at=at, ran_seconds=ran_until(job, at), utilization=None
    )


def _moved_run(job: Job, at: float) -> Job:
    """Its next attempt goes on from what it has saved, like one that was preempted."""
    return replace(with_run_counted(job, at), message="")


def _asking_for(job: Job, allocation: Allocation) -> Job:
    """What an elastic job asks for is what it holds, so that limits count that."""
    if job.elastic is None:
        return job
    return replace(job, request=replace(job.request, gpus=len(allocation.grants[0].gpus)))


def _asking_least(job: Job) -> Job:
    """Without anything held, an elastic job asks for the least that it can do with."""
    if job.elastic is None:
        return job
    return replace(job, request=replace(job.request, gpus=job.elastic.min_gpus), ran_seconds=0.0, utilization=None)


def together(one: Allocation, other: Allocation) -> Allocation:
    """Both allocations of one job at once. One that is resized stays on its node, with the same CPUs and memory; one
    that is moved goes to another node."""
    (grant,), (more,) = one.grants, other.grants
    if grant.node != more.node:
        return replace(one, grants=(grant, more))
    return replace(one, grants=(replace(grant, gpus=tuple(sorted({*grant.gpus, *more.gpus}))),))


def _ended_by_itself(job: Job, event: Ended) -> Job:
    if event.reason in RETRIED:
        return _after_fault(_told_what_failed(job, event), event, event.reason)
    if event.reason in REQUEUED:
        given_back = job.given_back + 1 if job.started_at is None else 0
        return _requeued(job, event, given_back=given_back)
    succeeded = event.reason is EndReason.EXIT_CODE and event.exit_code == 0
    state = JobState.COMPLETED if succeeded else JobState.FAILED
    return _over(job, state, event.at, event.reason, event.exit_code, event.message)


def _ended_by_stop(job: Job, event: Ended) -> Job:
    reason = job.stopping_for or event.reason
    if reason in (EndReason.RESIZED, EndReason.MOVED):
        # It does not go on although it should: something failed, or its time is over.
        reason = event.reason if event.reason in RETRIED else EndReason.TIMED_OUT
    event = replace(event, message=job.message or event.message)
    if reason in REQUEUED:
        return _requeued(job, event)
    if reason in RETRIED:
        return _after_fault(job, event, reason)
    state = JobState.FAILED if reason in OVER_LIMITS else JobState.STOPPED
    return _over(job, state, event.at, reason, event.exit_code, event.message)


def _after_fault(job: Job, event: Ended, reason: EndReason) -> Job:
    """The platform failed, not the job: it is tried again, after longer and longer pauses while nothing is gained.

    A job that must not be run twice by itself (no retries) is not, once its program has begun. And a fault that comes
    back again and again is not the job's to wait for: its owner is told.
    """
    if not job.max_retries and job.started_at is not None:
        message = f"{event.message or reason}; it is not tried again, as it asks for (no retries)"
        return _over(job, JobState.FAILED, event.at, reason, event.exit_code, message)
    faults = 1 if _has_gained(job) else job.faults + 1
    if faults > MOST_FAULTS:
        message = (
            f"{event.message or reason}; given up after {MOST_FAULTS} faults of the platform in a row. None of the "
            "job's retries was used: start it again when the cause is mended"
        )
        return _over(job, JobState.FAILED, event.at, reason, event.exit_code, message)
    return _requeued(_avoiding(job, reason), event, faults=faults)


def _has_gained(job: Job) -> bool:
    """Whether the attempt has saved anything: then the next one goes on from there, and is a step further."""
    return saved(job) > job.saved_seconds


def _told_what_failed(job: Job, event: StopRequested | Ended) -> Job:
    if event.reason is EndReason.GPU_FAILED:
        return replace(job, avoid_gpus=_with(job.avoid_gpus, event.failed))
    if event.reason is EndReason.NODE_LOST:
        return replace(job, avoid_nodes=_with(job.avoid_nodes, event.failed))
    return job


def _avoiding(job: Job, reason: EndReason) -> Job:
    """The next attempt keeps away from what failed: what was named, or else everything that it held."""
    if job.allocation is None:
        return job
    gpus, nodes = job.allocation.gpus, [grant.node for grant in job.allocation.grants]
    # A job is never placed on what it avoids, so what it holds and avoids was named while it ran.
    if reason is EndReason.GPU_FAILED and not {*gpus} & {*job.avoid_gpus}:
        return replace(job, avoid_gpus=_with(job.avoid_gpus, gpus))
    if reason is EndReason.NODE_LOST and not {*nodes} & {*job.avoid_nodes}:
        return replace(job, avoid_nodes=_with(job.avoid_nodes, nodes))
    return job


def _with(names: tuple[str, ...], more: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*names, *more}))


def _requeued(job: Job, event: Ended, *, faults: int | None = None, given_back: int = 0) -> Job:
    pause = given_back_seconds(given_back) if faults is None else backoff_seconds(faults)
    return replace(
        _asking_least(with_run_counted(job, event.at)),
        state=JobState.QUEUED,
        queued_at=event.at,
        faults=job.faults if faults is None else faults,
        not_before=event.at + pause if pause else 0.0,
        given_back=given_back,
        allocation=None,
        next_allocation=None,
        allocated_at=None,
        started_at=None,
        stopping_for=None,
        preemptions=job.preemptions + (job.stopping_for in REQUEUED),
        message=event.message,
    )


def _over(
    job: Job,
    state: JobState,
    at: float,
    reason: EndReason,
    exit_code: int | None = None,
    message: str = "",
) -> Job:
    return replace(
        _asking_least(job),
        # One that has completed begins anew when it is started again.
        saved_seconds=0.0 if state is JobState.COMPLETED else saved(job),
        state=state,
        ended_at=at,
        end_reason=reason,
        exit_code=exit_code,
        message=message,
        allocation=None,
        next_allocation=None,
        allocated_at=None,
        stopping_for=None,
        preempted_for=None,
        pinned_at=None,
    )
