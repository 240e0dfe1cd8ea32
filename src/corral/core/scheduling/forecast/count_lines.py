"""Waiting lines for the part of a rollout in which GPUs are only counted: see `count_rollout`."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from corral.core.model import WHOLE, Job
from corral.core.people.scores import score_at
from corral.core.scheduling.forecast.remaining_time import Length
from corral.core.scheduling.limits.hold_rules import all_reasons
from corral.core.scheduling.ordering import POLICIES, SortKey
from corral.core.scheduling.placement.search import could_ever_fit
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.held_resources import Usage
from corral.core.snapshot.node_index import EVERYWHERE, Domain
from corral.core.snapshot.waiting_lines import CHECKS, LineKey

LEAST_STEP_SECONDS = 1.0
#: Scores are recomputed after this part of their time constant.
_SCORE_PART = 0.005


class Waiting:
    """A waiting job with values that are read very often."""

    __slots__ = ("gpus", "id", "job", "length", "need", "serial", "since", "user")

    def __init__(self, job: Job, length: Length) -> None:
        self.job = job
        self.id = job.id
        self.user = job.user
        self.serial = job.serial
        self.length = length
        #: thousandths of GPUs or CPUs that it takes of its domain
        self.need = need_of(job)
        self.gpus = job.request.total_gpu_milli / WHOLE
        self.since = job.created_at if job.queued_at is None else job.queued_at


class Order:
    """The lines of a snapshot in order, computed once for all rollouts that start from it."""

    def __init__(self, snapshot: ClusterSnapshot, lengths: Mapping[str, Length]) -> None:
        self.plain: dict[LineKey, list[Waiting]] = {}
        #: for policies that use the score: by user
        self.users: dict[LineKey, dict[str, list[Waiting]]] = {}
        self._could_run: dict[object, bool] = {}
        #: by running job: the resources that it releases at its end
        self.released_by: dict[str, tuple[Job, Domain, int]] = {}
        for key, line in snapshot.lines.items():
            queue = snapshot.queues.get(key.queue)
            if queue is None:
                continue
            if not line.policy.uses_score:
                jobs = line.in_order(lambda user: 0.0)
                self.plain[key] = [*self.waiting(snapshot, jobs, lengths)]
                continue
            pinned = [job for job in line.jobs.values() if job.pinned_at is not None]
            pinned.sort(key=lambda job: (-(job.pinned_at or 0.0), job.serial))
            self.plain[key] = [*self.waiting(snapshot, pinned, lengths)]
            users = sorted({job.user for job in line.jobs.values()})
            self.users[key] = {user: [*self.waiting(snapshot, line.own_sequence(user), lengths)] for user in users}

    def waiting(
        self, snapshot: ClusterSnapshot, jobs: Iterable[Job], lengths: Mapping[str, Length]
    ) -> Iterator[Waiting]:
        """The jobs without those that could never run, which block no other job."""
        for job in jobs:
            pool = snapshot.queues[job.queue].pool
            alike = (
                *(job.queue, job.user, job.kind, job.request, job.preemptible, job.mounts),
                *(job.avoid_nodes, job.avoid_gpus),
            )
            if alike not in self._could_run:
                self._could_run[alike] = _could_run(snapshot, job, pool)
            if self._could_run[alike]:
                yield Waiting(job, lengths[job.id])


class Scores:
    """The scores of all users, recomputed in steps that are short compared with the time constant."""

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
        """Whether the scores were recomputed."""
        if not self._is_first and now - self._at < self._time_constant * _SCORE_PART:
            return False
        kept = math.exp(-(now - self._at) / self._time_constant)
        for key, usage in self.usage.items():
            self._values[key] = self._values.get(key, 0.0) * kept + usage * (1.0 - kept)
        self._at, self._is_first = now, False
        return True

    def of(self, user: str, models: Sequence[str]) -> float:
        return sum(self._values.get((user, model), 0.0) for model in models)


class CountedLine:
    """One line in one rollout; `head` is the next job."""

    def __init__(
        self,
        snapshot: ClusterSnapshot,
        key: LineKey,
        order: Order,
        started: Mapping[str, float],
        scores: Scores,
    ) -> None:
        queue = snapshot.queues[key.queue]
        self.domains = _domains_of(snapshot, key, queue.pool)
        self.head: Waiting | None = None
        self._again: deque[Waiting] = deque()
        self._policy = POLICIES[queue.policy]
        self._rules = snapshot.ordering
        self._time_constant = snapshot.score_time_constant
        self._plain = _Walk(order.plain.get(key, ()), started)
        #: jobs that arrived meanwhile, if the policy uses no score
        self._late: list[tuple[SortKey, int, Waiting]] = []
        self._walks = {user: _Walk(jobs, started) for user, jobs in order.users.get(key, {}).items()}
        self._started = started
        self._is_scored = self._policy.uses_score
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

    def arrive(self, waiting: Waiting) -> None:
        """Add a job, behind the other jobs of its user or by the order of the policy."""
        if not self._is_scored:
            heapq.heappush(self._late, (self._policy.merge_key(waiting.job, 0.0, self._rules), waiting.serial, waiting))
        else:
            walk = self._walks.setdefault(waiting.user, _Walk((), self._started))
            walk.append(waiting)
            if walk.head is waiting:
                heapq.heappush(self._heap, (self._place(waiting.user, waiting), waiting.user))
        self._find_head()

    def put_back(self, waiting: Waiting) -> None:
        """The job is next again."""
        self._again.append(waiting)
        self._find_head()

    def pop(self) -> None:
        """Remove the head."""
        if self._again:
            self._again.popleft()
        elif self._late and self._late[0][2] is self.head:
            heapq.heappop(self._late)
        elif self._plain.head is not None:
            self._plain.step()
        else:
            place, user = self._heap[0]
            walk = self._walks[user]
            assert walk.head is not None
            # The start raises the user's score at the end of the step; that is counted now.
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
        elif self._late:
            self.head = self._first_of_both(self._late[0])
        elif self._plain.head is not None or not self._heap:
            self.head = self._plain.head
        else:
            self.head = self._walks[self._heap[0][1]].head

    def _first_of_both(self, late: tuple[SortKey, int, Waiting]) -> Waiting:
        head = self._plain.head
        if head is not None and self._policy.merge_key(head.job, 0.0, self._rules) <= late[0]:
            return head
        return late[2]

    def _place(self, user: str, head: Waiting) -> SortKey:
        return self._policy.merge_key(head.job, self._scores.of(user, self._models), self._rules)


class _Walk:
    """Iterates over jobs and skips those that have started already."""

    __slots__ = ("_jobs", "_late", "_started", "head")

    def __init__(self, jobs: Sequence[Waiting], started: Mapping[str, float]) -> None:
        self._jobs = iter(jobs)
        self._late: deque[Waiting] = deque()
        self._started = started
        self.head: Waiting | None = None
        self.step()

    def step(self) -> None:
        started = self._started
        for job in self._jobs:
            if job.id not in started:
                self.head = job
                return
        self.head = self._late.popleft() if self._late else None

    def append(self, waiting: Waiting) -> None:
        self._late.append(waiting)
        if self.head is None:
            self.step()


def _could_run(snapshot: ClusterSnapshot, job: Job, pool: str) -> bool:
    """Whether the job could run if no other job held resources."""
    held = snapshot.held
    snapshot.held = Usage()
    try:
        reasons = all_reasons(snapshot, job, job.not_before)
        # The GPUs of a guarantee may be free later.
        is_free = all(reason.rule == "owed" and not reason.is_permanent for reason in reasons)
    finally:
        snapshot.held = held
    return is_free and could_ever_fit(snapshot.fleet, job, pool)


def _domains_of(snapshot: ClusterSnapshot, key: LineKey, pool: str) -> list[Domain]:
    if key.model in ("cpu", CHECKS):
        return [EVERYWHERE]
    models = () if key.model == "any" else tuple(key.model.split("|"))
    return [index.domain for index in snapshot.fleet.domains_of(pool, models)]


def need_of(job: Job) -> int:
    request = job.request
    return request.total_gpu_milli if request.wants_gpu else request.nodes * request.cpu_milli
