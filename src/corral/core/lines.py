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

from corral.core.model import Job, Request
from corral.core.ordering import POLICIES, OrderingPolicy, SortKey

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
    time_limit_seconds: float | None
    avoid_nodes: tuple[str, ...]
    avoid_gpus: tuple[str, ...]


def line_of(job: Job) -> LineKey:
    request = job.request
    model = ("|".join(request.models) or "any") if request.wants_gpu else "cpu"
    return LineKey(job.queue, model, request.is_gang)


def shape_of(job: Job) -> Shape:
    return Shape(job.request, job.time_limit_seconds, job.avoid_nodes, job.avoid_gpus)


class Line:
    """One line. Jobs enter with `add` and leave with `remove`, in any order."""

    def __init__(self, key: LineKey, policy_name: str) -> None:
        self.key = key
        self.policy: OrderingPolicy = POLICIES[policy_name]
        self.jobs: dict[str, Job] = {}
        self._pinned: list[Entry] = []
        self._users: dict[str, dict[Shape, list[Entry]]] = {}

    def add(self, job: Job) -> None:
        self.jobs[job.id] = job
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
        if not entries and job.pinned_at is None:
            shapes = self._users[job.user]
            del shapes[shape_of(job)]
            if not shapes:
                del self._users[job.user]

    def cursor(self, score_of: Callable[[str], float]) -> LineCursor:
        """A walk through the line in the policy's order. The line must not change meanwhile."""
        return LineCursor(self, self._pinned, self._users, score_of)

    def own_sequence(self, user: str) -> list[Job]:
        """One user's jobs in the user's own order."""
        shapes = self._users.get(user, {})
        return [self.jobs[job_id] for _, job_id in sorted(entry for group in shapes.values() for entry in group)]

    def _list_of(self, job: Job) -> list[Entry]:
        if job.pinned_at is not None:
            return self._pinned
        return self._users.setdefault(job.user, {}).setdefault(shape_of(job), [])

    def _entry(self, job: Job) -> Entry:
        if job.pinned_at is not None:
            return ((-job.pinned_at, job.serial), job.id)
        return (self.policy.own_key(job), job.id)


class _Group:
    """One user's jobs of one shape, and how far they were walked."""

    __slots__ = ("at", "entries", "shape")

    def __init__(self, shape: Shape, entries: list[Entry]) -> None:
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
        users: dict[str, dict[Shape, list[Entry]]],
        score_of: Callable[[str], float],
    ) -> None:
        self._jobs = line.jobs
        self._merge_key = line.policy.merge_key
        self._scores = {user: score_of(user) if line.policy.uses_score else 0.0 for user in users}
        self._pinned = pinned
        self._next_pinned = 0
        self._groups = {user: [_Group(*item) for item in shapes.items()] for user, shapes in users.items()}
        self._blocked: set[Shape] = set()
        self._blocked_for: set[tuple[str, Shape]] = set()
        self._heap = [(self._key(user, group), user) for user in users if (group := self._head(user))]
        heapq.heapify(self._heap)

    def skip_shape(self, shape: Shape) -> None:
        """No job of this shape can start any more in this walk."""
        self._blocked.add(shape)

    def skip_shape_of(self, user: str, shape: Shape) -> None:
        """No job of this shape and user can start any more in this walk."""
        self._blocked_for.add((user, shape))

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
            job = self._jobs[self._pinned[self._next_pinned][1]]
            shape = shape_of(job)
            if shape not in self._blocked and (job.user, shape) not in self._blocked_for:
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
                return self._jobs[group.entries[group.at][1]]
            # What stood at the head was skipped; the user falls back to where the next job belongs.
            heapq.heapreplace(self._heap, (present, user))
        return None

    def _head(self, user: str) -> _Group | None:
        """The group whose next job is the user's next, less what is skipped or walked to its end."""
        groups = self._groups[user]
        open_groups = [
            group
            for group in groups
            if group.at < len(group.entries)
            and group.shape not in self._blocked
            and (user, group.shape) not in self._blocked_for
        ]
        if len(open_groups) < len(groups):
            self._groups[user] = open_groups
        if len(open_groups) <= 1:
            return open_groups[0] if open_groups else None
        return min(open_groups, key=lambda group: group.entries[group.at])

    def _key(self, user: str, group: _Group) -> SortKey:
        return self._merge_key(self._jobs[group.entries[group.at][1]], self._scores[user])
