"""Guaranteed GPUs of queues: together never more than their pool has. The core applies guarantees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from corral.control.errors import InUse, Invalid
from corral.core.counts import counted
from corral.core.model import Gpu, Queue
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot


def check_promise(snapshot: ClusterSnapshot, queue: Queue) -> None:
    """Refuse a queue whose guarantee its pool could not keep beside those that are given already. One that was given
    before is not taken back because GPUs are gone since."""
    before = snapshot.queues.get(queue.name)
    is_more = before is None or before.pool != queue.pool or queue.guaranteed_gpus > before.guaranteed_gpus
    if not queue.guaranteed_gpus or not is_more:
        return
    others = _promised(snapshot, queue.pool, without=queue.name)
    gpus = _staying(snapshot, queue.pool)
    if queue.guaranteed_gpus + sum(others.values()) > gpus:
        raise Invalid(
            f"{counted(queue.guaranteed_gpus, 'GPU')} cannot be guaranteed: pool {queue.pool} has {gpus}"
            + (f", of which {_detail(others)}" if others else ""),
            field="guaranteed_gpus",
            asked=queue.guaranteed_gpus,
            held=sum(others.values()),
            limit=gpus,
        )


def check_leaving(snapshot: ClusterSnapshot, gpus: Iterable[Gpu]) -> None:
    """Refuse to take GPUs out of pools whose queues are guaranteed more than what would stay."""
    for pool, count in sorted(Counter(gpu.pool for gpu in gpus if not gpu.next_pool).items()):
        promised = _promised(snapshot, pool)
        there = _staying(snapshot, pool)
        if sum(promised.values()) > there - count:
            raise InUse(
                f"pool {pool} would keep {there - count} of {counted(there, 'GPU')}, "
                f"and {_detail(promised)}: lower that first",
                field="gpus",
                asked=count,
                held=sum(promised.values()),
                limit=there,
            )


def _staying(snapshot: ClusterSnapshot, pool: str) -> int:
    """The GPUs of the pool, less those that leave it when their jobs have ended."""
    return sum(gpu.pool == pool and not gpu.next_pool for node in snapshot.nodes.values() for gpu in node.gpus)


def _promised(snapshot: ClusterSnapshot, pool: str, without: str = "") -> dict[str, int]:
    return {
        queue.name: queue.guaranteed_gpus
        for queue in sorted(snapshot.queues.values(), key=lambda queue: queue.name)
        if queue.pool == pool and queue.guaranteed_gpus and queue.name != without
    }


def _detail(promised: dict[str, int]) -> str:
    return ", ".join(f"{gpus} are guaranteed to queue {name}" for name, gpus in promised.items())
