"""The rest of a supposed course, where looking at every node for every job would take too long: GPUs are counted by
pool and model, as if all of them stood in one node, and ends that are near to each other are taken as one.

Order, limits, shares and guessed run times are those of the scheduler; what is left out is who fits where, and who
passes whom. The further away a start is, the less these say anyway.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from corral.core.accounting import score_at
from corral.core.claims import SHARED
from corral.core.coming import HORIZON_SECONDS, Course
from corral.core.fleet import EVERYWHERE, Domain
from corral.core.lasting import Length, seconds_from_start
from corral.core.lines import LineKey
from corral.core.model import WHOLE, Job, Limits
from corral.core.ordering import POLICIES, SortKey
from corral.core.placing import could_ever_fit
from corral.core.rules import first_reason
from corral.core.snapshot import ClusterSnapshot
from corral.core.usage import Usage

#: Ends within this part of the time looked ahead are one: a start in an hour is told to the quarter of a minute.
STEP_PART = 0.004
LEAST_STEP_SECONDS = 1.0
#: Scores are worked out anew after this part of the time over which they look back.
_SCORE_PART = 0.005


class Waiting:
    """A waiting job with what is asked of it again and again."""

    __slots__ = ("gpus", "id", "job", "length", "need", "serial", "since", "user")

    def __init__(self, job: Job, length: Length) -> None:
        self.job = job
        self.id = job.id
        self.user = job.user
        self.serial = job.serial
        self.length = length
        #: thousandths of what it takes of its domain
        self.need = _need(job)
        self.gpus = job.request.total_gpu_milli / WHOLE
        self.since = job.created_at if job.queued_at is None else job.queued_at


class Order:
    """The lines of a picture as they stand, worked out once for all courses that begin there."""

    def __init__(self, snapshot: ClusterSnapshot, lengths: Mapping[str, Length]) -> None:
        self.plain: dict[LineKey, list[Waiting]] = {}
        #: where the order is by score: each user's own
        self.users: dict[LineKey, dict[str, list[Waiting]]] = {}
        could_run: dict[object, bool] = {}

        def told(jobs: Sequence[Job], pool: str) -> list[Waiting]:
            """Without those that could never run: they hold up nobody."""
            found = []
            for job in jobs:
                alike = (pool, job.user, job.kind, job.request, job.avoid_nodes, job.avoid_gpus)
                if alike not in could_run:
                    could_run[alike] = _could_run(snapshot, job, pool)
                if could_run[alike]:
                    found.append(Waiting(job, lengths[job.id]))
            return found

        for key, line in snapshot.lines.items():
            queue = snapshot.queues.get(key.queue)
            if queue is None:
                continue
            if not line.policy.uses_score:
                self.plain[key] = told(list(line.in_order(lambda user: 0.0)), queue.pool)
                continue
            pinned = [job for job in line.jobs.values() if job.pinned_at is not None]
            self.plain[key] = told(sorted(pinned, key=lambda job: (-(job.pinned_at or 0.0), job.serial)), queue.pool)
            users = sorted({job.user for job in line.jobs.values()})
            self.users[key] = {user: told(line.own_sequence(user), queue.pool) for user in users}


@dataclass(slots=True)
class Counted:
    """Goes on where `course` stopped, and adds to its starts."""

    course: Course
    order: Order
    #: it ends when so many have started
    most_starts: float = math.inf
    pause: Callable[[], None] = lambda: None
    _now: float = 0.0
    _since: float = 0.0
    _free: dict[Domain, int] = field(default_factory=dict)
    #: when, the number of a job, the job, its domain, and what comes back
    _ends: list[tuple[float, int, Job, Domain, int]] = field(default_factory=list)
    _lines: list[_CountedLine] = field(default_factory=list)
    #: where somebody is ordered by them
    _scores: _Scores | None = None
    _is_limited: bool = False
    #: jobs that a limit of their user's holds: looked at again when one of the user's jobs ends
    _aside: dict[str, deque[tuple[_CountedLine, Waiting]]] = field(default_factory=dict)

    def run(self) -> None:
        snapshot = self.course.snapshot
        held = snapshot.held
        # Limits are checked against what is held, and here nothing is really taken.
        snapshot.held = held.copy()
        try:
            self._begin(snapshot)
            self._go_on()
        finally:
            snapshot.held = held

    def _begin(self, snapshot: ClusterSnapshot) -> None:
        course = self.course
        self._now = self._since = course.now
        self._free = _free_of(snapshot)
        self._ends = [
            (at, serial, job, *_comes_back(snapshot, job))
            for at, serial, job_id, attempt in course.ends
            if (job := snapshot.jobs.get(job_id)) is not None and job.attempt == attempt
        ]
        heapq.heapify(self._ends)
        scores = _Scores(snapshot, course.now)
        self._lines = [_CountedLine(snapshot, key, self.order, course.starts, scores) for key in self.order.plain]
        self._scores = scores if any(line.is_scored for line in self._lines) else None
        self._is_limited = (
            snapshot.limits != Limits()
            or bool(snapshot.quotas)
            or bool(snapshot.memberships)
            or any(queue.max_gpus is not None for queue in snapshot.queues.values())
        )

    def _go_on(self) -> None:
        enough = len(self.course.starts) + self.most_starts
        while len(self.course.starts) < enough:
            step = max(LEAST_STEP_SECONDS, (self._now - self._since) * STEP_PART)
            if self._scores is not None:
                is_new = self._scores.go_on(self._now)
                for line in self._lines:
                    line.begin_step(step, rescored=is_new)
            self._start_what_fits()
            if not self._ends or not (any(self._aside.values()) or any(line.head for line in self._lines)):
                return
            self._now = self._ends[0][0]
            if self._now > self._since + HORIZON_SECONDS:
                return
            self._end_until(self._now + step)
            self.pause()

    def _start_what_fits(self) -> None:
        """Line by line, in the order of how long their first jobs wait. Whoever does not fit keeps its domains."""
        blocked: set[Domain] = set()
        lines = [line for line in self._lines if line.head is not None]
        while lines:
            line = min(lines, key=_first_waits_since) if len(lines) > 1 else lines[0]
            head = line.head
            if head is None or not self._start(line, head, blocked):
                blocked.update(line.domains)
                lines.remove(line)

    def _start(self, line: _CountedLine, waiting: Waiting, blocked: set[Domain]) -> bool:
        """Whether the line may go on: the job has started, or a limit of its own holds it and others pass."""
        if self._is_limited and (rule := self._held_by_rule(waiting.job)) is not None:
            if rule in SHARED:
                return False
            line.pop()
            self._aside.setdefault(waiting.user, deque()).append((line, waiting))
            return True
        need, free = waiting.need, self._free
        for domain in line.domains:
            if free.get(domain, 0) >= need and domain not in blocked:
                break
        else:
            return False
        line.pop()
        free[domain] -= need
        self.course.starts.setdefault(waiting.id, self._now)
        seconds = seconds_from_start(waiting.length, waiting.serial, self.course.mood)
        heapq.heappush(self._ends, (self._now + seconds, waiting.serial, waiting.job, domain, need))
        if self._scores is not None:
            self._scores.usage[waiting.user, domain[1]] += waiting.gpus
        if self._is_limited:
            self.course.snapshot.held.add(waiting.job)
            self._look_again(waiting.user)
        return True

    def _held_by_rule(self, job: Job) -> str | None:
        reason = first_reason(self.course.snapshot, job, max(self._now, job.not_before))
        return None if reason is None else reason.rule

    def _end_until(self, until: float) -> None:
        free, ends = self._free, self._ends
        while ends and ends[0][0] <= until:
            _, _, job, domain, need = heapq.heappop(ends)
            free[domain] = free.get(domain, 0) + need
            if self._scores is not None and domain is not EVERYWHERE:
                self._scores.usage[job.user, domain[1]] -= need / WHOLE
            if self._is_limited:
                self.course.snapshot.held.remove(job)
                self._look_again(job.user)

    def _look_again(self, user: str) -> None:
        aside = self._aside.get(user)
        if aside:
            line, waiting = aside.popleft()
            line.put_back(waiting)


class _Scores:
    """Everybody's score, worked out in steps that are short beside the time over which it looks back."""

    def __init__(self, snapshot: ClusterSnapshot, now: float) -> None:
        self._time_constant = snapshot.score_time_constant
        self._at = now
        self._is_first = True
        self.usage: dict[tuple[str, str], float] = defaultdict(float)
        self._values: dict[tuple[str, str], float] = {}
        for key, score in snapshot.scores.items():
            self.usage[key] = score.usage
            self._values[key] = score_at(score, now, self._time_constant)

    def go_on(self, now: float) -> bool:
        """Whether there are new ones."""
        if not self._is_first and now - self._at < self._time_constant * _SCORE_PART:
            return False
        kept = math.exp(-(now - self._at) / self._time_constant)
        for key, usage in self.usage.items():
            self._values[key] = self._values.get(key, 0.0) * kept + usage * (1.0 - kept)
        self._at, self._is_first = now, False
        return True

    def of(self, user: str, models: Sequence[str]) -> float:
        return sum(self._values.get((user, model), 0.0) for model in models)


class _CountedLine:
    """One line as it is walked in one course; `head` is whose turn it is."""

    def __init__(
        self,
        snapshot: ClusterSnapshot,
        key: LineKey,
        order: Order,
        started: Mapping[str, float],
        scores: _Scores,
    ) -> None:
        queue = snapshot.queues[key.queue]
        self.domains = _domains_of(snapshot, key, queue.pool)
        self.head: Waiting | None = None
        self._again: deque[Waiting] = deque()
        self._policy = POLICIES[queue.policy]
        self._rules = snapshot.ordering
        self._time_constant = snapshot.score_time_constant
        self._plain = _Walk(order.plain[key], started)
        self._walks = {user: _Walk(jobs, started) for user, jobs in order.users.get(key, {}).items()}
        self.is_scored = bool(self._walks)
        self._scores = scores
        self._models = sorted({model for _, model in self.domains if model})
        self._heap: list[tuple[SortKey, str]] = []
        self._step = LEAST_STEP_SECONDS
        self._find_head()

    def begin_step(self, step: float, *, rescored: bool) -> None:
        self._step = step
        if rescored and self._walks:
            heads = ((user, walk.head) for user, walk in self._walks.items())
            self._heap = [(self._place(user, head), user) for user, head in heads if head is not None]
            heapq.heapify(self._heap)
            self._find_head()

    def put_back(self, waiting: Waiting) -> None:
        """It is its turn again."""
        self._again.append(waiting)
        self._find_head()

    def pop(self) -> None:
        """The head has gone; the next one is the head."""
        if self._again:
            self._again.popleft()
        elif self._plain.head is not None:
            self._plain.step()
        else:
            place, user = self._heap[0]
            walk = self._walks[user]
            assert walk.head is not None
            # Its user has had a turn: as much as that will weigh when the step is over, it weighs now.
            score = float(place[0]) + walk.head.gpus * self._step / self._time_constant
            walk.step()
            if walk.head is None:
                heapq.heappop(self._heap)
            else:
                heapq.heapreplace(self._heap, (self._policy.merge_key(walk.head.job, score, self._rules), user))
        self._find_head()

    def _find_head(self) -> None:
        if self._again:
            self.head = self._again[0]
        elif self._plain.head is not None or not self._heap:
            self.head = self._plain.head
        else:
            self.head = self._walks[self._heap[0][1]].head

    def _place(self, user: str, head: Waiting) -> SortKey:
        return self._policy.merge_key(head.job, self._scores.of(user, self._models), self._rules)


class _Walk:
    """Through jobs of which some have started already."""

    __slots__ = ("_jobs", "_started", "head")

    def __init__(self, jobs: Sequence[Waiting], started: Mapping[str, float]) -> None:
        self._jobs = iter(jobs)
        self._started = started
        self.head: Waiting | None = None
        self.step()

    def step(self) -> None:
        started = self._started
        for one in self._jobs:
            if one.id not in started:
                self.head = one
                return
        self.head = None


def _first_waits_since(line: _CountedLine) -> tuple[float, int]:
    return (math.inf, 0) if line.head is None else (line.head.since, line.head.serial)


def _could_run(snapshot: ClusterSnapshot, job: Job, pool: str) -> bool:
    """Whether it would run if nobody else held anything."""
    held = snapshot.held
    snapshot.held = Usage()
    try:
        is_free = first_reason(snapshot, job, job.not_before) is None
    finally:
        snapshot.held = held
    return is_free and could_ever_fit(snapshot.fleet, job, pool)


def _domains_of(snapshot: ClusterSnapshot, key: LineKey, pool: str) -> list[Domain]:
    if key.model == "cpu":
        return [EVERYWHERE]
    models = () if key.model == "any" else tuple(key.model.split("|"))
    return [index.domain for index in snapshot.fleet.domains_of(pool, models)]


def _free_of(snapshot: ClusterSnapshot) -> dict[Domain, int]:
    """CPUs beside GPUs go with the GPUs, and are not counted apart."""
    free: dict[Domain, int] = {EVERYWHERE: 0}
    for slot in snapshot.fleet.slots:
        for domain, gpus in slot.domains.items():
            if domain == EVERYWHERE:
                free[domain] += slot.node.cpu_milli
            else:
                free[domain] = free.get(domain, 0) + sum(slot.free_milli[gpu] for gpu in gpus)
    for _, _, job_id in snapshot.releases:
        if not snapshot.jobs[job_id].request.wants_gpu:
            free[EVERYWHERE] -= _comes_back(snapshot, snapshot.jobs[job_id])[1]
    return free


def _comes_back(snapshot: ClusterSnapshot, job: Job) -> tuple[Domain, int]:
    """What others can have when it ends: nothing of a node or a GPU that takes nothing new."""
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


def _need(job: Job) -> int:
    request = job.request
    return request.total_gpu_milli if request.wants_gpu else request.nodes * request.cpu_milli
