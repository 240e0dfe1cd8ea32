"""Moves of GPUs between pools: at once if no job holds the GPU, otherwise, if that is wanted, when its jobs have ended.

A GPU that is to move takes no new jobs. Everything that could refuse the move is checked when it is requested, and what
is decided meanwhile (reservations, guarantees, the model of a pool) counts the GPU as gone, so that it can always be
carried out. A request to move the GPU into the pool that it is in takes the move back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from corral.control.errors import InUse, Invalid
from corral.control.live.state import State
from corral.control.live.unit_of_work import SYSTEM, Caller, Work
from corral.control.scheduling.guarantees import check_leaving
from corral.control.scheduling.hybrid_share import keep_shares
from corral.control.scheduling.reservations import check_gpus_free
from corral.control.scheduling.reserved_gpus import name_list
from corral.core.model import DEFAULT_POOL, Gpu
from corral.core.snapshot.changes import PutNode
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot

#: how many things a refusal names
NAMED = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedMove:
    now: tuple[Gpu, ...] = ()
    #: GPUs with running jobs
    later: tuple[Gpu, ...] = ()


def take_back(work: Work, caller: Caller, pool: str, gpu_ids: Collection[str]) -> None:
    """Ends planned moves of those of the GPUs that are in the pool."""
    staying = [gpu for gpu in pool_gpus(work.state.snapshot, pool) if gpu.id in gpu_ids and gpu.next_pool]
    if staying:
        _put(work, staying, lambda gpu: replace(gpu, next_pool=""))
        missed = sorted({gpu.next_pool for gpu in staying})
        work.record(caller, "pool.move-cancelled", pool, detail={"gpus": [gpu.id for gpu in staying], "to": missed})


def plan(work: Work, caller: Caller, pool: str, gpus: Sequence[Gpu]) -> None:
    """Lets GPUs with running jobs move to the pool when these have ended."""
    if gpus:
        _put(work, gpus, lambda gpu: replace(gpu, next_pool=pool))
        left = sorted({gpu.pool for gpu in gpus})
        work.record(caller, "pool.move-planned", pool, detail={"gpus": [gpu.id for gpu in gpus], "from": left})


def move_now(work: Work, caller: Caller, pool: str, gpus: Sequence[Gpu]) -> None:
    """Moves GPUs that no job holds, and records it."""
    if gpus:
        move(work, pool, gpus)
        left = sorted({gpu.pool for gpu in gpus})
        work.record(caller, "pool.gpus-moved", pool, detail={"gpus": [gpu.id for gpu in gpus], "from": left})


def is_due(state: State) -> bool:
    """Whether `go_on` would change anything."""
    return bool(_arrivals(state))


def go_on(work: Work) -> None:
    """Moves the GPUs whose jobs have ended to the pools that they were to move to."""
    arrivals = _arrivals(work.state)
    for pool in sorted({gpu.next_pool for gpu in arrivals}):
        move_now(work, SYSTEM, pool, [gpu for gpu in arrivals if gpu.next_pool == pool])


def cancel_arrivals(work: Work, pool: str) -> None:
    """The pool is deleted: the GPUs that were to move to it stay in their pools."""
    coming = [gpu for gpu in _all(work.state.snapshot) if gpu.next_pool == pool]
    _put(work, coming, lambda gpu: replace(gpu, next_pool=""))


def checked(
    work: Work, pool: str, gpu_ids: Sequence[str], without: Collection[str] = (), *, when_free: bool = False
) -> CheckedMove:
    """The GPUs that have to move so that all of these are in the pool; `without` are those that leave it meanwhile."""
    known = {gpu.id: gpu for gpu in _all(work.state.snapshot)}
    missing = [gpu_id for gpu_id in gpu_ids if gpu_id not in known]
    if missing:
        raise Invalid(f"there is no GPU {name_list(missing)}", field="gpus", gpus=missing[:NAMED])
    chosen = [known[gpu_id] for gpu_id in dict.fromkeys(gpu_ids)]
    moving = [gpu for gpu in chosen if gpu.pool != pool and not (when_free and gpu.next_pool == pool)]
    there = [gpu for gpu in known.values() if pool in (gpu.pool, gpu.next_pool) and gpu.id not in without]
    models = sorted({gpu.model for gpu in (*there, *moving)})
    if moving and len(models) > 1 and pool != DEFAULT_POOL:
        raise Invalid(
            f"pool {pool} would have GPUs of {len(models)} models ({', '.join(models)}): a pool has one",
            field="gpus",
            models=models,
        )
    if not when_free:
        check_idle(work.state.snapshot, moving)
    check_gpus_free(work.state, {gpu.id for gpu in moving}, work.now, field="gpus")
    check_leaving(work.state.snapshot, moving)
    busy = _holders(work.state.snapshot)
    return CheckedMove(
        now=tuple(gpu for gpu in moving if gpu.id not in busy), later=tuple(gpu for gpu in moving if gpu.id in busy)
    )


def check_idle(snapshot: ClusterSnapshot, gpus: Sequence[Gpu]) -> None:
    holders = _holders(snapshot)
    busy = [gpu for gpu in gpus if gpu.id in holders]
    if busy:
        text = name_list(f"GPU {gpu.id} has job {holders[gpu.id]}" for gpu in busy)
        raise InUse(
            f"GPUs with running jobs cannot be moved: {text}",
            field="gpus",
            gpus=[gpu.id for gpu in busy[:NAMED]],
            jobs=sorted({holders[gpu.id] for gpu in busy})[:NAMED],
        )


def move(work: Work, pool: str, gpus: Sequence[Gpu]) -> None:
    """Puts GPUs that no job holds into a pool."""
    if gpus:
        _put(work, gpus, lambda gpu: replace(gpu, pool=pool, next_pool=""))
        keep_shares(work)


def pool_gpus(snapshot: ClusterSnapshot, pool: str) -> list[Gpu]:
    """The GPUs of a pool, sorted by node and place."""
    return [gpu for _, node in sorted(snapshot.nodes.items()) for gpu in node.gpus if gpu.pool == pool]


# ------------------------------------------------------------------------------------------------ inside


def _all(snapshot: ClusterSnapshot) -> list[Gpu]:
    return [gpu for node in snapshot.nodes.values() for gpu in node.gpus]


def _holders(snapshot: ClusterSnapshot) -> dict[str, str]:
    """By GPU that a job holds: the job."""
    holders: dict[str, str] = {}
    for job in snapshot.jobs.values():
        for gpu_id in job.allocation.gpus if job.allocation else ():
            holders.setdefault(gpu_id, job.id)
    return holders


def _arrivals(state: State) -> list[Gpu]:
    """The GPUs that can move by now. It is asked every second, so it costs as much as there are moves."""
    fleet = state.fleet()
    found = [fleet.gpu(gpu_id) for gpu_id in sorted(fleet.moving)]
    return [view.gpu for view in found if view is not None and not view.jobs]


def _put(work: Work, gpus: Iterable[Gpu], change: Callable[[Gpu], Gpu]) -> None:
    changed = {gpu.id: change(gpu) for gpu in gpus}
    if not changed:
        return
    work.tx.fleet.save_gpus(list(changed.values()))
    for node in list(work.state.snapshot.nodes.values()):
        if any(gpu.id in changed for gpu in node.gpus):
            after = tuple(changed.get(gpu.id, gpu) for gpu in node.gpus)
            work.change(PutNode(node=replace(node, gpus=after)))
