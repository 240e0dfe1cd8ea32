"""The packages that a user can pick now, how many of each would start, and how long the next one would wait.

The answers are those of a submission: the same routing, the same quota, the same scheduler. A package is left out if a
job of it would be refused, or would wait for hardware that is not in its user's reach.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Set
from dataclasses import dataclass, replace

from corral.control.errors import Invalid, Refusal
from corral.control.fleet.catalog import Catalog, request_of
from corral.control.jobs.admission import check_lengths, check_quota, settled
from corral.control.live.state import State
from corral.control.records import PackageRecord
from corral.core.fleet.free_gpus import closed_gpus
from corral.core.fleet.resources import Amount, asked_by
from corral.core.jobs.lifecycle import StartRequested, advance
from corral.core.model import WHOLE, Job, JobKind, Queue
from corral.core.people.quota import Quota, quota_kinds
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.forecast.run_time_model import predicted
from corral.core.scheduling.placement.search import could_ever_fit, domains_for
from corral.core.scheduling.reservations.reservations import Reserved
from corral.core.snapshot.changes import DropJob, PutJob
from corral.core.snapshot.node_index import EVERYWHERE, Domain, Slot, places, union
from corral.core.snapshot.waiting_lines import CHECKS

#: Copies that are planned to see how many start. Where more than that do, what is free is divided instead. Each copy
#: costs 0.1 ms on the controller's thread, for every package of the list.
MAX_TRIED = 32
#: Ids far beyond those of real jobs.
_FIRST_TRIAL = 999_999_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    package: PackageRecord
    #: where a job of it would wait
    queue: str
    #: jobs of it that would start now, one after the other
    free_count: int
    #: jobs that wait in that queue for the same GPU model
    queued: int
    #: None if it is unknown
    expected_wait_seconds: float | None


def offers(state: State, catalog: Catalog, user: str, kind: JobKind, now: float, nodes: int = 1) -> list[Offer]:
    """The packages that this user could pick now for a job of this kind, on that many nodes, by name."""
    if nodes > 1 and kind is not JobKind.DISTRIBUTED:
        raise Invalid(f"a {kind} job runs on one node; ask for kind distributed", field="nodes", asked=nodes)
    found = []
    for _, package in sorted(catalog.packages.items()):
        if not package.kinds or kind in package.kinds:
            flavor = catalog.flavors[package.flavor] if package.flavor is not None else None
            job = Job(
                id="j-0",
                name="trial",
                user=user,
                kind=kind,
                queue="",
                request=request_of(package, flavor, nodes),
                priority=state.policies.default_priority,
                created_at=now,
                grace_seconds=state.policies.grace_seconds,
            )
            offer = _offer(state, package, job, now)
            if offer is not None:
                found.append(offer)
    return found


def _offer(state: State, package: PackageRecord, job: Job, now: float) -> Offer | None:
    try:
        job = settled(state, job)
        check_quota(state, [job])
    except Refusal:
        return None
    queue = state.snapshot.queues[job.queue]
    asked = job.request.total_gpu_milli
    if any(asked > limit for limit, _ in _gpu_limits(state, job, queue)):
        return None
    if not could_ever_fit(state.snapshot.fleet, job, queue.pool):
        return None
    free_count, wait = _trial(state, job, queue, now)
    return Offer(
        package=package,
        queue=queue.name,
        free_count=free_count,
        queued=_waiting_for_the_same(state, job),
        expected_wait_seconds=wait,
    )


def _trial(state: State, job: Job, queue: Queue, now: float) -> tuple[int, float | None]:
    """How many such jobs would start now, and how long the first of them would wait."""
    most = _most(state, job, queue, now)
    try:
        check_lengths(state, [job])
    except Refusal:
        return 0, None
    is_reserved = Reserved(state.snapshot, now).concerns(queue.pool)
    if most and not job.request.is_gang and not state.snapshot.lines and not is_reserved:
        return most, 0.0  # no other job waits: all that is free can be divided
    queued = predicted(state.run_times, advance(job, StartRequested(at=now)).job)
    copies = [replace(queued, id=f"j-{_FIRST_TRIAL + n}") for n in range(max(1, min(most, MAX_TRIED)))]
    state.snapshot.apply(PutJob(job=copy) for copy in copies)
    try:
        plan = schedule(state.snapshot, now)
    finally:
        state.snapshot.apply(DropJob(id=copy.id) for copy in copies)
    ours = {copy.id for copy in copies}
    started = sum(start.job_id in ours for start in plan.starts)
    if started:
        # A job that starts only on borrowed GPUs starts at once, but none is free for it.
        return most if started == MAX_TRIED else min(most, started), 0.0
    planned = plan.planned_start(copies[0].id)
    return 0, max(0.0, planned.at - now) if planned is not None and planned.is_known else None


def _most(state: State, job: Job, queue: Queue, now: float) -> int:
    """The most such jobs that could start now, without regard to other waiting jobs."""
    asked = asked_by(job.request)
    left = [
        *_quotas(state, job, asked),
        *((limit, held, asked.gpu_milli) for limit, held in _gpu_limits(state, job, queue)),
    ]
    counts = [max(0, limit - held) // wants for limit, held, wants in left if limit is not None and wants]
    return min([_room(state, job, queue.pool, closed_gpus(state.snapshot, now, job.user)), *counts])


def _quotas(state: State, job: Job, asked: Amount) -> Iterator[tuple[int | None, int, int]]:
    """Each limit of the user's quotas, with what is held of it and what such a job takes."""
    for kind in quota_kinds(job):
        quota = state.snapshot.quotas.get((job.user, kind), Quota())
        active = state.snapshot.active.of_kind(job.user, kind)
        yield quota.gpu_milli, active.gpu_milli, asked.gpu_milli
        yield quota.cpu_milli, active.cpu_milli, asked.cpu_milli
        yield quota.memory_bytes, active.memory_bytes, asked.memory_bytes


def _gpu_limits(state: State, job: Job, queue: Queue) -> Iterator[tuple[int, int]]:
    """Limits on GPUs held together, in thousandths, each with what is held of it."""
    held, limits = state.snapshot.held, state.snapshot.limits
    for limit, used in (
        (limits.max_gpus_per_user, held.by_user.get(job.user, 0)),
        (limits.max_total_gpus, held.total_gpu_milli),
        (queue.max_gpus, held.by_queue.get(queue.name, 0)),
    ):
        if limit is not None:
            yield limit * WHOLE, used


def _room(state: State, job: Job, pool: str, closed: Set[str]) -> int:
    """Jobs that what is free would hold; for gangs no fewer than could be placed."""
    fleet, request = state.snapshot.fleet, job.request
    domains = [index.domain for index in domains_for(fleet, request, pool)]
    usable = fleet.domains[EVERYWHERE].members & fleet.eligible(request.labels, ())
    if request.wants_gpu:
        # Most nodes of a full fleet have no room: they are not looked at one by one.
        usable &= union(fleet.domains[domain].with_room(request) for domain in domains)
    per_node = _per_node([fleet.slots[place] for place in places(usable)], job, domains, closed)
    if not request.is_gang:
        return sum(per_node)
    count = 0
    # A gang takes each node once: `count` gangs need that many places, and no node gives more than one to each.
    while sum(min(here, count + 1) for here in per_node) >= request.nodes * (count + 1):
        count += 1
    return count


def _per_node(slots: list[Slot], job: Job, domains: list[Domain], closed: Set[str]) -> list[int]:
    """Instances of the job that fit on each node. Thousands of free nodes have equal resources left: they are counted
    once."""
    request = job.request
    known: dict[Hashable, int] = {}
    counts = []
    for slot in slots:
        # Shares are counted GPU by GPU, and closed GPUs have names: such nodes are not equal.
        alike = not request.gpu_milli and (not closed or closed.isdisjoint(slot.free_milli))
        whole = [slot.seen[domain][0] if domain in slot.seen else 0 for domain in domains] if request.gpus else ()
        left: Hashable = (*whole, slot.free_cpu_milli, slot.free_memory_bytes) if alike else slot.node.id
        if left not in known:
            known[left] = _instances(slot, job, domains, closed)
        counts.append(known[left])
    return counts


def _instances(slot: Slot, job: Job, domains: list[Domain], closed: Set[str]) -> int:
    """Instances of the job that fit beside each other on one node."""
    request = job.request
    limits = []
    if request.gpus:
        limits.append(sum(len(set(slot.whole_gpus(domain)) - closed) // request.gpus for domain in domains))
    elif request.gpu_milli:
        usable = [gpu for domain in domains for gpu in slot.domains.get(domain, ()) if gpu not in closed]
        limits.append(sum(slot.free_milli[gpu] // request.gpu_milli for gpu in usable))
    if request.cpu_milli:
        limits.append(max(0, slot.free_cpu_milli) // request.cpu_milli)
    if request.memory_bytes:
        limits.append(max(0, slot.free_memory_bytes) // request.memory_bytes)
    return min(limits, default=0)


def _waiting_for_the_same(state: State, job: Job) -> int:
    models = set(job.request.models)
    count = 0
    for key, line in state.snapshot.lines.items():
        is_other = key.model == CHECKS or (key.model == "cpu") is job.request.wants_gpu
        if key.queue != job.queue or is_other:
            continue
        if key.model in ("cpu", "any") or not models or models & set(key.model.split("|")):
            count += len(line.jobs)
    return count
