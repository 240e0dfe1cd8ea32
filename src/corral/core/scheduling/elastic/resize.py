"""Elastic jobs: which of them shrink for other jobs, which release unused GPUs, and which grow into idle GPUs.

Every resize costs a restart, so each must be worth it. GPUs that other jobs need are released at once; all other
resizes wait until the last resize is some time ago, a checkpoint is recent, and the change is expected to pay.
A gang keeps its nodes and changes by equally many GPUs on each of them: sizes are GPUs per node.
Decisions are made within the trial of a scheduling cycle: GPUs of jobs that it starts, and GPUs that it holds for
planned starts, are not idle.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from corral.core.fleet.gpu_links import linked_to
from corral.core.model import (
    WHOLE,
    Allocation,
    Ceiling,
    Elastic,
    Grant,
    Job,
    JobKind,
    JobState,
)
from corral.core.people.quota import quota_kinds
from corral.core.scheduling.backfill.planned_allocation import end_if_started
from corral.core.scheduling.limits.hold_rules import spare_gpus
from corral.core.scheduling.plan.plan import Plan, Resize, ResizeCause, Start
from corral.core.scheduling.reservations.reservations import Reserved
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import ScalingRules
from corral.core.snapshot.node_index import Domain, Slot
from corral.core.snapshot.trial import Trial

#: The gain of a resize must be at least this multiple of its cost.
MARGIN = 2.0
#: How long a ceiling holds, in multiples of the least time between resizes; doubled each time.
CEILING_INTERVALS = 6
_MOST_DOUBLINGS = 12
#: How many waiting jobs a resize names at most.
_NAMED = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """The GPUs of an elastic job on one of its nodes."""

    slot: Slot
    #: the usable GPUs that the job holds, or will hold when its present resize is done; lowest index first
    gpus: tuple[str, ...]
    #: usable GPUs that are released when its present resize is done
    coming: frozenset[str]

    @property
    def node(self) -> str:
        return self.slot.node.id


@dataclass(frozen=True, kw_only=True, slots=True)
class Scalable:
    """An elastic job that can be resized now: it is starting, running or being resized."""

    job: Job
    elastic: Elastic
    domain: Domain
    #: in the order of its grants
    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        """The usable GPUs on each node."""
        return min(len(part.gpus) for part in self.parts)

    @property
    def is_releasing(self) -> bool:
        return any(part.coming for part in self.parts)

    @property
    def spare(self) -> int:
        """How many GPUs the job could release for other jobs, on each node."""
        return max(0, self.size - self.least)

    @property
    def least(self) -> int:
        """The number of GPUs that the job keeps for sure on each node. A program that never wrote a checkpoint would
        lose all its work: it is not restarted only to release GPUs, unless its owner allowed that."""
        if self.job.state is JobState.RUNNING and not _may_restart(self.job):
            return max(self.elastic.min_gpus, self.size)
        return self.elastic.min_gpus

    def at(self, count: int, more: Collection[str] = ()) -> Allocation:
        """The next allocation with `count` of the job's GPUs on each node, usable ones first, and the GPUs in
        `more`."""
        assert self.job.allocation is not None
        grants = zip(self.job.allocation.grants, self.parts, strict=True)
        return replace(self.job.allocation, grants=tuple(_at(grant, part, count, more) for grant, part in grants))

    def at_its_least(self) -> Job:
        """The job with its minimum."""
        return _holding(self.job, self.at(self.least))


def scalable_jobs(snapshot: ClusterSnapshot) -> list[Scalable]:
    """The oldest first. A job on a node that is not ready, or in a deleted queue, is left as it is."""
    found = []
    for job_id in sorted(snapshot.elastic, key=lambda job_id: snapshot.jobs[job_id].serial):
        job = snapshot.jobs[job_id]
        queue = snapshot.queues.get(job.queue)
        if queue is None or job.elastic is None or job.allocation is None:
            continue
        if job.state not in (JobState.STARTING, JobState.RUNNING) and not job.is_resizing:
            continue
        domain = (queue.pool, job.allocation.model)
        parts = tuple(_parts(snapshot, job, job.allocation, domain))
        if len(parts) == len(job.allocation.grants):
            found.append(Scalable(job=job, elastic=job.elastic, domain=domain, parts=parts))
    return found


def _parts(snapshot: ClusterSnapshot, job: Job, held: Allocation, domain: Domain) -> Iterator[Part]:
    """The parts of a job: one for each of its nodes that is ready and has usable GPUs of the job."""
    target = {*(job.next_allocation or held).gpus}
    for grant in held.grants:
        if grant.node not in snapshot.fleet.place_of:
            continue
        slot = snapshot.fleet.slot(grant.node)
        usable = [gpu for gpu in slot.domains.get(domain, ()) if gpu in grant.gpus]
        if usable:
            yield Part(
                slot=slot,
                gpus=tuple(gpu for gpu in usable if gpu in target),
                coming=frozenset(gpu for gpu in usable if gpu not in target),
            )


def _at(grant: Grant, part: Part, count: int, more: Collection[str]) -> Grant:
    kept = [*part.gpus, *(gpu for gpu in grant.gpus if gpu not in part.gpus and gpu not in part.coming)][:count]
    return _with_gpus(grant, part.slot, {*kept, *more})


def _with_gpus(grant: Grant, slot: Slot, chosen: Collection[str]) -> Grant:
    return replace(grant, gpus=tuple(gpu for gpu in slot.free_milli if gpu in chosen))


# ---------------------------------------------------------------- for others


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """The starts and planned starts that a cycle would decide if every elastic job had its minimum."""

    starts: Sequence[Start]
    #: jobs that would wait even then, and the allocation of their planned start
    promised: Sequence[tuple[Job, Allocation]]

    def on(self, node: str) -> Iterator[tuple[str, int, tuple[str, ...]]]:
        """Jobs that would get GPUs of the node: their ids, how many they ask for if they must wait, and the GPUs."""
        for start in self.starts:
            yield from ((start.job_id, 0, grant.gpus) for grant in start.allocation.grants if grant.node == node)
        for job, allocation in self.promised:
            asked = max(1, job.request.gpus)
            yield from ((job.id, asked, grant.gpus) for grant in allocation.grants if grant.node == node)


def make_room(snapshot: ClusterSnapshot, items: Sequence[Scalable], wanted: Wanted, now: float) -> list[Resize]:
    """The fewest and smallest resizes that let all jobs start that could start if every elastic job had its minimum.

    GPUs that a planned start needs are released too, as they would be held if they were free: then the start does not
    wait for a checkpoint later. No resources may be held for planned starts when this is called.
    """
    given = {item.job.id: 0 for item in items}
    for need in _needs(snapshot, items, wanted):
        short = need.gpus - sum(given[item.job.id] * need.counted(item) for item in items if need.concerns(item))
        while short > 0:
            able = [item for item in items if need.concerns(item) and item.spare > given[item.job.id]]
            if not able:
                break
            item = min(able, key=lambda item: _disturbance(item, given[item.job.id], short, need.counted(item)))
            taken = min(math.ceil(short / need.counted(item)), item.spare - given[item.job.id])
            given[item.job.id] += taken
            short -= taken * need.counted(item)
    return [_shrunk_for(item, given[item.job.id], snapshot, wanted, now) for item in items if given[item.job.id]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Need:
    """How many GPUs must be released by certain jobs."""

    gpus: int
    concerns: Callable[[Scalable], bool] = field(repr=False)
    #: whether GPUs on all nodes of a job help, or only those of one node
    everywhere: bool = False

    def counted(self, item: Scalable) -> int:
        """How many GPUs help if the job releases one on each of its nodes."""
        return len(item.parts) if self.everywhere else 1


def _needs(snapshot: ClusterSnapshot, items: Sequence[Scalable], wanted: Wanted) -> Iterator[_Need]:
    yield from _needs_on_nodes(items, wanted)
    yield from _needs_under_limits(snapshot, items, [snapshot.jobs[start.job_id] for start in wanted.starts])


def _needs_on_nodes(items: Sequence[Scalable], wanted: Wanted) -> Iterator[_Need]:
    """GPUs of a node that other jobs would use beyond those that are free there or are released anyway."""
    found: dict[tuple[str, Domain], list[tuple[Scalable, Part]]] = defaultdict(list)
    for item in items:
        for part in item.parts:
            found[part.node, item.domain].append((item, part))
    for (node, domain), here in found.items():
        slot = here[0][1].slot
        free = {*slot.whole_gpus(domain)}
        coming = {gpu for _, part in here for gpu in part.coming}
        spare = {gpu for item, part in here for gpu in part.gpus[len(part.gpus) - item.spare :]}
        # A job without room beside the minimums waits for the end of the elastic jobs: releasing GPUs does not help it.
        beside = len(slot.domains[domain]) - sum(len(part.gpus) - item.spare for item, part in here)
        used = {gpu for _, asked, gpus in wanted.on(node) if asked <= beside for gpu in gpus}
        missing = len(used & (free | coming | spare)) - len(free) - len(coming)
        if missing > 0:
            yield _Need(gpus=missing, concerns=_is_on(node, domain))


def _needs_under_limits(snapshot: ClusterSnapshot, items: Sequence[Scalable], wanted: Sequence[Job]) -> Iterator[_Need]:
    """GPUs that must be released, on any node, for a limit that the wanted starts would exceed."""
    for has, most, counts in _limits_on(snapshot, wanted):
        if most is None:
            continue
        asked = sum(job.request.total_gpu_milli for job in wanted if counts(job))
        coming = sum(len(part.coming) for item in items if counts(item.job) for part in item.parts) * WHOLE
        missing = has + asked - coming - most
        if asked and missing > 0:
            yield _Need(gpus=math.ceil(missing / WHOLE), concerns=_counts_for(counts), everywhere=True)


def _limits_on(
    snapshot: ClusterSnapshot, wanted: Sequence[Job]
) -> Iterator[tuple[int, int | None, Callable[[Job], bool]]]:
    """Yields for each limit that counts these jobs: the held resources, the limit, and whether a job counts."""
    held, limits = snapshot.held, snapshot.limits
    yield held.total_gpu_milli, _milli(limits.max_total_gpus), _is_of()
    for user in dict.fromkeys(job.user for job in wanted):
        yield held.by_user.get(user, 0), _milli(limits.max_gpus_per_user), _is_of(user=user)
    for name in dict.fromkeys(job.queue for job in wanted):
        yield held.by_queue.get(name, 0), _milli(snapshot.queues[name].max_gpus), _is_of(queue=name)
    for user, kind in dict.fromkeys((job.user, kind) for job in wanted for kind in quota_kinds(job)):
        quota = snapshot.quotas.get((user, kind))
        has = held.of_kind(user, kind).gpu_milli
        yield has, quota.gpu_milli if quota else None, _counts_in_quota(user, kind)


def _disturbance(item: Scalable, given: int, short: int, counted: int) -> tuple[bool, bool, int, int]:
    """Sort key, the least disturbance first: jobs that are resized anyway; then a job that can release enough alone,
    with as few GPUs to spare as possible."""
    left = (item.spare - given) * counted
    is_enough = left >= short
    return (not item.job.is_resizing and not given, not is_enough, left if is_enough else -left, -item.job.serial)


def _shrunk_for(item: Scalable, given: int, snapshot: ClusterSnapshot, wanted: Wanted, now: float) -> Resize:
    job = item.job
    if job.resized_at is not None and now < job.resized_at + snapshot.scaling.interval_seconds:
        # Demand goes up and down: one larger step now instead of many small ones.
        given = item.spare
    here = [job_id for part in item.parts for job_id, _, _ in wanted.on(part.node)]
    named = dict.fromkeys(here or [start.job_id for start in wanted.starts])
    return Resize(
        job_id=job.id,
        allocation=item.at(item.size - given),
        cause=ResizeCause.OTHERS,
        for_jobs=tuple(named)[:_NAMED],
    )


# ---------------------------------------------------------------- without demand


@dataclass(kw_only=True, slots=True)
class Scaling:
    """Resizes that no other job needs, decided one after the other within the trial of a cycle."""

    snapshot: ClusterSnapshot
    trial: Trial
    plan: Plan
    #: pools and GPU models that jobs wait for: their idle GPUs are for those jobs
    crowded: Collection[Domain]
    reserved: Reserved
    now: float
    wake_at: float | None = None

    def widened(self, starts: Sequence[Start]) -> tuple[Start, ...]:
        """Starts of elastic jobs with idle GPUs of the same node added: no later resize is as cheap."""
        return tuple(self._widened(start) for start in starts)

    def unused(self, items: Iterable[Scalable]) -> list[Resize]:
        """Shrinks jobs that hardly use their GPUs to half of them."""
        rules = self.snapshot.scaling
        found = []
        for item in items:
            job, size = item.job, item.size
            fewer = size - max(item.elastic.min_gpus, size // 2)
            if job.state is not JobState.RUNNING or job.utilization is None or fewer <= 0:
                continue
            if job.utilization < rules.down and self._is_due(job) and self._pays(job, size, fewer):
                found.append(
                    Resize(
                        job_id=job.id,
                        allocation=item.at(size - fewer),
                        cause=ResizeCause.UNUSED,
                        ceiling=_ceiling(job.ceiling, size, rules, self.now),
                    )
                )
        return found

    def grown(self, items: Iterable[Scalable]) -> list[Resize]:
        """Jobs that use their GPUs well get idle GPUs of their nodes; users with a lower score first."""
        found = []
        for item in sorted(items, key=self._order):
            job = item.job
            if job.state is not JobState.RUNNING or job.utilization is None:
                continue
            if job.utilization < self.snapshot.scaling.up:
                continue
            more = self._idle(job, item.domain, [(part.slot, part.gpus) for part in item.parts])
            if more and self._is_due(job) and self._pays(job, item.size, len(more) // len(item.parts)):
                allocation = item.at(item.size, more)
                self.trial.resize(job, _holding(job, allocation))
                found.append(Resize(job_id=job.id, allocation=allocation, cause=ResizeCause.IDLE_GPUS))
        return found

    def _order(self, item: Scalable) -> tuple[float, int]:
        return (self.snapshot.score(item.job.user, item.domain[1], self.now), item.job.serial)

    def _widened(self, start: Start) -> Start:
        job = self.snapshot.jobs[start.job_id]
        if job.elastic is None or job.kind is JobKind.WORKBENCH or not _may_restart(job):
            # A workbench holds its GPUs before a program uses them: it gets more once they are used. A program that
            # never wrote a checkpoint would keep the additional GPUs from other jobs until its end.
            return start
        grants = [(grant, self.snapshot.fleet.slot(grant.node)) for grant in start.allocation.grants]
        domain = (self.snapshot.queues[job.queue].pool, start.allocation.model)
        more = self._idle(job, domain, [(slot, grant.gpus) for grant, slot in grants])
        if not more:
            return start
        widened = (_with_gpus(grant, slot, {*grant.gpus, *more}) for grant, slot in grants)
        wider = replace(start.allocation, grants=tuple(widened))
        self.trial.resize(replace(job, allocation=start.allocation), _holding(job, wider))
        return replace(start, allocation=wider)

    def _idle(self, job: Job, domain: Domain, held: Sequence[tuple[Slot, Sequence[str]]]) -> frozenset[str]:
        """Idle GPUs beside those that the job holds, equally many on each node, that no job waits for and that the job
        may have."""
        assert job.elastic is not None
        if domain in self.crowded or any(claim.concerns(job) for claim in self.plan.claims):
            return frozenset()
        most = job.elastic.max_gpus
        if job.ceiling is not None and self.now < job.ceiling.until:
            most = min(most, job.ceiling.gpus - 1)
        idle = [free_gpus_beside(self.reserved, job, slot, domain, self.now) for slot, _ in held]
        most = min(most - min(len(gpus) for _, gpus in held), spare_gpus(self.snapshot, job) // len(held))
        return choose_added_gpus(held, idle, min(most, *map(len, idle)))

    def _is_due(self, job: Job) -> bool:
        """Whether the last resize is long enough ago; if not, another cycle is requested for that time."""
        if job.resized_at is None:
            return True
        due_at = job.resized_at + self.snapshot.scaling.interval_seconds
        if due_at > self.now:
            self.wake_at = due_at if self.wake_at is None else min(self.wake_at, due_at)
        return due_at <= self.now

    def _pays(self, job: Job, size: int, change: int) -> bool:
        """Whether `change` more or fewer GPUs are worth a restart of the job.

        The job is assumed to run as long again as it has run, within its time limit. Work since the last checkpoint may
        be lost; a job without any checkpoint would start from the beginning, and is not resized unless its owner
        allowed that.
        """
        if job.started_at is None or job.allocated_at is None or not _may_restart(job):
            return False
        unsaved = self.now - max(job.started_at, job.checkpointed_at or 0.0)
        restart = job.started_at - job.allocated_at
        ahead = min(self.now - job.started_at, job.expected_end - job.grace_seconds - self.now)
        return ahead * change >= MARGIN * (unsaved + restart) * size


def free_gpus_beside(reserved: Reserved, job: Job, slot: Slot, domain: Domain, now: float) -> list[str]:
    """Free GPUs of the job's node that it may hold until its end."""
    end = job.expected_end if job.state.holds_resources else end_if_started(job, now)
    terms = reserved.terms(job, domain[0])
    return [
        gpu
        for gpu in slot.whole_gpus(domain)
        if gpu not in job.avoid_gpus and (terms is None or terms.allows(gpu, now, end))
    ]


def choose_added_gpus(
    held: Sequence[tuple[Slot, Sequence[str]]], idle: Sequence[Sequence[str]], count: int
) -> frozenset[str]:
    """Chooses `count` of the idle GPUs of each node, those linked to the job's own first."""
    pairs = zip(held, idle, strict=True)
    return frozenset(gpu for (slot, gpus), free in pairs for gpu in linked_to(gpus, free, slot.links, count))


def _may_restart(job: Job) -> bool:
    """Whether the job may be restarted for a resize: it has saved once, or its owner allowed that it starts over."""
    return job.checkpointed_at is not None or job.restart_unsaved


def _ceiling(known: Ceiling | None, gpus: int, rules: ScalingRules, now: float) -> Ceiling:
    times = 1 if known is None else known.times + 1
    seconds = rules.interval_seconds * CEILING_INTERVALS * 2.0 ** min(times - 1, _MOST_DOUBLINGS)
    return Ceiling(gpus=gpus, until=now + seconds, times=times)


def _holding(job: Job, allocation: Allocation) -> Job:
    gpus = len(allocation.grants[0].gpus)
    return replace(job, allocation=allocation, request=replace(job.request, gpus=gpus))


def _is_on(node: str, domain: Domain) -> Callable[[Scalable], bool]:
    return lambda item: item.domain == domain and any(part.node == node for part in item.parts)


def _counts_for(counts: Callable[[Job], bool]) -> Callable[[Scalable], bool]:
    return lambda item: counts(item.job)


def _is_of(**values: str) -> Callable[[Job], bool]:
    return lambda job: all(getattr(job, name) == value for name, value in values.items())


def _counts_in_quota(user: str, kind: JobKind) -> Callable[[Job], bool]:
    return lambda job: job.user == user and kind in quota_kinds(job)


def _milli(gpus: int | None) -> int | None:
    return None if gpus is None else gpus * WHOLE
