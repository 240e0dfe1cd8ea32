"""Waiting lines: the queued jobs, kept in order while they come and go.

A queue's policy orders each of its lines: jobs of one queue and one GPU model, and either single-node jobs or gangs.
Within a line each user's jobs are one sequence, grouped by shape: if a job finds no room, no job of the same shape that
runs as long or longer does, so that a cycle can skip thousands of them at once. An update of a line costs a binary
search; nothing is sorted again per cycle.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterator
from operator import itemgetter
from typing import NamedTuple

from corral.core.model import Job, JobKind, Request
from corral.core.scheduling.ordering import POLICIES, OrderingPolicy, SortKey
from corral.core.scheduling.ordering.cost import OrderingRules
from corral.core.snapshot.job_shapes import Entry, SameShape, count_ranked_before, own_orders, take_out
from corral.core.storage.volumes import VolumeMount

#: The line of checks: none of them stands before another job, whichever GPU it is for.
CHECKS = "checks"


class LineKey(NamedTuple):
    queue: str
    #: a GPU model, several joined by "|", "any", "cpu", or `CHECKS`
    model: str
    is_gang: bool


class Shape(NamedTuple):
    """Everything about a job, except its user, that decides whether it can start."""

    request: Request
    #: quotas are per kind
    kind: JobKind
    #: how long the job holds its resources, at most or as predicted; None if it is not known
    held_seconds: float | None
    avoid_nodes: tuple[str, ...]
    avoid_gpus: tuple[str, ...]
    #: a job that is not preemptible may not use GPUs that other queues are owed, nor borrow reserved ones
    preemptible: bool
    #: whether `held_seconds` is a prediction and not a time limit
    is_likely: bool = False
    #: the priority, if the order of the queue preempts; else 0, so that more jobs have the same shape
    priority: int = 0
    mounts: tuple[VolumeMount, ...] = ()
    only_gpus: tuple[str, ...] = ()


def line_of(job: Job) -> LineKey:
    request = job.request
    if job.only_gpus:
        return LineKey(job.queue, CHECKS, request.is_gang)
    model = ("|".join(request.models) or "any") if request.wants_gpu else "cpu"
    return LineKey(job.queue, model, request.is_gang)


def shape_of(job: Job, *, passes_from: float | None = None, is_ranked: bool = False) -> Shape:
    """`passes_from` is the least run time before a job that runs longer than predicted is preempted; None if preemption
    is off, and then no job is backfilled by its prediction. `is_ranked` says that the order preempts."""
    held_seconds, is_likely = None, False
    if job.time_limit_seconds is not None:
        held_seconds = job.time_limit_seconds + job.grace_seconds
    elif passes_from is not None and job.preemptible and job.predicted is not None:
        held_seconds, is_likely = max(passes_from, job.predicted.p90_seconds) + job.grace_seconds, True
    return Shape(
        job.request,
        job.kind,
        held_seconds,
        job.avoid_nodes,
        job.avoid_gpus,
        job.preemptible,
        is_likely,
        job.priority if is_ranked else 0,
        job.mounts,
        job.only_gpus,
    )


class Line:
    """One line. Jobs enter with `add` and leave with `remove`, in any order."""

    def __init__(
        self,
        key: LineKey,
        policy_name: str,
        rules: OrderingRules = OrderingRules(),  # noqa: B008 - an immutable value
        *,
        is_ranked: bool = False,
        passes_from: float | None = None,
    ) -> None:
        """`is_ranked` and `passes_from` are described at `shape_of`."""
        self.key = key
        self._is_ranked = is_ranked
        self._passes_from = passes_from
        self.policy: OrderingPolicy = POLICIES[policy_name]
        self.rules = rules
        self.jobs: dict[str, Job] = {}
        self._pinned: list[Entry] = []
        #: by user, then by the number of the shape without its time
        self._users: dict[str, dict[int, SameShape]] = {}
        #: a cache: the first job of each user's sequence
        self._heads: dict[str, Entry] = {}
        #: shapes are numbered, because numbers are compared faster
        self._numbers: dict[Shape, int] = {}
        #: by shape number: how many jobs have the shape; a shape without jobs is removed
        self._population: dict[int, int] = {}
        self._next_number = 0
        #: by shape number: the number of the shape without its time, and how long a job holds its resources
        self._lengths: dict[int, tuple[int, float]] = {}
        self._timeless: dict[Shape, int] = {}
        self._lengths_of: dict[int, int] = {}

    def add(self, job: Job) -> None:
        self.jobs[job.id] = job
        self._heads.pop(job.user, None)
        entry = self._entry(job)
        self._population[entry[2]] = self._population.get(entry[2], 0) + 1
        if job.pinned_at is not None:
            insort(self._pinned, entry)
        else:
            self._users.setdefault(job.user, {}).setdefault(self._lengths[entry[2]][0], SameShape()).add(entry)

    def remove(self, job: Job) -> None:
        """`job` as it was added."""
        if job.id not in self.jobs:
            raise KeyError(f"job {job.id} is not in line {self.key}")
        entry = self._entry(job)
        number, is_there = entry[2], False
        if job.pinned_at is not None:
            is_there = take_out(self._pinned, entry)
        elif (group := self._users.get(job.user, {}).get(self._lengths[number][0])) is not None:
            is_there = group.remove(entry)
            if not group.entries:
                self._drop_group(job.user, self._lengths[number][0])
        if not is_there:
            raise KeyError(f"job {job.id} is not in line {self.key}")
        del self.jobs[job.id]
        self._heads.pop(job.user, None)
        self._population[number] -= 1
        if not self._population[number]:
            del self._population[number]
            self._forget(self._shape_of(job))

    def cursor(self, score_of: Callable[[str], float], kind_of: Callable[[str], Hashable] | None = None) -> LineCursor:
        """A walk through the line in the policy's order. The line must not change meanwhile.

        `kind_of` returns different values for users of whom one may find room where another does not.
        """
        return LineCursor(self, self._pinned, self._users, score_of, kind_of)

    def in_order(self, score_of: Callable[[str], float], *, few: bool = False) -> Iterator[Job]:
        """The jobs in the order of a cursor. Nothing can be skipped, and so a step costs a fraction of a cursor's.
        With `few` only the jobs that are read are put in order; a walk through the whole line then takes longer."""
        jobs = self.jobs
        yield from (jobs[entry[1]] for entry in self._pinned)

        def keyed(user: str) -> Iterator[tuple[tuple[SortKey, str], Job]]:
            score = score_of(user) if self.policy.uses_score else 0.0
            groups = [group.entries for group in self._users[user].values()]
            for entry in heapq.merge(*groups) if few else self._own_entries(user):
                yield (self.merge_key(entry, score), user), jobs[entry[1]]

        for _, job in heapq.merge(*(keyed(user) for user in self._users), key=itemgetter(0)):
            yield job

    def has_jobs_of(self, user: str) -> bool:
        """Whether the line has jobs of the user. Pinned jobs are few, so they are searched one by one."""
        return user in self._users or any(self.jobs[entry[1]].user == user for entry in self._pinned)

    def own_sequence(self, user: str) -> list[Job]:
        """One user's jobs in the user's own order."""
        return [self.jobs[entry[1]] for entry in self._own_entries(user)]

    def count_before(self, job: Job, score_of: Callable[[str], float]) -> int:
        """The number of jobs before this one; computed without a walk."""
        entry = self._entry(job)
        if job.pinned_at is not None:
            return bisect_left(self._pinned, entry)
        score, rank = self._turn_of(job, score_of)
        count = len(self._pinned)
        for user, groups in self._users.items():
            if user == job.user:
                count += sum(bisect_left(group.entries, entry) for group in groups.values())
            elif (its := score_of(user) if self.policy.uses_score else 0.0) == score:
                count += count_ranked_before(groups, rank, by_own_order=self.policy.uses_own_order)
            elif its < score:
                count += sum(len(group.entries) for group in groups.values())
        return count

    def goes_before(self, job: Job, other: Job, score_of: Callable[[str], float]) -> bool:
        """Whether `job` goes before `other`; both are in the line."""
        if job.pinned_at is not None or other.pinned_at is not None or job.user == other.user:
            return (job.pinned_at is None, self._entry(job)) < (other.pinned_at is None, self._entry(other))
        return self._turn_of(job, score_of) < self._turn_of(other, score_of)

    def _turn_of(self, job: Job, score_of: Callable[[str], float]) -> tuple[float, SortKey]:
        """The sort key of a job that is not pinned, compared with other users' jobs: it waits for the jobs that its
        owner has put before it, whatever their rank is."""
        score = score_of(job.user) if self.policy.uses_score else 0.0
        key = self.policy.own_key(job, self.rules)
        if not self.policy.uses_own_order:
            return score, key
        first, *rank = key
        waits_for = [
            tuple(group.entries[place - 1][0][1:])
            for group in self._users[job.user].values()
            for order in own_orders(group)
            if order < first and (place := bisect_left(group.entries, ((order + 1,),)))
        ]
        return score, max([tuple(rank), *waits_for])

    def head_of(self, user: str) -> Entry:
        """The first job of a user that is not pinned. The user must have one."""
        head = self._heads.get(user)
        if head is None:
            head = self._heads[user] = min(group.entries[0] for group in self._users[user].values())
        return head

    def merge_key(self, entry: Entry, score: float) -> SortKey:
        """The sort key of a user with this next job and score. If the policy uses no score, users are merged by the
        keys of their own jobs, which are in the entry."""
        if not self.policy.uses_score:
            return entry[0]
        return self.policy.merge_key(self.jobs[entry[1]], score, self.rules)

    def number_of(self, job: Job) -> int:
        """The number of the job's shape in this line."""
        shape = self._shape_of(job)
        number = self._numbers.get(shape)
        return self._learn(shape) if number is None else number

    def length_of(self, number: int) -> tuple[int, float]:
        """The number of the shape without its time, and how long a job of the shape holds its resources."""
        return self._lengths[number]

    def _shape_of(self, job: Job) -> Shape:
        return shape_of(job, passes_from=self._passes_from, is_ranked=self._is_ranked)

    def _own_entries(self, user: str) -> list[Entry]:
        return sorted(entry for group in self._users.get(user, {}).values() for entry in group.entries)

    def _learn(self, shape: Shape) -> int:
        number = self._numbers[shape] = self._next_number
        self._next_number += 1
        timeless = self._timeless.setdefault(shape._replace(held_seconds=None), number)
        self._lengths_of[timeless] = self._lengths_of.get(timeless, 0) + 1
        self._lengths[number] = (timeless, math.inf if shape.held_seconds is None else shape.held_seconds)
        return number

    def _forget(self, shape: Shape) -> None:
        timeless, _ = self._lengths.pop(self._numbers.pop(shape))
        self._lengths_of[timeless] -= 1
        if not self._lengths_of[timeless]:
            del self._lengths_of[timeless], self._timeless[shape._replace(held_seconds=None)]

    def _drop_group(self, user: str, timeless: int) -> None:
        del self._users[user][timeless]
        if not self._users[user]:
            del self._users[user]

    def _entry(self, job: Job) -> Entry:
        number = self.number_of(job)
        pinned_at = job.pinned_at
        key: SortKey = self.policy.own_key(job, self.rules) if pinned_at is None else (-pinned_at, job.serial)
        return (key, job.id, number, self._lengths[number][1])


class _Group:
    """One user's jobs of the same shape, and how far they were walked."""

    __slots__ = ("at", "jobs", "timeless")

    def __init__(self, timeless: int, jobs: SameShape) -> None:
        self.timeless = timeless
        self.jobs = jobs
        self.at = 0


class LineCursor:
    """Walks a line: pinned jobs first, then the users' sequences merged by the policy.

    Skipped jobs leave the sequences: the order is that of what can still start.
    """

    def __init__(
        self,
        line: Line,
        pinned: list[Entry],
        users: dict[str, dict[int, SameShape]],
        score_of: Callable[[str], float],
        kind_of: Callable[[str], Hashable] | None = None,
    ) -> None:
        self._line = line
        self._scores = {user: score_of(user) if line.policy.uses_score else 0.0 for user in users}
        self._pinned = pinned
        self._next_pinned = 0
        self._users = users
        #: by user: a heap of the user's groups by their next job; built when the user's turn comes, because most walks
        #: end long before all users had a turn
        self._groups: dict[str, list[tuple[Entry, _Group]]] = {}
        self._kind_of = kind_of
        #: by the number of a shape without its time: from this length on no job can start
        self._skipped_from: dict[int, float] = {}
        #: the same by kind of user, if `kind_of` is given
        self._skipped_by_kind: dict[Hashable, dict[int, float]] = {}
        self._skipped_for: set[tuple[str, int]] = set()
        #: the same for one user alone: by user and the number of a shape without its time
        self._skipped_own: dict[tuple[str, int], float] = {}
        self._heap = [(line.merge_key(line.head_of(user), score), user) for user, score in self._scores.items()]
        heapq.heapify(self._heap)

    def skip_like(self, job: Job, at_least: float = math.inf) -> None:
        """Skip jobs of this shape for the rest of the walk, also those that run longer, or at least `at_least`
        seconds."""
        timeless, length = self._line.length_of(self._line.number_of(job))
        skipped = self._skipped_of(job.user)
        skipped[timeless] = min(length, at_least, skipped.get(timeless, math.inf))

    def skip_own_longer(self, job: Job, at_least: float) -> None:
        """Like `skip_like`, for jobs of this user only."""
        timeless, length = self._line.length_of(self._line.number_of(job))
        key = (job.user, timeless)
        self._skipped_own[key] = min(length, at_least, self._skipped_own.get(key, math.inf))

    def skip_own_like(self, job: Job) -> None:
        """Skip jobs of this shape and this user for the rest of the walk."""
        self._skipped_for.add((job.user, self._line.number_of(job)))

    def peek(self) -> Job | None:
        """The next job; the walk stays in front of it."""
        return self._peek_pinned() or self._peek_users()

    def pop(self) -> Job | None:
        """The next job; the walk continues behind it."""
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
        self._step_on(job.user, group)
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
            _, _, shape, length = self._pinned[self._next_pinned]
            if not self._is_skipped(job.user, shape, self._line.length_of(shape)[0], length):
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
                return self._line.jobs[group.jobs.entries[group.at][1]]
            # The user's first job was skipped; the user moves back to the position of the next job.
            heapq.heapreplace(self._heap, (present, user))
        return None

    def _head(self, user: str) -> _Group | None:
        """The group whose next job is the user's next."""
        groups = self._groups.get(user)
        if groups is None:
            groups = self._groups[user] = [
                (group.entries[0], _Group(timeless, group))
                for timeless, group in self._users[user].items()
                # In a long walk, most users have only jobs of shapes that are skipped already.
                if (since := self._skipped_since(user, timeless)) is None or group.lengths[0] < since
            ]
            heapq.heapify(groups)
        while groups:
            (_, _, shape, length), group = groups[0]
            if not self._is_skipped(user, shape, group.timeless, length):
                return group
            self._step_on(user, group)
        return None

    def _step_on(self, user: str, group: _Group) -> None:
        """Advance the user's first group to the next job that is not skipped; drop the group if there is none."""
        entries, end = group.jobs.entries, len(group.jobs.entries)
        since = self._skipped_since(user, group.timeless)
        if since is not None and since <= group.jobs.lengths[0]:
            group.at = end
        skipped_for, at = self._skipped_for, group.at
        while at < end and (
            (since is not None and entries[at][3] >= since) or (skipped_for and (user, entries[at][2]) in skipped_for)
        ):
            at += 1
        group.at = at
        if group.at < end:
            heapq.heapreplace(self._groups[user], (entries[group.at], group))
        else:
            heapq.heappop(self._groups[user])

    def _is_skipped(self, user: str, shape: int, timeless: int, length: float) -> bool:
        since = self._skipped_since(user, timeless)
        return (since is not None and length >= since) or (user, shape) in self._skipped_for

    def _skipped_since(self, user: str, timeless: int) -> float | None:
        """The length from which on no job of the user with this shape can start; None if there is none."""
        since = self._skipped_of(user).get(timeless)
        if not self._skipped_own or (own := self._skipped_own.get((user, timeless))) is None:
            return since
        return own if since is None else min(since, own)

    def _skipped_of(self, user: str) -> dict[int, float]:
        if self._kind_of is None:
            return self._skipped_from
        return self._skipped_by_kind.setdefault(self._kind_of(user), {})

    def _key(self, user: str, group: _Group) -> SortKey:
        return self._line.merge_key(group.jobs.entries[group.at], self._scores[user])
