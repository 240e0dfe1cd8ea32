"""The rest of a rollout, for which a search over all nodes for every job would take too long: GPUs are counted by pool
and model, as if all of them were on one node, and ends that are close to each other are handled together.

Order, limits, shares and sampled run times are those of the scheduler; placement on nodes and backfill are left out.
The later a start is, the less these matter.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass, field

from corral.core.model import WHOLE, Job
from corral.core.scheduling.forecast.count_lines import LEAST_STEP_SECONDS, CountedLine, Order, Scores, Waiting
from corral.core.scheduling.forecast.remaining_time import seconds_from_start
from corral.core.scheduling.forecast.rollout import HORIZON_SECONDS, Rollout
from corral.core.scheduling.limits.claims import SHARED
from corral.core.scheduling.limits.hold_rules import MOUNT, first_reason
from corral.core.scheduling.ordering import POLICIES
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import Limits
from corral.core.snapshot.node_index import EVERYWHERE, Domain
from corral.core.snapshot.waiting_lines import LineKey, line_of

#: Ends within this part of the time since the start of the rollout are handled together: a start in an hour is exact to
#: a quarter of a minute.
STEP_PART = 0.004

#: The key of jobs that wait for a volume; no user has this name.
ANY_USER = ""


@dataclass(slots=True)
class CountRollout:
    """Continues where `rollout` stopped, and adds to its starts."""

    rollout: Rollout
    order: Order
    #: stop after so many starts
    most_starts: float = math.inf
    _now: float = 0.0
    _since: float = 0.0
    _free: dict[Domain, int] = field(default_factory=dict)
    #: time, serial number, job, its domain, and the thousandths that are released
    _ends: list[tuple[float, int, Job, Domain, int]] = field(default_factory=list)
    _lines: list[CountedLine] = field(default_factory=list)
    _line_of: dict[LineKey, CountedLine] = field(default_factory=dict)
    #: None if no policy uses the score
    _scores: Scores | None = None
    _is_limited: bool = False
    #: by user: jobs that a limit of the user holds, tried again when a job of the user ends; under `ANY_USER` jobs that
    #: wait for a volume
    _aside: dict[str, deque[tuple[CountedLine, Waiting]]] = field(default_factory=dict)

    def run(self) -> None:
        snapshot = self.rollout.snapshot
        held = snapshot.held
        # Limits are checked against what is held, and here nothing is really taken.
        snapshot.held = held.copy()
        try:
            self._begin(snapshot)
            self._go_on()
        finally:
            snapshot.held = held

    def _begin(self, snapshot: ClusterSnapshot) -> None:
        rollout = self.rollout
        self._now = self._since = rollout.now
        self._free = _free_of(snapshot)
        self._ends = [
            (at, serial, job, *self._released_by(job))
            for at, serial, job_id, attempt in rollout.ends
            if (job := snapshot.jobs.get(job_id)) is not None and job.attempt == attempt
        ]
        heapq.heapify(self._ends)
        scores = Scores(snapshot, rollout.now)
        self._scores = scores if any(POLICIES[queue.policy].uses_score for queue in snapshot.queues.values()) else None
        for key in self.order.plain:
            self._add_line(key, scores)
        self._is_limited = (
            snapshot.limits != Limits()
            or bool(snapshot.quotas)
            or bool(snapshot.memberships)
            or any(queue.max_gpus is not None for queue in snapshot.queues.values())
            or bool(snapshot.volumes)
        )

    def _released_by(self, job: Job) -> tuple[Domain, int]:
        """Cached: the same in every rollout for jobs that ran at its start."""
        known = self.order.released_by.get(job.id)
        if known is None or known[0] is not job:
            known = self.order.released_by[job.id] = (job, *_released_by(self.rollout.snapshot, job))
        return known[1:]

    def _go_on(self) -> None:
        enough = len(self.rollout.starts) + self.most_starts
        while self.rollout.wanted and len(self.rollout.starts) < enough:
            step = max(LEAST_STEP_SECONDS, (self._now - self._since) * STEP_PART)
            if self._scores is not None:
                is_new = self._scores.go_on(self._now)
                for line in self._lines:
                    line.begin_step(step, rescored=is_new)
            self._start_what_fits()
            now = min(self._ends[0][0] if self._ends else math.inf, self._arrives_at())
            if now > self._since + HORIZON_SECONDS:
                return
            self._now = now
            self._end_until(self._now + step)
            self._arrive_until(self._now + step)
            self.rollout.pause()

    def _arrives_at(self) -> float:
        coming = self.rollout.next_arrival
        return math.inf if coming is None else coming.queued_at or 0.0

    def _arrive_until(self, until: float) -> None:
        snapshot, lengths = self.rollout.snapshot, self.rollout.lengths
        jobs = (job for job in self.rollout.arrived(until) if job.queue in snapshot.queues)
        for waiting in self.order.waiting(snapshot, jobs, lengths):
            key = line_of(waiting.job)
            line = self._line_of.get(key)
            if line is None:
                line = self._add_line(key, self._scores or Scores(snapshot, self._now))
            line.arrive(waiting)

    def _add_line(self, key: LineKey, scores: Scores) -> CountedLine:
        line = CountedLine(self.rollout.snapshot, key, self.order, self.rollout.starts, scores)
        self._lines.append(line)
        self._line_of[key] = line
        return line

    def _start_what_fits(self) -> None:
        """Line by line, the longest waiting first job first. A job that does not fit blocks its domains."""
        blocked: set[Domain] = set()
        lines = [line for line in self._lines if line.head is not None]
        while lines:
            line = min(lines, key=_first_waits_since) if len(lines) > 1 else lines[0]
            head = line.head
            if head is None or not self._start(line, head, blocked):
                blocked.update(line.domains)
                lines.remove(line)

    def _start(self, line: CountedLine, waiting: Waiting, blocked: set[Domain]) -> bool:
        """Whether the line continues: the job has started, or only a limit of its user holds it and other jobs pass."""
        if self._is_limited and (rule := self._held_by_rule(waiting.job)) is not None:
            if rule in SHARED:
                return False
            line.pop()
            key = ANY_USER if rule == MOUNT else waiting.user
            self._aside.setdefault(key, deque()).append((line, waiting))
            return True
        need, free = waiting.need, self._free
        for domain in line.domains:
            if free.get(domain, 0) >= need and domain not in blocked:
                break
        else:
            return False
        line.pop()
        free[domain] -= need
        self.rollout.starts.setdefault(waiting.id, self._now)
        self.rollout.wanted.discard(waiting.id)
        seconds = seconds_from_start(waiting.length, waiting.serial, self.rollout.sample)
        heapq.heappush(self._ends, (self._now + seconds, waiting.serial, waiting.job, domain, need))
        if self._scores is not None:
            self._scores.usage[waiting.user, domain[1]] += waiting.gpus
        if self._is_limited:
            self.rollout.snapshot.held.add(waiting.job)
            self._retry(waiting.user)
        return True

    def _held_by_rule(self, job: Job) -> str | None:
        reason = first_reason(self.rollout.snapshot, job, max(self._now, job.not_before))
        return None if reason is None else reason.rule

    def _end_until(self, until: float) -> None:
        free, ends = self._free, self._ends
        while ends and ends[0][0] <= until:
            _, _, job, domain, need = heapq.heappop(ends)
            free[domain] = free.get(domain, 0) + need
            if self._scores is not None and domain is not EVERYWHERE:
                self._scores.usage[job.user, domain[1]] -= need / WHOLE
            if self._is_limited:
                self.rollout.snapshot.held.remove(job)
                self._retry(job.user)
                if job.mounts:
                    self._retry(ANY_USER)

    def _retry(self, user: str) -> None:
        aside = self._aside.get(user)
        if aside:
            line, waiting = aside.popleft()
            line.put_back(waiting)


def _first_waits_since(line: CountedLine) -> tuple[float, int]:
    return (math.inf, 0) if line.head is None else (line.head.since, line.head.serial)


def _free_of(snapshot: ClusterSnapshot) -> dict[Domain, int]:
    """Free resources by domain. CPUs are counted for jobs without GPUs only."""
    free: dict[Domain, int] = {EVERYWHERE: 0}
    for slot in snapshot.fleet.slots:
        for domain, gpus in slot.domains.items():
            if domain == EVERYWHERE:
                free[domain] += slot.node.cpu_milli
            else:
                free[domain] = free.get(domain, 0) + sum(slot.free_milli[gpu] for gpu in gpus)
    for _, _, job_id in snapshot.releases:
        if not snapshot.jobs[job_id].request.wants_gpu:
            free[EVERYWHERE] -= _released_by(snapshot, snapshot.jobs[job_id])[1]
    return free


def _released_by(snapshot: ClusterSnapshot, job: Job) -> tuple[Domain, int]:
    """The resources that the job releases at its end, without nodes and GPUs that take no new jobs."""
    assert job.allocation is not None
    fleet = snapshot.fleet
    grants = [grant for grant in job.allocation.grants if grant.node in fleet.place_of]
    slots = [(grant, fleet.slot(grant.node)) for grant in grants]
    if not job.request.wants_gpu:
        return EVERYWHERE, sum(grant.cpu_milli for grant, slot in slots if EVERYWHERE in slot.domains)
    for grant, slot in slots:
        for domain, gpus in slot.domains.items():
            if domain != EVERYWHERE and grant.gpus and grant.gpus[0] in gpus:
                usable = sum(gpu in one.domains.get(domain, ()) for part, one in slots for gpu in part.gpus)
                return domain, usable * grant.gpu_milli
    return EVERYWHERE, 0
