"""The life cycle of a job: the only place where a job's state changes.

A job is created, queued, starting (it has an allocation, its processes are not up yet), running, stopping (it was
asked to save and end), and finally completed, failed or stopped. `advance(job, event)` takes the job and one event: its
owner started it, a scheduling cycle allocated resources, its engine reports that its processes run or have ended, or a
stop, resize or move was requested. It returns the job after the event and the instructions for the engine: launch or
stop an attempt. It is pure: the caller stores the job and sends the instructions.

An attempt that ends does not always end the job. After a failure of the platform, a preemption, a resize or a move, and
after a failure of its program that its owner wants to be retried, the job goes on with another attempt, and keeps the
run time that its last checkpoint saved. An event that does not fit the
state raises `InvalidTransition`: the caller has an outdated job or a bug, and both must surface.
"""

from __future__ import annotations

from dataclasses import dataclass

from corral.core.copies import replace
from corral.core.jobs.allocation_change import asking_for, asking_least, together
from corral.core.jobs.avoidance import avoiding_failed, avoiding_named, avoiding_place
from corral.core.jobs.backoff import MOST_FAULTS, backoff_seconds, given_back_seconds
from corral.core.jobs.fresh_start import BY_PERSONS, queued_afresh
from corral.core.jobs.progress import ran_until, reached_until, saved, with_run_counted
from corral.core.jobs.retries import is_crash_loop, is_retried
from corral.core.model import Allocation, Ceiling, EndReason, Job, JobState

#: Platform failures: the job gets another attempt, and spends none of its retries. A launch error is not among them: a
#: mistyped command fails every time, and the job's owner should see that at once. If the engine cannot launch a correct
#: job, it reports the attempt as lost.
RETRIED = frozenset({EndReason.NODE_LOST, EndReason.GPU_FAILED, EndReason.LOST})
#: Interruptions for other jobs, by corral or by the underlying cluster: the job goes back to the queue and spends no
#: retry.
REQUEUED = frozenset({EndReason.PREEMPTED})
#: The same for ends that corral has not caused: the underlying cluster evicted the job from its node.
REQUEUED_BY_CLUSTER = REQUEUED | {EndReason.EVICTED}
#: A node or a GPU under the job has failed, and the next attempt avoids it.
BY_FAULTS = frozenset({EndReason.NODE_LOST, EndReason.GPU_FAILED})
#: The job exceeded a limit: the next attempt would exceed it too.
OVER_LIMITS = frozenset({EndReason.TIMED_OUT, EndReason.DISK_QUOTA})

#: Prefix of the message of a job that has its allocation, but whose engine cannot launch it yet.
NOT_TAKEN = "its cluster does not take it yet"


@dataclass(frozen=True, kw_only=True, slots=True)
class StartRequested:
    """The job's owner started it: it waits in its queue from now on."""

    at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Planned:
    """A scheduling cycle gave the job an allocation."""

    at: float
    allocation: Allocation


@dataclass(frozen=True, kw_only=True, slots=True)
class Up:
    """The processes of the attempt run."""

    at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class StopRequested:
    """A user, an operator or corral itself ends the present attempt."""

    at: float
    reason: EndReason
    #: GPUs or nodes that failed under the job; if none is named, any of those that it holds may have failed
    failed: tuple[str, ...] = ()
    #: shown to the job's owner in place of the engine's message about the end
    message: str = ""
    #: if the job is preempted: the job that starts instead
    for_job: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """The engine reports that the attempt has ended."""

    at: float
    reason: EndReason
    exit_code: int | None = None
    message: str = ""
    #: GPUs or nodes that failed under the attempt, if the engine knows them
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ResizeRequested:
    """The job gets other GPUs: the present attempt is asked to save and end, the next one starts on them."""

    at: float
    allocation: Allocation
    #: set if the job did not use the GPUs that it had
    ceiling: Ceiling | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MoveRequested:
    """The job continues on another node: the present attempt is asked to save and end, the next one starts there."""

    at: float
    allocation: Allocation
    #: the job that starts where this one ran; None for a defragmentation
    for_job: str | None = None
    #: shown to the job's owner
    message: str = ""


Event = StartRequested | Planned | Up | StopRequested | ResizeRequested | MoveRequested | Ended


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    attempt_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Stop:
    attempt_id: str
    grace_seconds: float
    #: the cluster on which an attempt was observed that belongs to no job; otherwise the cluster of the job
    cluster: str | None = None


Instruction = Launch | Stop


@dataclass(frozen=True, kw_only=True, slots=True)
class Transition:
    job: Job
    instructions: tuple[Instruction, ...] = ()


class InvalidTransition(Exception):
    """The event does not fit the state of the job."""

    def __init__(self, job: Job, event: Event) -> None:
        super().__init__(f"job {job.id} is {job.state}: {type(event).__name__} does not fit")
        self.job = job
        self.event = event


def advance(job: Job, event: Event) -> Transition:
    """The job after `event`, and the instructions for its engine. Raises InvalidTransition."""
    match event:
        case StartRequested() if job.state is JobState.CREATED or job.state.is_ended:
            return Transition(job=queued_afresh(job, event.at))
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
        case StopRequested():
            return _stop_requested(job, event)
        case ResizeRequested() if job.state in (JobState.STARTING, JobState.RUNNING):
            return _resizing(job, event)
        case MoveRequested() if job.state is JobState.RUNNING:
            return _moving(job, event)
        case ResizeRequested() if job.is_resizing and job.allocation is not None:
            # The job is being resized already: it goes to this size instead, with the same restart.
            assert {*event.allocation.gpus} <= {*job.allocation.gpus}, "no more GPUs are held for the job"
            return Transition(job=replace(job, next_allocation=event.allocation))
        case Ended() if job.state in (JobState.STARTING, JobState.RUNNING):
            return Transition(job=_ended_by_itself(job, event))
        case Ended() if job.state is JobState.STOPPING and _goes_on_resized(job, event):
            return _resized(job, event)
        case Ended() if job.state is JobState.STOPPING:
            return Transition(job=_ended_by_stop(job, event))
        case _:
            raise InvalidTransition(job, event)


def _stop_requested(job: Job, event: StopRequested) -> Transition:
    """The first stop decides how the job ends, unless a later one outranks it. Raises InvalidTransition."""
    match job.state:
        case JobState.CREATED | JobState.QUEUED:
            return Transition(job=_over(job, JobState.STOPPED, event.at, event.reason, message=event.message))
        case JobState.STARTING | JobState.RUNNING:
            stopping = replace(
                job,
                state=JobState.STOPPING,
                reached_seconds=reached_until(job, event.at),
                stopping_for=event.reason,
                message=event.message,
                preempted_for=event.for_job,
            )
            return Transition(
                job=avoiding_named(stopping, event.reason, event.failed),
                instructions=(Stop(attempt_id=job.attempt_id, grace_seconds=job.grace_seconds),),
            )
        case JobState.STOPPING if job.is_resizing:
            # Any other stop outranks a resize, after which the job would go on.
            stopping = replace(
                job,
                reached_seconds=reached_until(job, event.at),
                stopping_for=event.reason,
                message=event.message,
                next_allocation=None,
            )
            return Transition(job=avoiding_named(stopping, event.reason, event.failed))
        case JobState.STOPPING if event.reason in BY_PERSONS and job.stopping_for not in BY_PERSONS:
            # A stop by a user or an operator outranks one by corral: the job must not be started again by itself.
            return Transition(job=replace(job, stopping_for=event.reason, message=event.message))
        case JobState.STOPPING if event.reason in BY_FAULTS and job.stopping_for is event.reason:
            # Another GPU or node failed while the attempt ends: the next attempt must avoid that too.
            return Transition(job=avoiding_named(job, event.reason, event.failed))
        case _:
            raise InvalidTransition(job, event)


def message_when_taken(job: Job) -> str:
    """The job's message once its engine has launched it."""
    return "" if job.message.startswith(NOT_TAKEN) else job.message


def _planned(job: Job, event: Planned) -> Transition:
    starting = replace(
        asking_for(job, event.allocation),
        state=JobState.STARTING,
        attempt=job.attempt + 1,
        allocation=event.allocation,
        allocated_at=event.at,
        started_at=None,
        preempted_for=None,
        hung_since=None,
        slow_since=None,
    )
    return Transition(job=starting, instructions=(Launch(attempt_id=starting.attempt_id),))


def _resizing(job: Job, event: ResizeRequested) -> Transition:
    """The GPUs of both attempts are held until the first one has ended, so that no other job gets them."""
    assert job.allocation is not None
    both = together(job.allocation, event.allocation)
    stopping = replace(
        asking_for(job, both),
        state=JobState.STOPPING,
        stopping_for=EndReason.RESIZED,
        next_allocation=event.allocation,
        allocation=both,
        ceiling=event.ceiling or job.ceiling,
    )
    return Transition(job=stopping, instructions=(Stop(attempt_id=job.attempt_id, grace_seconds=job.grace_seconds),))


def _moving(job: Job, event: MoveRequested) -> Transition:
    """Both places are held until the attempt has ended, so that no other job gets the new place."""
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
    """A platform failure may have hit the allocation of the next attempt: then the job is planned again.

    The exit code does not matter: a program that was warned may save and exit with 0 without being complete.
    """
    if not job.is_resizing or job.next_allocation is None or event.reason in RETRIED:
        return False
    # A job that is moved gets its full time limit again, like one that was preempted.
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
        hung_since=None,
        slow_since=None,
    )
    return Transition(job=starting, instructions=(Launch(attempt_id=starting.attempt_id),))


def _resized_run(job: Job, at: float) -> Job:
    """The run continues with another size: the time limit does not start again."""
    assert job.next_allocation is not None
    return replace(
        asking_for(job, job.next_allocation), resized_at=at, ran_seconds=ran_until(job, at), utilization=None
    )


def _moved_run(job: Job, at: float) -> Job:
    """The next attempt resumes from the last checkpoint, like that of a preempted job."""
    return replace(with_run_counted(job, at), message="")


def _ended_by_itself(job: Job, event: Ended) -> Job:
    if event.reason in RETRIED:
        return _after_fault(avoiding_named(job, event.reason, event.failed), event, event.reason)
    if event.reason in REQUEUED_BY_CLUSTER:
        given_back = job.given_back + 1 if job.started_at is None else 0
        return _requeued(job, event, given_back=given_back)
    succeeded = event.reason is EndReason.EXIT_CODE and event.exit_code == 0
    if not succeeded and job.max_retries and is_retried(job, event.reason, event.exit_code):
        return _after_failure(job, event)
    state = JobState.COMPLETED if succeeded else JobState.FAILED
    return _over(job, state, event.at, event.reason, event.exit_code, event.message)


def _ended_by_stop(job: Job, event: Ended) -> Job:
    reason = job.stopping_for or event.reason
    if reason in (EndReason.RESIZED, EndReason.MOVED):
        # The job cannot go on as requested: the platform failed, or the time limit is reached.
        reason = event.reason if event.reason in RETRIED else EndReason.TIMED_OUT
    event = replace(event, message=job.message or event.message)
    if reason in REQUEUED:
        return _requeued(job, event)
    if reason in RETRIED:
        return _after_fault(job, event, reason)
    if reason is EndReason.HUNG:
        return _after_failure(job, replace(event, reason=reason))
    state = JobState.FAILED if reason in OVER_LIMITS else JobState.STOPPED
    return _over(job, state, event.at, reason, event.exit_code, event.message)


def _after_fault(job: Job, event: Ended, reason: EndReason) -> Job:
    """After a platform failure the job is tried again, with a back-off that doubles while no attempt saves anything.

    A job without retries must not run twice: once its program has started, it is not tried again. After `MOST_FAULTS`
    failures in a row the job fails, and its owner sees the reason.
    """
    if not job.max_retries and job.started_at is not None:
        message = f"{event.message or reason}; it is not tried again, as it asks for (no retries)"
        return _over(job, JobState.FAILED, event.at, reason, event.exit_code, message)
    faults = 1 if _has_gained(job) else job.faults + 1
    if faults > MOST_FAULTS:
        message = (
            f"{event.message or reason}; given up after {MOST_FAULTS} platform failures in a row. None of the "
            "job's retries was used: start it again when the cause is fixed"
        )
        return _over(job, JobState.FAILED, event.at, reason, event.exit_code, message)
    return _requeued(avoiding_failed(job, reason), event, faults=faults)


def _after_failure(job: Job, event: Ended) -> Job:
    """After a failure of the program the job is tried again on another node, with a back-off, while retries are left
    and the program does not only crash."""
    failures = job.retries + 1
    cause = event.message or f"{event.reason} {event.exit_code}".replace("_", " ")
    if job.retries >= job.max_retries:
        used = "its only retry was" if job.max_retries == 1 else f"all {job.max_retries} retries were"
        message = f"{cause}; {used} used"
        return _over(job, JobState.FAILED, event.at, event.reason, event.exit_code, message)
    if is_crash_loop(job, event.at):
        left = job.max_retries - job.retries
        others = "the last retry is" if left == 1 else f"the other {left} retries are"
        message = f"{cause}; a crash loop: it failed {failures} times within seconds of its start, so {others} not used"
        return _over(job, JobState.FAILED, event.at, event.reason, event.exit_code, message)
    pause = backoff_seconds(failures)
    message = f"{cause}; retry {failures} of {job.max_retries} follows in {pause:.0f} seconds or later"
    requeued = _requeued(avoiding_place(job), replace(event, message=message))
    return replace(requeued, retries=failures, not_before=event.at + pause)


def _has_gained(job: Job) -> bool:
    """Whether the attempt has saved anything: then the next one starts from there."""
    return saved(job) > job.saved_seconds


def _requeued(job: Job, event: Ended, *, faults: int | None = None, given_back: int = 0) -> Job:
    pause = given_back_seconds(given_back) if faults is None else backoff_seconds(faults)
    return replace(
        asking_least(with_run_counted(job, event.at)),
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
        asking_least(job),
        # A completed job starts from the beginning when it is started again.
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
