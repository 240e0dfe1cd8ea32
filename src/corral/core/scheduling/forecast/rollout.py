"""One rollout: the live scheduler and the job life cycle run forward in virtual time with sampled run times, until all
waiting jobs have started or a limit of starts is reached.

The rollout changes the snapshot that it is given. Jobs that arrive during the rollout come from `arrivals`. A rollout
does not model failures, and elastic jobs change their size at once.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from corral.core.jobs.dependencies import Dependents, met
from corral.core.jobs.lifecycle import Ended, Planned, StopRequested, Up, advance
from corral.core.model import WHOLE, Allocation, EndReason, Job, JobState
from corral.core.people.scores import Score, change_usage
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.forecast.remaining_time import (
    LEAST_SECONDS,
    NO_OUTLOOK,
    Length,
    Outlook,
    RolloutSample,
    is_ending,
    ran_seconds,
    seconds_from_start,
    seconds_left,
)
from corral.core.scheduling.plan.plan import Plan, Preemption, Resize
from corral.core.snapshot.changes import Change, DropJob, PutJob, PutScore, last_node_of
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot

#: Starts that are later than this are not estimated.
HORIZON_SECONDS = 366 * 86400.0

#: The end of an attempt: time, serial number and id of the job, and the number of the attempt.
End = tuple[float, int, str, int]


@dataclass(slots=True)
class Rollout:
    snapshot: ClusterSnapshot
    now: float
    sample: RolloutSample
    #: by live job: the distribution of its run time
    lengths: dict[str, Length]
    #: for jobs that arrive during the rollout
    outlook: Outlook = NO_OUTLOOK
    #: jobs that arrive during the rollout, in order
    arrivals: Iterator[Job] = field(default_factory=lambda: iter(()))
    #: called between two cycles, so that a long rollout does not block other threads; may raise to end the rollout
    pause: Callable[[], None] = lambda: None
    #: when each job starts
    starts: dict[str, float] = field(default_factory=dict)
    ends: list[End] = field(default_factory=list)
    #: waiting jobs of the snapshot that have not started
    wanted: set[str] = field(default_factory=set)
    #: the next job that arrives
    next_arrival: Job | None = None
    _dependents: Dependents = field(default_factory=Dependents)
    #: by preempted job: its remaining time
    _left: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for _, serial, job_id in self.snapshot.releases:
            self._expect_end(self.snapshot.jobs[job_id], serial)
        for job in self.snapshot.jobs.values():
            if job.state is JobState.QUEUED:
                self.wanted.add(job.id)
                if job.after:
                    self._dependents.follow(None, job)
        self.next_arrival = next(self.arrivals, None)

    def run(self, most_starts: float = math.inf) -> bool:
        """Whether the rollout is complete: no job waits any more, or nothing more will happen."""
        until = self.now + HORIZON_SECONDS
        begun = len(self.starts)
        while True:
            plan = schedule(self.snapshot, self.now)
            self.apply(plan)
            if not self.wanted:
                return True
            # A cycle without starts costs about as much as a few starts: it counts too.
            most_starts -= 1
            if len(self.starts) - begun >= most_starts:
                return False
            now = self._next_moment(plan)
            if now is None or now > until:
                return True
            self.now = now
            self._end_until(now)
            for job in self.arrived(now):
                self.snapshot.apply([PutJob(job=job)])
            self.pause()

    def arrived(self, now: float) -> Iterator[Job]:
        """The jobs that arrive until `now`."""
        while self.next_arrival is not None and (self.next_arrival.queued_at or 0.0) <= now:
            job = self.next_arrival
            self.lengths[job.id] = self.outlook.length_of(job, self.snapshot.ordering)
            self.next_arrival = next(self.arrivals, None)
            yield job

    def apply(self, plan: Plan) -> None:
        """Apply the plan to the snapshot."""
        for start in plan.starts:
            self._start(self.snapshot.jobs[start.job_id], start.allocation)
        for resize in plan.resizes:
            self._resize(resize)
        for preemption in plan.preemptions:
            self._preempt(preemption)
        if plan.starts:
            self.snapshot.apply([last_node_of(plan.starts[-1].allocation)])

    def _next_moment(self, plan: Plan) -> float | None:
        moments = [self.ends[0][0]] if self.ends else []
        if self.next_arrival is not None:
            moments.append(self.next_arrival.queued_at or 0.0)
        if plan.wake_at is not None:
            # A time that is not in the future must not be waited for repeatedly.
            moments.append(plan.wake_at if plan.wake_at > self.now else self.now + LEAST_SECONDS)
        return min(moments, default=None)

    def _start(self, job: Job, allocation: Allocation) -> None:
        planned = advance(job, Planned(at=self.now, allocation=allocation)).job
        self.starts.setdefault(job.id, self.now)
        self.wanted.discard(job.id)
        self._charge(planned, allocation.total_gpu_milli / WHOLE, allocation.model)
        running = advance(planned, Up(at=self.now)).job
        self.snapshot.apply([PutJob(job=running)])
        left = self._left.pop(job.id, None)
        if left is None:
            left = seconds_from_start(self.lengths[job.id], job.serial, self.sample)
            left = _with_its_size(running, left)
        if running.time_left_seconds is not None:
            left = min(left, running.time_left_seconds)
        self._expect(running, self.now + left)

    def _end_until(self, now: float) -> None:
        while self.ends and self.ends[0][0] <= now:
            _, _, job_id, attempt = heapq.heappop(self.ends)
            job = self.snapshot.jobs.get(job_id)
            if job is None or job.attempt != attempt or not job.state.holds_resources:
                continue
            self._end(job)

    def _end(self, job: Job) -> None:
        allocation = job.allocation
        assert allocation is not None
        self._charge(job, -allocation.total_gpu_milli / WHOLE, allocation.model)
        code = 143 if is_ending(job) else 0
        after = advance(job, Ended(at=self.now, reason=EndReason.EXIT_CODE, exit_code=code)).job
        if after.allocation is not None:
            # The job continues with other GPUs.
            self._charge(after, after.allocation.total_gpu_milli / WHOLE, after.allocation.model)
            running = advance(after, Up(at=self.now)).job
            self.snapshot.apply([PutJob(job=running)])
            self._expect_end(running, running.serial)
        elif after.state is JobState.QUEUED:
            self.snapshot.apply([PutJob(job=after)])
        else:
            self.snapshot.apply([DropJob(id=job.id)])
            self._release_dependents(after)

    def _release_dependents(self, over: Job) -> None:
        """Jobs that depend on a completed job may start now."""
        if over.state is not JobState.COMPLETED:
            return
        for job_id in self._dependents.of(over.id):
            waiting = self.snapshot.jobs.get(job_id)
            if waiting is not None:
                free = met(waiting, over.id, self.now)
                self._dependents.follow(waiting, free)
                self.snapshot.apply([PutJob(job=free)])

    def _resize(self, resize: Resize) -> None:
        """Resize at once; the remaining time is inversely proportional to the GPUs."""
        job = self.snapshot.jobs[resize.job_id]
        if job.state is not JobState.RUNNING or job.allocation is None:
            return
        before, after = job.allocation.total_gpu_milli, resize.allocation.total_gpu_milli
        end = next((at for at, _, job_id, attempt in self.ends if (job_id, attempt) == (job.id, job.attempt)), self.now)
        resized = replace(
            job,
            attempt=job.attempt + 1,
            request=replace(job.request, gpus=len(resize.allocation.grants[0].gpus)),
            allocation=resize.allocation,
            resized_at=self.now,
            ceiling=resize.ceiling or job.ceiling,
        )
        self._charge(job, (after - before) / WHOLE, resize.allocation.model)
        self.snapshot.apply([PutJob(job=resized)])
        self._expect(resized, self.now + (end - self.now) * before / max(1, after))

    def _preempt(self, preemption: Preemption) -> None:
        """Requeue the job after its grace time with its remaining time; if it is moved, it continues at once."""
        job = self.snapshot.jobs[preemption.job_id]
        if job.state is not JobState.RUNNING:
            return
        end = next((at for at, _, job_id, attempt in self.ends if (job_id, attempt) == (job.id, job.attempt)), self.now)
        if preemption.to is not None:
            moved = replace(job, attempt=job.attempt + 1, allocation=preemption.to)
            self.snapshot.apply([PutJob(job=moved)])
            self._expect(moved, end)
            return
        self._left[job.id] = max(LEAST_SECONDS, end - self.now)
        stopping = advance(job, StopRequested(at=self.now, reason=EndReason.PREEMPTED, for_job=preemption.for_job)).job
        self.snapshot.apply([PutJob(job=stopping)])
        self._expect(stopping, self.now + job.grace_seconds)

    def _expect_end(self, job: Job, serial: int) -> None:
        if is_ending(job):
            self._expect(job, self.now + job.grace_seconds)
            return
        left = seconds_left(self.lengths[job.id], ran_seconds(job, self.now), serial, self.sample)
        heapq.heappush(self.ends, (self.now + _with_its_size(job, left), serial, job.id, job.attempt))

    def _expect(self, job: Job, at: float) -> None:
        heapq.heappush(self.ends, (at, job.serial, job.id, job.attempt))

    def _charge(self, job: Job, gpus: float, model: str) -> None:
        if not gpus:
            return
        score = self.snapshot.scores.get((job.user, model), Score(at=self.now))
        score = change_usage(score, gpus, self.now, self.snapshot.score_time_constant)
        changes: list[Change] = [PutScore(user=job.user, model=model, score=score)]
        self.snapshot.apply(changes)


def _with_its_size(job: Job, seconds: float) -> float:
    """The run time of an elastic job is known for its minimum; scale it to its present size."""
    if job.elastic is None or not job.request.gpus:
        return seconds
    return seconds * job.elastic.min_gpus / job.request.gpus
