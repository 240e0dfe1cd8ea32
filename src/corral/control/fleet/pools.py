"""Pools, managed by operators: named sets of GPUs of one model, each with a queue of its own name.

A GPU is in exactly one pool. A GPU that a job holds stays in its pool, so that a running job never changes its pool;
it can move when the job has ended (`pool_moves`). What waits is never touched, and says why it waits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from corral.control.errors import InUse, Invalid, NotFound, Taken
from corral.control.fleet import pool_moves
from corral.control.fleet.live_fleet import GpuCounts
from corral.control.fleet.node_views import GpuView
from corral.control.jobs.admission import check_queue_name
from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller, Work
from corral.control.people.operators import require_operator
from corral.control.ports import Transaction
from corral.control.records import PoolRecord
from corral.control.scheduling.guarantees import check_leaving
from corral.control.scheduling.reservations import check_gpus_free, check_pool_free
from corral.control.scheduling.reserved_gpus import name_list
from corral.core.counts import counted
from corral.core.model import DEFAULT_POOL, Blocking, Gpu, Job, Queue
from corral.core.snapshot.changes import DropQueue, PutQueue
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot

#: how many things a refusal names
NAMED = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolView:
    """A pool with everything that a page about it shows."""

    record: PoolRecord
    group: str | None
    #: models of its GPUs
    models: tuple[str, ...]
    queues: tuple[str, ...]
    gpus: int
    free_gpus: int
    held_milli: int
    running: int
    queued: int

    @property
    def model(self) -> str | None:
        """The GPU model of the pool; None if it is empty or has several models."""
        return self.models[0] if len(self.models) == 1 else None


def create(work: Work, caller: Caller, name: str, *, description: str = "", gpus: Sequence[str] = ()) -> PoolRecord:
    """A new pool with these GPUs, and a queue of the same name."""
    require_operator(caller, "manage pools")
    check_queue_name(name)
    if any(pool.name == name for pool in work.tx.fleet.pools()):
        raise Taken(f"there is a pool {name!r} already", field="name", name=name)
    queue = work.state.snapshot.queues.get(name)
    if queue is not None:
        raise Taken(
            f"the pool's queue would be called {name!r} too, and pool {queue.pool} has a queue of that name",
            field="name",
            name=name,
        )
    moved = pool_moves.checked(work, name, gpus).now
    pool = PoolRecord(name=name, description=description, created_at=work.now)
    work.tx.fleet.save_pool(pool)
    pool_moves.move(work, name, moved)
    policies = work.state.policies
    queue = Queue(
        name=name,
        pool=name,
        policy=policies.ordering,
        blocking=Blocking(policies.blocking),
        placement=policies.placement,
    )
    work.tx.fleet.save_queue(queue)
    work.change(PutQueue(queue=queue))
    work.record(caller, "pool.created", name, detail={"gpus": [gpu.id for gpu in moved]})
    work.record(caller, "queue.created", name)
    return pool


def edit(
    work: Work, caller: Caller, name: str, *, description: str | None = None, gpus: Collection[str] | None = None
) -> PoolRecord:
    """Changes the description or the set of GPUs of a pool: added GPUs join it, removed ones return to `default`."""
    require_operator(caller, "manage pools")
    pool = existing(work.tx, name)
    joining: Sequence[Gpu] = ()
    leaving: list[Gpu] = []
    if gpus is not None:
        wanted = set(gpus)
        leaving = [gpu for gpu in pool_moves.pool_gpus(work.state.snapshot, name) if gpu.id not in wanted]
        if leaving and name == DEFAULT_POOL:
            raise Invalid(
                f"GPUs leave pool {name} by joining another one: {name_list(gpu.id for gpu in leaving)}", field="gpus"
            )
        joining = pool_moves.checked(work, name, sorted(wanted), without={gpu.id for gpu in leaving}).now
        pool_moves.check_idle(work.state.snapshot, leaving)
        check_gpus_free(work.state, {gpu.id for gpu in leaving}, work.now, field="gpus")
        check_leaving(work.state.snapshot, leaving)
    changed = replace(pool, description=pool.description if description is None else description)
    work.tx.fleet.save_pool(changed)
    pool_moves.move(work, name, joining)
    pool_moves.move(work, DEFAULT_POOL, leaving)
    detail = {"joined": [gpu.id for gpu in joining], "left": [gpu.id for gpu in leaving]}
    work.record(caller, "pool.edited", name, detail=detail)
    return changed


def move_gpus(work: Work, caller: Caller, name: str, gpus: Sequence[str], *, when_free: bool = False) -> PoolRecord:
    """Moves GPUs from their pools into this pool: all of them or none. With `when_free`, GPUs with running jobs follow
    when these have ended; otherwise they refuse the move. GPUs that are in the pool, and were to leave it, stay."""
    require_operator(caller, "manage pools")
    pool = existing(work.tx, name)
    found = pool_moves.checked(work, name, gpus, when_free=when_free)
    pool_moves.take_back(work, caller, name, set(gpus))
    pool_moves.plan(work, caller, name, found.later)
    pool_moves.move_now(work, caller, name, found.now)
    return pool


def delete(work: Work, caller: Caller, name: str) -> None:
    """Deletes a pool: its GPUs return to `default`, its queues are deleted. Jobs that wait in them stay and show the
    missing queue as their reason.
    """
    require_operator(caller, "manage pools")
    existing(work.tx, name)
    if name == DEFAULT_POOL:
        raise InUse("the default pool cannot be deleted", field="name")
    owner = group_of(work.tx, name)
    if owner is not None:
        raise InUse(f"pool {name} belongs to group {owner}: detach it first", field="name", group=owner)
    snapshot = work.state.snapshot
    gpus = pool_moves.pool_gpus(snapshot, name)
    queues = pool_queues(snapshot, name)
    running = _running_in(snapshot, {gpu.id for gpu in gpus}, set(queues))
    if running:
        raise InUse(
            f"pool {name} has {counted(len(running), 'running job')}: {name_list(job.id for job in running)}",
            field="name",
            jobs=[job.id for job in running[:NAMED]],
        )
    check_pool_free(work.state, name, work.now)
    pool_moves.cancel_arrivals(work, name)
    pool_moves.move(work, DEFAULT_POOL, gpus)
    for queue in queues:
        work.tx.fleet.delete_queue(queue)
        work.change(DropQueue(name=queue))
        work.record(caller, "queue.deleted", queue, detail={"with_pool": name})
    work.tx.fleet.delete_pool(name)
    work.mixes.drop(name)
    work.record(caller, "pool.deleted", name, detail={"gpus": [gpu.id for gpu in gpus], "queues": queues})


# ------------------------------------------------------------------------------------------------ looking


def existing(tx: Transaction, name: str) -> PoolRecord:
    found = next((pool for pool in tx.fleet.pools() if pool.name == name), None)
    if found is None:
        raise NotFound(f"there is no pool {name!r}", field="pool")
    return found


def group_of(tx: Transaction, pool: str) -> str | None:
    """The group that has the pool."""
    return next((group.name for group in tx.people.groups() if group.pool == pool), None)


def pool_queues(snapshot: ClusterSnapshot, pool: str) -> list[str]:
    return sorted(queue.name for queue in snapshot.queues.values() if queue.pool == pool)


def pool_owners(tx: Transaction) -> list[tuple[PoolRecord, str | None]]:
    """Every pool with the group that has it."""
    owners = {group.pool: group.name for group in tx.people.groups() if group.pool is not None}
    return [(pool, owners.get(pool.name)) for pool in tx.fleet.pools()]


def pool_views(state: State, owned: Iterable[tuple[PoolRecord, str | None]], now: float) -> list[PoolView]:
    """The views of these pools with their present contents."""
    counts: dict[str, dict[str, GpuCounts]] = defaultdict(dict)
    for (pool, model), found in state.fleet(now).by_pool().items():
        counts[pool][model] = found
    jobs = state.job_sums()
    views = []
    for record, group in owned:
        queues = pool_queues(state.snapshot, record.name)
        mine = counts[record.name]
        views.append(
            PoolView(
                record=record,
                group=group,
                models=tuple(mine),
                queues=tuple(queues),
                gpus=sum(each.gpus for each in mine.values()),
                free_gpus=sum(each.free for each in mine.values()),
                held_milli=sum(each.held_milli for each in mine.values()),
                running=sum(jobs.queue(queue).running for queue in queues),
                queued=sum(jobs.queue(queue).length for queue in queues),
            )
        )
    return views


def gpus_in(state: State, pool: str, now: float) -> list[GpuView]:
    """The GPUs of a pool with what is on them, by node and place."""
    return [view for node in state.fleet(now).after(None) for view in node.gpus if view.gpu.pool == pool]


# ------------------------------------------------------------------------------------------------ inside


def _running_in(snapshot: ClusterSnapshot, gpus: Collection[str], queues: Collection[str]) -> list[Job]:
    """Jobs that hold one of these GPUs, or run without GPUs in one of these queues."""
    return sorted(
        (
            job
            for job in snapshot.jobs.values()
            if job.allocation is not None
            and (job.queue in queues or any(gpu_id in gpus for gpu_id in job.allocation.gpus))
        ),
        key=lambda job: job.serial,
    )
