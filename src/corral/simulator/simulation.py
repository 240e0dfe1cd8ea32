"""A simulated cluster: the same snapshot, scheduler, life cycle and accounting as the live system, moved by events in
virtual time.

It decides nothing itself. The caller passes the arrivals and the actual run time of each job, and gets the plans and
the ended jobs.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

from corral.core.copies import replace
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
from corral.core.snapshot.changes import Change, DropJob, PutJob, PutScore, last_node_of
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.request_mix import MixCounter
from corral.core.snapshot.submission_counts import count_ended, count_submitted


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    #: created, or queued already if it comes from a recorded history with its back-off and avoided nodes. Its
    #: prediction is used; without one it is predicted from what the simulation has learned.
    job: Job
    #: the run time without interruption; for an elastic job with its minimum of GPUs, less with more GPUs
    run_seconds: float
    #: the utilization of an elastic job's GPUs, by their number
    utilization: Callable[[int], float] = lambda gpus: 1.0
    #: whether the job writes checkpoints: when it is warned, and an elastic job whenever it is measured. If not, it
    #: starts from the beginning after a preemption.
    saves: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One moment: the jobs that arrived and ended before the plan, and the plan."""

    at: float
    arrived: tuple[str, ...]
    ended: tuple[str, ...]
    plan: Plan


class Watcher(Protocol):
    """Receives every event once and keeps what it needs: a long simulation does not keep all events."""

    def held(self, job: Job, since: float, until: float, allocation: Allocation) -> None:
        """The job held this allocation for that time, and holds another one or none from then on."""

    def preempted(self, job: Job, lost_gpu_seconds: float) -> None:
        """An attempt was stopped for another job. `lost_gpu_seconds` of its GPU time are lost: the work since its last
        checkpoint, the saving, and its own restart."""

    def moved(self, job: Job, lost_gpu_seconds: float) -> None:
        """An attempt was stopped and continues on another node, so that another job has room."""

    def restarted(self, job: Job, lost_gpu_seconds: float) -> None:
        """A job that was preempted earlier has ended; its last restart cost this GPU time."""

    def ended(self, job: Job, arrival: Arrival) -> None:
        """The job has ended; `job` is as it was while it ran, except for its end."""


class History:
    """A watcher that keeps all events."""

    def __init__(self) -> None:
        #: every job that has ended
        self.finished: dict[str, Job] = {}
        self.allocations: list[tuple[str, float, float, Allocation]] = []
        #: by preempted job: its lost GPU-seconds
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


class _EventKind(IntEnum):
    """Kinds of events, in the order in which events of one moment are handled."""

    END = 0
    #: an attempt that was asked to stop, for a resize or for another job, has saved and ended
    SAVED = 1
    #: the processes of the next attempt run
    UP = 2
    #: the utilization was measured over a whole window
    MEASURED = 3


@dataclass(slots=True)
class Simulation:
    """Iterate over its steps, to the end or as long as wanted; `snapshot` is current between two steps."""

    snapshot: ClusterSnapshot
    arrivals: Iterable[Arrival]
    #: whether the arrivals are sorted by creation already; then they are read one by one
    in_order: bool = False
    #: the end of the simulation
    until: float = float("inf")
    #: receives every change of the snapshot, such as a journal under test
    observer: Callable[[list[Change]], None] = lambda changes: None
    #: how long a job needs to save when it is warned, at most its grace time; and an elastic job to restart
    save_seconds: float = 10.0
    restart_seconds: float = 0.0
    #: how long a preempted job holds its next GPUs before its work continues; its time limit is not shortened
    preemption_cost: float = 0.0
    #: how long an attempt of an elastic job must run before its utilization is known
    measure_seconds: float = 60.0
    watcher: Watcher = field(default_factory=History)
    #: learned before the simulation, and from jobs that end in it
    run_times: RunTimes = field(default_factory=RunTimes)
    #: all resizes and preemptions with their times
    resizes: list[tuple[float, Resize]] = field(default_factory=list)
    preemptions: list[tuple[float, Preemption]] = field(default_factory=list)
    _arrivals: dict[str, Arrival] = field(default_factory=dict)
    #: the remaining time; for elastic jobs in seconds of one GPU
    _left: dict[str, float] = field(default_factory=dict)
    #: the restart cost of the next attempt of a preempted job, and when the work of the present attempt starts
    _cost: dict[str, float] = field(default_factory=dict)
    _works_from: dict[str, float] = field(default_factory=dict)
    #: since when a job holds its allocation, and the allocation that its present attempt is charged for
    _held_since: dict[str, float] = field(default_factory=dict)
    _charged: dict[str, Allocation] = field(default_factory=dict)
    #: time, kind, serial number and id of the job, and the number of the attempt
    _events: list[tuple[float, _EventKind, int, str, int]] = field(default_factory=list)
    _wake_at: float | None = None
    _counters: dict[str, MixCounter] = field(default_factory=dict)

    @property
    def finished(self) -> dict[str, Job]:
        """All jobs that have ended. Only with the default watcher."""
        return self._history.finished

    @property
    def allocations(self) -> list[tuple[str, float, float, Allocation]]:
        """All allocations with their times. Only with the default watcher."""
        return self._history.allocations

    @property
    def _history(self) -> History:
        if not isinstance(self.watcher, History):
            raise TypeError("the events go to another watcher; nothing is kept here")
        return self.watcher

    def __iter__(self) -> Iterator[Step]:
        arriving = iter(self.arrivals if self.in_order else sorted(self.arrivals, key=_arrives_at))
        coming = next(arriving, None)
        while coming is not None or self._events or self._wake_at is not None:
            now = min(
                float("inf") if coming is None else coming.job.created_at,
                self._events[0][0] if self._events else float("inf"),
                float("inf") if self._wake_at is None else self._wake_at,
            )
            if now > self.until:
                self._cut(self.until)
                return
            ended = self._handle_until(now)
            arrived = []
            while coming is not None and coming.job.created_at <= now:
                arrived.append(self._arrive(coming, now))
                coming = next(arriving, None)
            plan = schedule(self.snapshot, now)
            yield Step(at=now, arrived=tuple(arrived), ended=tuple(ended), plan=plan)
            self._apply(plan, now)

    def _cut(self, at: float) -> None:
        """Report all allocations that are still held."""
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

    def _handle_until(self, now: float) -> list[str]:
        ended = []
        while self._events and self._events[0][0] <= now:
            at, what, _, job_id, attempt = heapq.heappop(self._events)
            job = self.snapshot.jobs.get(job_id)
            if job is None or job.attempt != attempt:
                continue  # the event is about an earlier attempt
            match what:
                case _EventKind.END if job.state is JobState.RUNNING:
                    self._end(job, at)
                    ended.append(job_id)
                case _EventKind.SAVED if job.is_moving:
                    self._go_on_moved(job, at)
                case _EventKind.SAVED if job.is_resizing:
                    self._go_on_resized(job, at)
                case _EventKind.SAVED:
                    self._go_back(job, at)
                case _EventKind.UP if job.state is JobState.STARTING:
                    self._run(job, at)
                case _EventKind.MEASURED if job.state is JobState.RUNNING:
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
        count_ended(self.snapshot, self._counters, over)
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
        # The start times of these jobs, and so when they may be preempted, are known only now: plan once more.
        plans_again = plan.starts and self.snapshot.preemption.enabled and self.snapshot.count(JobState.QUEUED)
        self._wake_at = now if plans_again else plan.wake_at
        if plan.starts:
            self._change([last_node_of(plan.starts[-1].allocation)])

    def _run(self, job: Job, at: float) -> None:
        job = advance(job, Up(at=at)).job
        if self._arrivals[job.id].saves and job.checkpointed_at is None and job.elastic is None:
            job = replace(job, checkpointed_at=at)  # marks the job as one that writes checkpoints
        self._change([PutJob(job=job)])
        seconds = max(0.0, self._left[job.id]) / _speed(job)
        if job.time_left_seconds is not None:
            seconds = min(seconds, job.time_left_seconds)
        self._works_from[job.id] = at + self._cost.pop(job.id, 0.0)
        self._expect(self._works_from[job.id] + seconds, _EventKind.END, job)
        if job.elastic is not None:
            self._expect(at + self.measure_seconds, _EventKind.MEASURED, job)

    def _measure(self, job: Job, at: float) -> None:
        arrival = self._arrivals[job.id]
        saved_at = at if arrival.saves else job.checkpointed_at
        measured = replace(job, utilization=arrival.utilization(job.request.gpus), checkpointed_at=saved_at)
        self._change([PutJob(job=measured)])
        self._expect(at + self.measure_seconds, _EventKind.MEASURED, job)

    def _resize(self, resize: Resize, now: float) -> None:
        job = self.snapshot.jobs[resize.job_id]
        self.resizes.append((now, resize))
        event = ResizeRequested(at=now, allocation=resize.allocation, ceiling=resize.ceiling)
        self._note_held(job, now)
        self._change([PutJob(job=advance(job, event).job)])
        if not job.is_resizing:
            self._left[job.id] -= self._worked(job, now) * _speed(job)
            self._expect(now + min(self.save_seconds, job.grace_seconds), _EventKind.SAVED, job)

    def _go_on_resized(self, job: Job, at: float) -> None:
        after = advance(job, Ended(at=at, reason=EndReason.EXIT_CODE, exit_code=143)).job
        self._note_held(job, at)
        if after.allocation is None:
            # The time limit was reached while the job saved.
            self._change([DropJob(id=job.id), *self._charge(job, None, at)])
            self._forget(replace(after, started_at=job.started_at))
            return
        self._change([PutJob(job=after), *self._charge(after, after.allocation, at)])
        self._expect(at + self.restart_seconds, _EventKind.UP, after)

    def _go_on_moved(self, job: Job, at: float) -> None:
        """The job continues on another node from its last checkpoint, with the same restart cost as after a
        preemption."""
        after = advance(job, Ended(at=at, reason=EndReason.EXIT_CODE, exit_code=143)).job
        self._note_held(job, at)
        self.watcher.moved(job, self._interrupt(job, at) * job.request.total_gpu_milli / WHOLE)
        after = self._expected_anew(after)
        self._change([PutJob(job=after), *self._charge(after, after.allocation, at)])
        self._run(after, at)

    def _interrupt(self, job: Job, at: float) -> float:
        """Count the work of an attempt that was asked to stop; returns its lost seconds."""
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
            # The job holds both places while it saves.
            self._note_held(job, now)
            event = MoveRequested(at=now, allocation=preemption.to, for_job=preemption.for_job)
        self._change([PutJob(job=advance(job, event).job)])
        self._expect(now + min(self.save_seconds, job.grace_seconds), _EventKind.SAVED, job)

    def _go_back(self, job: Job, at: float) -> None:
        """Requeue the job with its saved work."""
        after = advance(job, Ended(at=at, reason=EndReason.EXIT_CODE, exit_code=143)).job
        self._note_held(job, at)
        self.watcher.preempted(job, self._interrupt(job, at) * _gpus_held(job))
        self._change([PutJob(job=self._expected_anew(after)), *self._charge(job, None, at)])

    def _expected_anew(self, job: Job) -> Job:
        """The job with the prediction of its arrival, less the saved work; without one, with a learned prediction."""
        known = self._arrivals[job.id].job.predicted
        if known is None or known.p50_seconds <= job.saved_seconds:
            return predicted(self.run_times, job)
        left = replace(
            known,
            p50_seconds=known.p50_seconds - job.saved_seconds,
            p90_seconds=known.p90_seconds - job.saved_seconds,
        )
        return replace(job, predicted=left)

    def _worked(self, job: Job, until: float) -> float:
        """The seconds of work that the present attempt has done until then."""
        return 0.0 if job.started_at is None else max(0.0, until - self._works_from[job.id])

    def _expect(self, at: float, what: _EventKind, job: Job) -> None:
        heapq.heappush(self._events, (at, what, job.serial, job.id, job.attempt))

    def _note_held(self, job: Job, until: float) -> None:
        assert job.allocation is not None
        self.watcher.held(job, self._held_since[job.id], until, job.allocation)
        self._held_since[job.id] = until

    def _charge(self, job: Job, allocation: Allocation | None, at: float) -> list[Change]:
        """Usage follows attempts: resources held for the next attempt while one ends are not counted yet."""
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
    """Work per second: an elastic job's work is counted in seconds of one GPU."""
    return 1 if job.elastic is None else job.request.gpus


def _gpus_held(job: Job) -> float:
    return 0.0 if job.allocation is None else job.allocation.total_gpu_milli / WHOLE


def _arrives_at(arrival: Arrival) -> tuple[float, int]:
    return (arrival.job.created_at, arrival.job.serial)
