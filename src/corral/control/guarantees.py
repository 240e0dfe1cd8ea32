"""What queues are guaranteed, and what they hold of it: what may be promised, and how it stands now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from corral.control.errors import InUse, Invalid
from corral.core.model import WHOLE, Gpu, Queue
from corral.core.snapshot import ClusterSnapshot


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """A queue's part of its pool at this moment, in thousandths of GPUs."""

    held_milli: int = 0
    #: beyond its guarantee, where other queues of the pool have one: it comes back to them on demand
    borrowed_milli: int = 0
    #: what it is guaranteed and does not hold
    owed_milli: int = 0


def share_of(snapshot: ClusterSnapshot, queue: Queue) -> Share:
    held = snapshot.held.by_queue.get(queue.name, 0)
    guaranteed = queue.guaranteed_gpus * WHOLE
    others = any(
        other.guaranteed_gpus > 0
        for other in snapshot.queues.values()
        if other.pool == queue.pool and other.name != queue.name
    )
    return Share(
        held_milli=held,
        borrowed_milli=max(0, held - guaranteed) if others else 0,
        owed_milli=max(0, guaranteed - held),
    )


def check_promise(snapshot: ClusterSnapshot, queue: Queue) -> None:
    """Refuse a queue whose guarantee its pool could not keep beside those that are given already. One that was given
    before is not taken back because GPUs are gone since."""
    before = snapshot.queues.get(queue.name)
    is_more = before is None or before.pool != queue.pool or queue.guaranteed_gpus > before.guaranteed_gpus
    if not queue.guaranteed_gpus or not is_more:
        return
    others = _promised(snapshot, queue.pool, without=queue.name)
    gpus = sum(gpu.pool == queue.pool for node in snapshot.nodes.values() for gpu in node.gpus)
    if queue.guaranteed_gpus + sum(others.values()) > gpus:
        raise Invalid(
            f"{queue.guaranteed_gpus} GPUs cannot be guaranteed: pool {queue.pool} has {gpus}"
            + (f", of which {_told(others)}" if others else ""),
            field="guaranteed_gpus",
            asked=queue.guaranteed_gpus,
            held=sum(others.values()),
            limit=gpus,
        )


def check_leaving(snapshot: ClusterSnapshot, gpus: Iterable[Gpu]) -> None:
    """Refuse to take GPUs out of pools whose queues are guaranteed more than what would stay."""
    for pool, count in sorted(Counter(gpu.pool for gpu in gpus).items()):
        promised = _promised(snapshot, pool)
        there = sum(gpu.pool == pool for node in snapshot.nodes.values() for gpu in node.gpus)
        if sum(promised.values()) > there - count:
            raise InUse(
                f"pool {pool} would keep {there - count} of {there} GPUs, and {_told(promised)}: lower that first",
                field="gpus",
                asked=count,
                held=sum(promised.values()),
                limit=there,
            )


def _promised(snapshot: ClusterSnapshot, pool: str, without: str = "") -> dict[str, int]:
    return {
        queue.name: queue.guaranteed_gpus
        for queue in sorted(snapshot.queues.values(), key=lambda queue: queue.name)
        if queue.pool == pool and queue.guaranteed_gpus and queue.name != without
    }


def _told(promised: dict[str, int]) -> str:
    return ", ".join(f"{gpus} are guaranteed to queue {name}" for name, gpus in promised.items())
