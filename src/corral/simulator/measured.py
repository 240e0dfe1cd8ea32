"""The outcome of a what-if run within a window, with shares of groups, users, queues and sizes of jobs.

Jobs from before the window run too and fill the cluster, but are not measured. GPU time counts within the window only,
so that two runs of the same jobs can differ in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from corral.core.model import WHOLE, Allocation, Job, Request
from corral.core.whatif.past_jobs import PastJob
from corral.simulator.outcome import HOUR, SLOWDOWN_SECONDS, Distribution, TimeSeries, jain_index
from corral.simulator.simulation import Arrival


@dataclass(slots=True)
class Share:
    """The part of one group, user, queue or size."""

    waits: Distribution = field(default_factory=Distribution)
    completions: Distribution = field(default_factory=Distribution)
    slowdowns: Distribution = field(default_factory=Distribution)
    gpu_seconds: float = 0.0
    preemptions: int = 0
    lost_gpu_seconds: float = 0.0

    @property
    def gpu_hours(self) -> float:
        return self.gpu_seconds / HOUR


def size_of(request: Request) -> str:
    """The kind of place that a job needs: the larger, the harder to find between running jobs."""
    if not request.wants_gpu:
        return "no GPU"
    if request.is_gang:
        return "several nodes"
    return "1 GPU" if request.total_gpu_milli <= WHOLE else "one node"


class WindowOutcome:
    """Implements `Watcher`."""

    def __init__(self, jobs: Mapping[str, PastJob], since: float, until: float, *, step: float = 1.0) -> None:
        self.since = since
        self.until = until
        #: when the last job ended
        self.last_end = until
        self.total = Share()
        self.groups: dict[str, Share] = defaultdict(Share)
        self.users: dict[str, Share] = defaultdict(Share)
        self.queues: dict[str, Share] = defaultdict(Share)
        #: by the kind of place that jobs need: see `size_of`
        self.sizes: dict[str, Share] = defaultdict(Share)
        self.ended_jobs = 0
        self.measured_jobs = 0
        self.cut_jobs = 0
        self._busy_seconds = 0.0
        self._known_seconds = 0.0
        self._jobs = jobs
        self._first_start: dict[str, float] = {}
        self._used = TimeSeries(since, step)
        self._waiting = TimeSeries(since, step)

    # ---------------------------------------------------------------- while it runs

    def held(self, job: Job, since: float, until: float, allocation: Allocation) -> None:
        self._first_start.setdefault(job.id, since)
        gpus = allocation.total_gpu_milli / WHOLE
        self.last_end = max(self.last_end, until)
        if gpus and until > self.since:
            self._used.add(max(since, self.since), until, gpus)
        seconds = gpus * max(0.0, min(until, self.until) - max(since, self.since))
        if not seconds:
            return
        busy = self._jobs[job.id].busy
        if busy is not None:
            self._known_seconds += seconds
            self._busy_seconds += seconds * busy
        for share in self._shares(job):
            share.gpu_seconds += seconds

    def ended(self, job: Job, arrival: Arrival) -> None:
        self.ended_jobs += 1
        past = self._jobs[job.id]
        assert job.ended_at is not None
        started_at = self._first_start.pop(job.id, job.ended_at)
        if not past.is_measured:
            return
        queued_at = arrival.job.created_at
        completion = job.ended_at - queued_at
        limit = job.time_limit_seconds
        ran = max(min(arrival.run_seconds, completion if limit is None else limit), SLOWDOWN_SECONDS)
        self.measured_jobs += 1
        if job.elastic is None and limit is not None and limit < arrival.run_seconds:
            self.cut_jobs += 1
        if started_at > queued_at:
            self._waiting.add(queued_at, started_at, 1.0)
        for share in self._shares(job):
            share.waits.add(max(0.0, started_at - queued_at))
            share.completions.add(completion)
            share.slowdowns.add(max(1.0, completion / ran))

    def preempted(self, job: Job, lost_gpu_seconds: float) -> None:
        """An attempt was stopped for another job, and `lost_gpu_seconds` of its work must be repeated."""
        for share in self._shares(job):
            share.preemptions += 1
            share.lost_gpu_seconds += lost_gpu_seconds

    def moved(self, job: Job, lost_gpu_seconds: float) -> None:
        """The job was moved to another node: it did not wait, but the restart is lost."""
        self.restarted(job, lost_gpu_seconds)

    def restarted(self, job: Job, lost_gpu_seconds: float) -> None:
        for share in self._shares(job):
            share.lost_gpu_seconds += lost_gpu_seconds

    def _shares(self, job: Job) -> tuple[Share, ...]:
        group = self._jobs[job.id].group
        shares = (self.groups[group], self.users[job.user], self.queues[job.queue], self.sizes[size_of(job.request)])
        return (self.total, *shares)

    # ---------------------------------------------------------------- when it is over

    @property
    def makespan_seconds(self) -> float:
        return self.last_end - self.since

    def utilization(self, gpus: int) -> float:
        """The part of the fleet's GPU time within the window that was held."""
        offered = gpus * (self.until - self.since)
        return self.total.gpu_seconds / offered if offered else 0.0

    def busy(self, gpus: int) -> float | None:
        """The utilization weighted by how busy the GPUs were; jobs without measurements count like the others."""
        if not self._known_seconds:
            return None
        return self.utilization(gpus) * self._busy_seconds / self._known_seconds

    @property
    def jain(self) -> float:
        """Jain's index of the users' GPU time within the window."""
        return jain_index(share.gpu_seconds for share in self.users.values())

    @property
    def jain_slowdown(self) -> float:
        """Jain's index of the users' mean slowdown."""
        return jain_index(share.slowdowns.mean for share in self.users.values() if share.slowdowns.count)

    def used_gpus(self) -> list[tuple[float, float]]:
        """GPUs in use: the start of each step and the mean within it."""
        return self._used.means(self.last_end)

    def waiting_jobs(self) -> list[tuple[float, float]]:
        return self._waiting.means(self.last_end)
