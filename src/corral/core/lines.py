"""Waiting lines: the queued jobs, kept in order while they come and go.

A line is what a queue's policy orders: jobs of one queue, one GPU model, and either single-node jobs or gangs. Within
a line each user's jobs are one sequence, split by shape: jobs of one shape fit or do not fit together, so that a
cycle can step over thousands of them at once. Keeping a line current costs a search; nothing is sorted anew per
cycle.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from typing import NamedTuple

from corral.core.model import Job, JobKind, Request
from corral.core.ordering import POLICIES, OrderingPolicy, SortKey
from corral.core.ordering.cost import OrderingRules

#: Orders a job among its user's own, and names it.
Entry = tuple[SortKey, str]


class LineKey(NamedTuple):
    queue: str
    #: a GPU model, several joined by "|", "any", or "cpu"
    model: str
    is_gang: bool


class Shape(NamedTuple):
    """What decides, apart from whose job it is, whether a job can start."""

    request: Request
    #: quotas are per kind
    kind: JobKind
    #: how long it holds what it gets, at the latest; None without a limit
    held_seconds: float | None
    avoid_nodes: tuple[str, ...]
    avoid_gpus: tuple[str, ...]


def line_of(job: Job) -> LineKey:
    request = job.request
    model = ("|".join(request.models) or "any") if request.wants_gpu else "cpu"
    return LineKey(job.queue, model, request.is_gang)


def shape_of(job: Job) -> Shape:
    held_seconds = None if job.time_limit_seconds is None else job.time_limit_seconds + job.grace_seconds
    return Shape(job.request, job.kind, held_seconds, job.avoid_nodes, job.avoid_gpus)


class Line:
    """One line. Jobs enter with `add` and leave with `remove`, in any order."""

    def __init__(self, key: LineKey, policy_name: str, rules: OrderingRules = OrderingRules()) -> None:  # noqa: B008 - an immutable value
        self.key = key
        self.policy: OrderingPolicy = POLICIES[policy_name]
        self.rules = rules
        self.jobs: dict[str, Job] = {}
        self._pinned: list[Entry] = []
        self._users: dict[str, dict[int, list[Entry]]] = {}
        #: the first job of each user's sequence, worked out when it is asked for
        self._heads: dict[str, Entry] = {}
        #: shapes are numbered, because a walk compares them all the time
        self._numbers: dict[Shape, int] = {}
        #: how many jobs have each shape: one that nobody has is forgotten, in a line that is never empty too
        self._population: dict[int, int] = {}
        self._next_number = 0

    def add(self, job: Job) -> None:
        self.jobs[job.id] = job
        self._heads.pop(job.user, None)
        number = self.number_of(job)
        self._population[number] = self._population.get(number, 0) + 1
        insort(self._list_of(job), self._entry(job))

    def remove(self, job: Job) -> None:
        """`job` as it was added."""
        entries = self._list_of(job)
        entry = self._entry(job)
        place = bisect_left(entries, entry)
        if place == len(entries) or entries[place] != entry:
            raise KeyError(f"job {job.id} is not in line {self.key}")
        del entries[place]
        del self.jobs[job.id]
        self._heads.pop(job.user, None)
        number = self.number_of(job)
        if not entries and job.pinned_at is None:
            groups = self._users[job.user]
            del groups[number]
            if not groups:
                del self._users[job.user]
        self._population[number] -= 1
        if not self._population[number]:
            del self._population[number], self._numbers[shape_of(job)]

    def cursor(self, score_of: Callable[[str], float]) -> LineCursor:
        """A walk through the line in the policy's order. The line must not change meanwhile."""
        return LineCursor(self, self._pinned, self._users, score_of)

    def own_sequence(self, user: str) -> list[Job]:
        """One user's jobs in the user's own order."""
        groups = self._users.get(user, {})
        return [self.jobs[job_id] for _, job_id in sorted(entry for group in groups.values() for entry in group)]

    def head_of(self, user: str) -> Job:
        """The first of a user's jobs, pinned ones apart. The user must have one."""
        head = self._heads.get(user)
        if head is None:
            head = self._heads[user] = min(group[0] for group in self._users[user].values())
        return self.jobs[head[1]]

    def number_of(self, job: Job) -> int:
        """The number of the job's shape in this line."""
        shape = shape_of(job)
        number = self._numbers.get(shape)
        if number is None:
            number = self._numbers[shape] = self._next_number
            self._next_number += 1
        return number

    def _list_of(self, job: Job) -> list[Entry]:
        if job.pinned_at is not None:
            return self._pinned
        return self._users.setdefault(job.user, {}).setdefault(self.number_of(job), [])

    def _entry(self, job: Job) -> Entry:
        if job.pinned_at is not None:
            return ((-job.pinned_at, job.serial), job.id)
        return (self.policy.own_key(job, self.rules), job.id)


class _Group:
    """One user's jobs of one shape, and how far they were walked."""

    __slots__ = ("at", "entries", "shape")

    def __init__(self, shape: int, entries: list[Entry]) -> None:
        self.shape = shape
        self.entries = entries
        self.at = 0


class LineCursor:
    """Walks a line: pinned jobs first, then the users' sequences merged by the policy.

    Skipped jobs leave the sequences: the order is that of what can still start.
    """

    def __init__(
        self,
        line: Line,
        pinned: list[Entry],
        users: dict[str, dict[int, list[Entry]]],
        score_of: Callable[[str], float],
    ) -> None:
        self._line = line
        self._merge_key = line.policy.merge_key
        self._rules = line.rules
        self._scores = {user: score_of(user) if line.policy.uses_score else 0.0 for user in users}
        self._pinned = pinned
        self._next_pinned = 0
        self._users = users
        #: only of users whose turn has come: most walks end long before they have seen everybody
        self._groups: dict[str, list[_Group]] = {}
        self._skipped: set[int] = set()
        self._skipped_for: set[tuple[str, int]] = set()
        self._heap = [
            (self._merge_key(line.head_of(user), score, line.rules), user) for user, score in self._scores.items()
        ]
        heapq.heapify(self._heap)

    def skip_like(self, job: Job) -> None:
        """No job of this shape can start any more in this walk."""
        self._skipped.add(self._line.number_of(job))

    def skip_own_like(self, job: Job) -> None:
        """No job of this shape and this user can start any more in this walk."""
        self._skipped_for.add((job.user, self._line.number_of(job)))

    def peek(self) -> Job | None:
        """The next job, without stepping on."""
        return self._peek_pinned() or self._peek_users()

    def pop(self) -> Job | None:
        """The next job; the walk goes on behind it."""
        job = self._peek_pinned()
        if job is not None:
            self._next_pinned += 1
            return job
        job = self._peek_users()
        if job is None:
            return None
        group = self._head(job.user)
        assert group is not None
        group.at += 1
        following = self._head(job.user)
        if following is None:
            heapq.heappop(self._heap)
        else:
            heapq.heapreplace(self._heap, (self._key(job.user, following), job.user))
        return job

    def __iter__(self) -> Iterator[Job]:
        while (job := self.pop()) is not None:
            yield job

    def _peek_pinned(self) -> Job | None:
        while self._next_pinned < len(self._pinned):
            job = self._line.jobs[self._pinned[self._next_pinned][1]]
            shape = self._line.number_of(job)
            if shape not in self._skipped and (job.user, shape) not in self._skipped_for:
                return job
            self._next_pinned += 1
        return None

    def _peek_users(self) -> Job | None:
        while self._heap:
            key, user = self._heap[0]
            group = self._head(user)
            if group is None:
                heapq.heappop(self._heap)
                continue
            present = self._key(user, group)
            if present <= key:
                return self._line.jobs[group.entries[group.at][1]]
            # What stood at the head was skipped; the user falls back to where the next job belongs.
            heapq.heapreplace(self._heap, (present, user))
        return None

    def _head(self, user: str) -> _Group | None:
        """The group whose next job is the user's next; groups that are skipped or walked to their end are dropped."""
        groups = self._groups.get(user)
        if groups is None:
            groups = self._groups[user] = [_Group(*item) for item in self._users[user].items()]
        head: _Group | None = None
        dropped = False
        for group in groups:
            if self._is_over(user, group):
                dropped = True
            elif head is None or group.entries[group.at] < head.entries[head.at]:
                head = group
        if dropped:
            self._groups[user] = [group for group in groups if not self._is_over(user, group)]
        return head

    def _is_over(self, user: str, group: _Group) -> bool:
        return (
            group.at == len(group.entries) or group.shape in self._skipped or (user, group.shape) in self._skipped_for
        )

    def _key(self, user: str, group: _Group) -> SortKey:
        return self._merge_key(self._line.jobs[group.entries[group.at][1]], self._scores[user], self._rules)
