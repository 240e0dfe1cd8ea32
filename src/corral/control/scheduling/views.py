"""Views of the scheduler: answers from the state alone, without a read from the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from corral.control.errors import Refusal
from corral.control.jobs.admission import admit, settled
from corral.control.live.state import State
from corral.core.jobs.lifecycle import StartRequested, advance
from corral.core.model import Job, Queue
from corral.core.people.scores import score_at
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.explain.reasons import Explanation, explain, line_order, place_text
from corral.core.scheduling.forecast.run_time_model import predicted
from corral.core.scheduling.limits.guarantees import GuaranteeUse, guarantee_use
from corral.core.scheduling.plan.plan import Preemption, Start
from corral.core.snapshot.changes import DropJob, PutJob
from corral.core.snapshot.replica import SnapshotCopy, copy_of
from corral.core.snapshot.waiting_lines import Line, LineKey


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueView:
    queue: Queue
    running: int
    queued: int
    guarantee_use: GuaranteeUse


@dataclass(frozen=True, kw_only=True, slots=True)
class LinePlace:
    position: int
    job: Job
    score: float
    detail: str
    #: None while it is not promised, infinite if it is unknown
    planned_start: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class LineView:
    key: LineKey
    #: the first ones, and beyond them those of the caller
    places: tuple[LinePlace, ...]
    #: how many jobs stand in it, shown or not
    length: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreView:
    user: str
    model: str
    score: float
    usage: float
    at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialRun:
    """The result of submitting a job now, without submitting it."""

    refusal: Refusal | None = None
    start: Start | None = None
    explanation: Explanation | None = None
    #: the job as it would wait, and the snapshot without it
    job: Job | None = None
    snapshot: SnapshotCopy | None = None
    #: the jobs that would be preempted
    preemptions: tuple[Preemption, ...] = ()


def why(state: State, now: float, job: Job) -> Explanation:
    """Why a job waits. `job` is the stored one; the state has the better one while it is live."""
    live = state.snapshot.jobs.get(job.id, job)
    # Its starts have been applied since; what it promises still stands.
    plan = replace(state.plan, at=now, starts=())
    return explain(state.snapshot, plan, live, now)


def try_out(state: State, now: float, job: Job) -> TrialRun:
    """Submit a job to the snapshot alone, plan, and take it out again."""
    try:
        job = settled(state, replace(job, id="j-999999999999"))
        admit(state, [job])
    except Refusal as refusal:
        return TrialRun(refusal=refusal)
    queued = predicted(state.run_times, advance(job, StartRequested(at=now)).job)
    snapshot = copy_of(state.snapshot)
    state.snapshot.apply([PutJob(job=queued)])
    try:
        plan = schedule(state.snapshot, now)
        start = next((start for start in plan.starts if start.job_id == job.id), None)
        return TrialRun(
            start=start,
            explanation=explain(state.snapshot, plan, queued, now),
            job=queued,
            snapshot=snapshot,
            preemptions=tuple(preemption for preemption in plan.preemptions if preemption.for_job == job.id),
        )
    finally:
        state.snapshot.apply([DropJob(id=job.id)])


def queue_views(state: State) -> list[QueueView]:
    jobs = state.job_sums()
    return [
        QueueView(
            queue=queue,
            running=jobs.queue(name).running,
            queued=jobs.queue(name).length,
            guarantee_use=guarantee_use(state.snapshot, queue),
        )
        for name, queue in sorted(state.snapshot.queues.items())
    ]


def queue_order(state: State, now: float, name: str, limit: int = 500, whose: str = "") -> list[LineView]:
    """The lines of a queue in their real order, with the reason for each place.

    Of a long line the first jobs are shown; beyond them only those of `whose`, as many again at most.
    """
    planned = {item.job_id: item.at for item in state.plan.planned}
    lines = []
    for key in sorted(key for key in state.snapshot.lines if key.queue == name):
        places = []
        line = state.snapshot.lines[key]
        for position, job in _shown_jobs(line, line_order(state.snapshot, key, now), limit, whose):
            score = state.snapshot.score(job.user, key.model, now)
            places.append(
                LinePlace(
                    position=position,
                    job=job,
                    score=score,
                    detail=place_text(state.snapshot, job, score),
                    planned_start=planned.get(job.id),
                )
            )
        lines.append(LineView(key=key, places=tuple(places), length=len(line.jobs)))
    return lines


def _shown_jobs(line: Line, order: Iterable[Job], limit: int, whose: str) -> Iterator[tuple[int, Job]]:
    """Ends when no more jobs are to be shown: long lines are read often."""
    left = sum(job.user == whose for job in line.jobs.values()) if line.has_jobs_of(whose) else 0
    shown = 0
    for position, job in enumerate(order, start=1):
        left -= job.user == whose
        if position <= limit or job.user == whose:
            shown += 1
            yield position, job
        if position >= limit and (not left or shown >= 2 * limit):
            return


def waiting_for_others(state: State, name: str) -> int:
    """Jobs of a queue that come after others, and so stand in no line."""
    in_line = sum(len(line.jobs) for key, line in state.snapshot.lines.items() if key.queue == name)
    return state.snapshot.queued_in(name) - in_line


def score_views(state: State, now: float) -> list[ScoreView]:
    return [
        ScoreView(
            user=user,
            model=model,
            score=score_at(score, now, state.snapshot.score_time_constant),
            usage=score.usage,
            at=now,
        )
        for (user, model), score in sorted(state.snapshot.scores.items())
    ]
