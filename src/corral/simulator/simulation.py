"""A simulated cluster: the same snapshot, scheduler, life cycle and accounting as the live system, moved by events in
virtual time.

Decides nothing itself. Callers give arrivals and how long each job really runs; they get the plans and what became of
the jobs.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Protocol

from corral.core.jobs.lifecycle import (
    Ended,
    Event,
    MoveRequested,
    Planned,
    ResizeRequested,
    StartRequested,
    StopRequested,
    Up,
    advance,
)
from corral.core.model import WHOLE, Allocation, EndReason, Job, JobState
from corral.core.people.scores import Score, change_usage
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.forecast.run_time_model import RunTimes, learn, predicted
from corral.core.scheduling.plan.plan import Plan, Preemption, Resize
from corral.core.snapshot.changes import Change, DropJob, PutJob, PutLastNode, PutScore
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.request_mix import MixCounter
from corral.core.snapshot.submission_counts import count_submitted


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    #: queued already, when it comes out of a recorded history with its back-off and what it avoids; else still created.
    #: What is predicted of it stands; if nothing is, it is predicted from what the simulation has learned.
    job: Job
    #: how long it runs when nothing stops it; an elastic job with its minimum, and with more GPUs accordingly less
    run_seconds: float
    #: measured use of an elastic job's GPUs, by their number
    utilization: Callable[[int], float] = lambda gpus: 1.0
    #: whether it saves: when it is warned, and an elastic job whenever it is measured. One that does not begins anew
    #: after a preemption.
    saves: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """What happened at one moment: what arrived and ended before the plan, and the plan."""

    at: float
    arrived: tuple[str, ...]
    ended: tuple[str, ...]
    plan: Plan


class Watcher(Protocol):
    """Hears of everything once and keeps what it needs: a long simulation does not keep it all."""

    def held(self, job: Job, since: float, until: float, allocation: Allocation) -> None:
        """The job held this for that time, and holds it no longer, or something else from then on."""

    def preempted(self, job: Job, lost_gpu_seconds: float) -> None:
        """An attempt was stopped for another job. So much of the GPU time that it held led to nothing: what it had not
        saved, the saving, and its own way back into work."""

    def moved(self, job: Job, lost_gpu_seconds: float) -> None:
        """An attempt was stopped and goes on elsewhere, so that another job has room."""

    def restarted(self, job: Job, lost_gpu_seconds: float) -> None:
        """A job that was preempted and has ended since held its GPUs so long before its work went on."""

    def ended(self, job: Job, arrival: Arrival) -> None:
        """The job is over, as it was while it ran but for its end."""


class History:
    """Keeps everything that happened."""

    def __init__(self) -> None:
        #: every job that has ended
        self.finished: dict[str, Job] = {}
        self.allocations: list[tuple[str, float, float, Allocation]] = []
        #: GPU-seconds that led to nothing, of every job that was preempted
        self.lost: dict[str, float] = {}

    def held(self, job: Job, since: float, until: float, allocation: Allocation) -> None:
        self.allocations.append((job.id, since, until, allocation))

    def preempted(self, job: Job, lost_gpu_seconds: float) -> None:
        self.lost[job.id] = self.lost.get(job.id, 0.0) + lost_gpu_seconds

    def moved(self, job: Job, lost_gpu_seconds: float) -> None:
        self.lost[job.id] = self.lost.get(job.id, 0.0) + lost_gpu_seconds

    def restarted(self, job: Job, lost_gpu_seconds: float) -> None:
        self.lost[job.id] += lost_gpu_seconds

    def ended(self, job: Job, arrival: Arrival) -> None:
        self.finished[job.id] = job


class _Happening(IntEnum):
    """What time brings, in the order in which it is told at one moment."""

    END = 0
    #: an attempt that was told to end, for a resize or for another job, has saved and ended
    SAVED = 1
    #: its next attempt is up
    UP = 2
    #: its use was measured over a whole window
    MEASURED = 3


@dataclass(slots=True)
class Simulation:
    """Iterate it to the end, or as long as wanted; `snapshot` is as it stands between two steps."""

    snapshot: ClusterSnapshot
    arrivals: Iterable[Arrival]
    #: they come in the order of their creation already, and are asked for one by one
    in_order: bool = False
    #: nothing that would happen later happens
    until: float = float("inf")
    #: told every change, such as a journal under test
    observer: Callable[[list[Change]], None] = lambda changes: None
    #: how long a job needs to save when it is warned, at most its grace time, and an elastic one to be up again
    save_seconds: float = 10.0
    restart_seconds: float = 0.0
    #: how long a job that was preempted holds its next GPUs before its work goes on; its time limit is not the shorter
    preemption_cost: float = 0.0
    #: how long an attempt of an elastic job must run before its use is known
    measure_seconds: float = 60.0
    watcher: Watcher = field(default_factory=History)
    #: what is known of run times: what was learned before, and what is learned as jobs end
    run_times: RunTimes = field(default_factory=RunTimes)
    #: every resize and every preemption that was decided, and when
    resizes: list[tuple[float, Resize]] = field(default_factory=list)
    preemptions: list[tuple[float, Preemption]] = field(default_factory=list)
    _arrivals: dict[str, Arrival] = field(default_factory=dict)
    #: what is left to do, in seconds; of elastic jobs in seconds of one GPU
    _left: dict[str, float] = field(default_factory=dict)
    #: what the next attempt of a job that was preempted costs, and from when on the present one does its work
    _cost: dict[str, float] = field(default_factory=dict)
    _works_from: dict[str, float] = field(default_factory=dict)
    #: since when a job holds what it holds, and what its present attempt has been charged for
    _held_since: dict[str, float] = field(default_factory=dict)
    _charged: dict[str, Allocation] = field(default_factory=dict)
    #: when, what, the job by number and id, and the attempt that it is about
    _happenings: list[tuple[float, _Happening, int, str, int]] = field(default_factory=list)
    _wake_at: float | None = None
    _counters: dict[str, MixCounter] = field(default_factory=dict)

    @property
    def finished(self) -> dict[str, Job]:
        """Every job that has ended, if nobody else was to watch."""
        return self._history.finished

    @property
    def allocations(self) -> list[tuple[str, float, float, Allocation]]:
        """Everything that was held, if nobody else was to watch."""
        return self._history.allocations

    @property
    def _history(self) -> History:
        if not isinstance(self.watcher, History):
            raise TypeError("another watcher hears what happens; nothing is kept here")
        return self.watcher

    def __iter__(self) -> Iterator[Step]:
        arriving = iter(self.arrivals if self.in_order else sorted(self.arrivals, key=_arrives_at))
        coming = next(arriving, None)
        while coming is not None or self._happenings or self._wake_at is not None:
            now = min(
                float("inf") if coming is None else coming.job.created_at,
                self._happenings[0][0] if self._happenings else float("inf"),
                float("inf") if self._wake_at is None else self._wake_at,
            )
            if now > self.until:
                self._cut(self.until)
                return
            ended = self._happen_until(now)
            arrived = []
            while coming is not None and coming.job.created_at <= now:
                arrived.append(self._arrive(coming, now))
                coming = next(arriving, None)
            plan = schedule(self.snapshot, now)
            yield Step(at=now, arrived=tuple(arrived), ended=tuple(ended), plan=plan)
            self._apply(plan, now)

    def _cut(self, at: float) -> None:
        """What is still held has been held up to now."""
        for job in self.snapshot.jobs.values():
            if job.allocation is not None:
                self._note_held(job, at)

    def _arrive(self, arrival: Arrival, now: float) -> str:
        job = arrival.job
        self._arrivals[job.id] = arrival
        self._left[job.id] = arrival.run_seconds * (1 if job.elastic is None else job.elastic.min_gpus)
        if job.state is not JobState.QUEUED:
            job = advance(job, StartRequested(at=now)).job
        if job.predicted is None:
            job = predicted(self.run_times, job)
        mix = count_submitted(self.snapshot, self._counters, job)
        self._change([PutJob(job=job), *([mix] if mix else [])])
        return job.id

    def _happen_until(self, now: float) -> list[str]:
        ended = []
        while self._happenings and self._happenings[0][0] <= now:
            at, what, _, job_id, attempt = heapq.heappop(self._happenings)
            job = self.snapshot.jobs.get(job_id)
            if job is None or job.attempt != attempt:
                continue  # it has another attempt since
            match what:
                case _Happening.END if job.state is JobState.RUNNING:
                    self._end(job, at)
                    ended.append(job_id)
                case _Happening.SAVED if job.is_moving:
                    self._go_on_moved(job, at)
                case _Happening.SAVED if job.is_resizing:
                    self._go_on_resized(job, at)
                case _Happening.SAVED:
                    self._go_back(job, at)
                case _Happening.UP if job.state is JobState.STARTING:
                    self._run(job, at)
                case _Happening.MEASURED if job.state is JobState.RUNNING:
                    self._measure(job, at)
                case _:
                    pass
        return ended

    def _end(self, job: Job, at: float) -> None:
        over = advance(job, Ended(at=at, reason=EndReason.EXIT_CODE, exit_code=0)).job
        learn(self.run_times, job, over)
        self._note_held(job, at)
        cost = min(self._works_from[job.id], at) - (job.started_at or at)
        if cost > 0:
            self.watcher.restarted(job, cost * _gpus_held(job))
        self._change([DropJob(id=job.id), *self._charge(job, None, at)])
        self._forget(replace(over, started_at=job.started_at))

    def _forget(self, over: Job) -> None:
        self.watcher.ended(over, self._arrivals.pop(over.id))
        del self._left[over.id], self._held_since[over.id], self._works_from[over.id]

    def _apply(self, plan: Plan, now: float) -> None:
        for start in plan.starts:
            planned = advance(self.snapshot.jobs[start.job_id], Planned(at=now, allocation=start.allocation)).job
            self._held_since[planned.id] = now
            self._change([PutJob(job=planned), *self._charge(planned, start.allocation, now)])
            self._run(planned, now)
        for resize in plan.resizes:
            self._resize(resize, now)
        for preemption in plan.preemptions:
            self._preempt(preemption, now)
        # That jobs are up is news: from when on they may be preempted is known only now.
        is_news = plan.starts and self.snapshot.preemption.enabled and self.snapshot.count(JobState.QUEUED)
        self._wake_at = now if is_news else plan.wake_at
        if plan.starts:
            self._change([PutLastNode(id=plan.starts[-1].allocation.grants[-1].node)])

    def _run(self, job: Job, at: float) -> None:
        job = advance(job, Up(at=at)).job
        if self._arrivals[job.id].saves and job.checkpointed_at is None and job.elastic is None:
            job = replace(job, checkpointed_at=at)  # what it begins with is safe, and shows that it saves
        self._change([PutJob(job=job)])
        seconds = max(0.0, self._left[job.id]) / _speed(job)
        if job.time_left_seconds is not None:
            seconds = min(seconds, job.time_left_seconds)
        self._works_from[job.id] = at + self._cost.pop(job.id, 0.0)
        self._expect(self._works_from[job.id] + seconds, _Happening.END, job)
        if job.elastic is not None:
            self._expect(at + self.measure_seconds, _Happening.MEASURED, job)

    def _measure(self, job: Job, at: float) -> None:
        arrival = self._arrivals[job.id]
        saved_at = at if arrival.saves else job.checkpointed_at
        measured = replace(job, utilization=arrival.utilization(job.request.gpus), checkpointed_at=saved_at)
        self._change([PutJob(job=measured)])
        self._expect(at + self.measure_seconds, _Happening.MEASURED, job)

    def _resize(self, resize: Resize, now: float) -> None:
        job = self.snapshot.jobs[resize.job_id]
        self.resizes.append((now, resize))
        event = ResizeRequested(at=now, allocation=resize.allocation, ceiling=resize.ceiling)
        self._note_held(job, now)
        self._change([PutJob(job=advance(job, event).job)])
        if not job.is_resizing:
            self._left[job.id] -= self._worked(job, now) * _speed(job)
            self._expect(now + min(self.save_seconds, job.grace_seconds), _Happening.SAVED, job)

    def _go_on_resized(self, job: Job, at: float) -> None:
        after = advance(job, Ended(at=at, reason=EndReason.EXIT_CODE, exit_code=143)).job
        self._note_held(job, at)
        if after.allocation is None:
            # Its time limit passed while it saved.
            self._change([DropJob(id=job.id), *self._charge(job, None, at)])
            self._forget(replace(after, started_at=job.started_at))
            return
        self._change([PutJob(job=after), *self._charge(after, after.allocation, at)])
        self._expect(at + self.restart_seconds, _Happening.UP, after)

    def _go_on_moved(self, job: Job, at: float) -> None:
        """Elsewhere, with what it has saved, and after the same cost as one that was preempted."""
        after = advance(job, Ended(at=at, reason=EndReason.EXIT_CODE, exit_code=143)).job
        self._note_held(job, at)
        self.watcher.moved(job, self._interrupt(job, at) * job.request.total_gpu_milli / WHOLE)
        after = self._expected_anew(after)
        self._change([PutJob(job=after), *self._charge(after, after.allocation, at)])
        self._run(after, at)

    def _interrupt(self, job: Job, at: float) -> float:
        """Count what an attempt that was told to end has done; the seconds of it that led to nothing."""
        kept = 0.0 if job.checkpointed_at is None else self._worked(job, job.checkpointed_at)
        self._left[job.id] -= kept * _speed(job)
        self._cost[job.id] = self.preemption_cost
        return at - (at if job.allocated_at is None else job.allocated_at) - kept

    def _preempt(self, preemption: Preemption, now: float) -> None:
        job = self.snapshot.jobs[preemption.job_id]
        self.preemptions.append((now, preemption))
        if self._arrivals[job.id].saves:
            job = replace(job, checkpointed_at=now)
        event: Event = StopRequested(at=now, reason=EndReason.PREEMPTED, for_job=preemption.for_job)
        if preemption.to is not None:
            # It holds both places while it saves.
            self._note_held(job, now)
            event = MoveRequested(at=now, allocation=preemption.to, for_job=preemption.for_job)
        self._change([PutJob(job=advance(job, event).job)])
        self._expect(now + min(self.save_seconds, job.grace_seconds), _Happening.SAVED, job)

    def _go_back(self, job: Job, at: float) -> None:
        """To the queue, with what it has saved."""
        after = advance(job, Ended(at=at, reason=EndReason.EXIT_CODE, exit_code=143)).job
        self._note_held(job, at)
        self.watcher.preempted(job, self._interrupt(job, at) * _gpus_held(job))
        self._change([PutJob(job=self._expected_anew(after)), *self._charge(job, None, at)])

    def _expected_anew(self, job: Job) -> Job:
        """What was told of it stands, less what it has done; else what has been learned says what is left."""
        told = self._arrivals[job.id].job.predicted
        if told is None or told.p50_seconds <= job.saved_seconds:
            return predicted(self.run_times, job)
        left = replace(
            told,
            p50_seconds=told.p50_seconds - job.saved_seconds,
            p90_seconds=told.p90_seconds - job.saved_seconds,
        )
        return replace(job, predicted=left)

    def _worked(self, job: Job, until: float) -> float:
        """Seconds of work that the present attempt had done by then."""
        return 0.0 if job.started_at is None else max(0.0, until - self._works_from[job.id])

    def _expect(self, at: float, what: _Happening, job: Job) -> None:
        heapq.heappush(self._happenings, (at, what, job.serial, job.id, job.attempt))

    def _note_held(self, job: Job, until: float) -> None:
        assert job.allocation is not None
        self.watcher.held(job, self._held_since[job.id], until, job.allocation)
        self._held_since[job.id] = until

    def _charge(self, job: Job, allocation: Allocation | None, at: float) -> list[Change]:
        """Usage follows attempts: what is kept for the next one while one ends is not counted yet."""
        before = self._charged.pop(job.id, None)
        if allocation is not None:
            self._charged[job.id] = allocation
        delta = (allocation.total_gpu_milli if allocation else 0) - (before.total_gpu_milli if before else 0)
        if not delta:
            return []
        model = (allocation or before or Allocation(grants=())).model
        score = self.snapshot.scores.get((job.user, model), Score(at=at))
        score = change_usage(score, delta / WHOLE, at, self.snapshot.score_time_constant)
        return [PutScore(user=job.user, model=model, score=score)]

    def _change(self, changes: list[Change]) -> None:
        self.snapshot.apply(changes)
        self.observer(changes)


def _speed(job: Job) -> int:
    """What it gets done in a second: an elastic job's work is counted in seconds of one GPU."""
    return 1 if job.elastic is None else job.request.gpus


def _gpus_held(job: Job) -> float:
    return 0.0 if job.allocation is None else job.allocation.total_gpu_milli / WHOLE


def _arrives_at(arrival: Arrival) -> tuple[float, int]:
    return (arrival.job.created_at, arrival.job.serial)
