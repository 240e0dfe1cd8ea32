"""A simulated cluster: the same snapshot, scheduler, life cycle and accounting as the live system, moved by events in
virtual time.

Decides nothing itself. Callers give arrivals and how long each job really runs; they get the plans and what became of
the jobs.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from corral.core.accounting import change_usage
from corral.core.changes import Change, DropJob, PutJob, PutLastNode, PutScore
from corral.core.lifecycle import Ended, Planned, StartRequested, Up, advance
from corral.core.model import WHOLE, Allocation, EndReason, Job, JobState, Score
from corral.core.plan import Plan
from corral.core.scheduler import schedule
from corral.core.snapshot import ClusterSnapshot


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    #: queued already, when it comes out of a recorded history with its back-off and what it avoids; else still created
    job: Job
    #: how long it runs when nothing stops it
    run_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """What happened at one moment: what arrived and ended before the plan, and the plan."""

    at: float
    arrived: tuple[str, ...]
    ended: tuple[str, ...]
    plan: Plan


@dataclass(slots=True)
class Simulation:
    """Iterate it to the end, or as long as wanted; `snapshot` is as it stands between two steps."""

    snapshot: ClusterSnapshot
    arrivals: Iterable[Arrival]
    #: told every change, such as a journal under test
    observer: Callable[[list[Change]], None] = lambda changes: None
    #: every job that has ended
    finished: dict[str, Job] = field(default_factory=dict)
    allocations: list[tuple[str, float, float, Allocation]] = field(default_factory=list)
    _run_seconds: dict[str, float] = field(default_factory=dict)
    _ends: list[tuple[float, int, str]] = field(default_factory=list)
    _wake_at: float | None = None

    def __iter__(self) -> Iterator[Step]:
        arriving = sorted(self.arrivals, key=lambda arrival: (arrival.job.created_at, arrival.job.serial))
        place = 0
        while place < len(arriving) or self._ends or self._wake_at is not None:
            now = min(
                arriving[place].job.created_at if place < len(arriving) else float("inf"),
                self._ends[0][0] if self._ends else float("inf"),
                float("inf") if self._wake_at is None else self._wake_at,
            )
            ended = self._end_until(now)
            arrived = []
            while place < len(arriving) and arriving[place].job.created_at <= now:
                arrived.append(self._arrive(arriving[place], now))
                place += 1
            plan = schedule(self.snapshot, now)
            yield Step(at=now, arrived=tuple(arrived), ended=tuple(ended), plan=plan)
            self._apply(plan, now)

    def _arrive(self, arrival: Arrival, now: float) -> str:
        self._run_seconds[arrival.job.id] = arrival.run_seconds
        job = arrival.job
        if job.state is not JobState.QUEUED:
            job = advance(job, StartRequested(at=now)).job
        self._change([PutJob(job=job)])
        return job.id

    def _end_until(self, now: float) -> list[str]:
        ended = []
        while self._ends and self._ends[0][0] <= now:
            at, _, job_id = heapq.heappop(self._ends)
            job = self.snapshot.jobs[job_id]
            over = advance(job, Ended(at=at, reason=EndReason.EXIT_CODE, exit_code=0)).job
            assert job.allocation is not None
            self.allocations.append((job_id, job.allocated_at or at, at, job.allocation))
            self._change([DropJob(id=job_id), *self._usage(job, -1, at)])
            self.finished[job_id] = replace(over, started_at=job.started_at)
            ended.append(job_id)
        return ended

    def _apply(self, plan: Plan, now: float) -> None:
        for start in plan.starts:
            planned = advance(self.snapshot.jobs[start.job_id], Planned(at=now, allocation=start.allocation)).job
            job = advance(planned, Up(at=now)).job
            self._change([PutJob(job=job), *self._usage(job, 1, now)])
            seconds = self._run_seconds[job.id]
            if job.time_limit_seconds is not None:
                seconds = min(seconds, job.time_limit_seconds)
            heapq.heappush(self._ends, (now + seconds, job.serial, job.id))
        self._wake_at = plan.wake_at
        if plan.starts:
            self._change([PutLastNode(id=plan.starts[-1].allocation.grants[-1].node)])

    def _usage(self, job: Job, sign: int, at: float) -> list[Change]:
        assert job.allocation is not None
        gpus = job.allocation.total_gpu_milli / WHOLE
        if not gpus:
            return []
        key = (job.user, job.allocation.model)
        score = self.snapshot.scores.get(key, Score(at=at))
        score = change_usage(score, sign * gpus, at, self.snapshot.score_time_constant)
        return [PutScore(user=job.user, model=job.allocation.model, score=score)]

    def _change(self, changes: list[Change]) -> None:
        self.snapshot.apply(changes)
        self.observer(changes)
