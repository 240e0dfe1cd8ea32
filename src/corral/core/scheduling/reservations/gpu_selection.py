"""The GPUs of a new reservation: GPUs of one model that are not reserved or in use in its window, whole nodes first.

This module says what is possible and what conflicts; the use case decides what is allowed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from corral.core.model import Gpu, Job, JobState
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.scheduling.reservations.windows import in_force, owns, window_of
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot


@dataclass(frozen=True, kw_only=True, slots=True)
class Conflicts:
    """The reservations and jobs that keep a GPU from being reserved in a window."""

    reservations: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()


def conflicts_by_gpu(snapshot: ClusterSnapshot, wanted: Reservation, now: float) -> dict[str, Conflicts]:
    """The conflicts of each GPU: other reservations in the same window, and jobs that may still run when the window
    opens.

    The GPUs of `wanted` do not matter: the answer covers all GPUs.
    """
    since, until = window_of(wanted)
    reservations: dict[str, list[str]] = defaultdict(list)
    for other in in_force(snapshot, now):
        begins, ends = window_of(other)
        if other.name != wanted.name and not other.is_share and since < ends and until > begins:
            for gpu in other.gpus:
                reservations[gpu].append(other.name)
    jobs: dict[str, list[str]] = defaultdict(list)
    for job in snapshot.jobs.values():
        if job.allocation is not None and not _leaves_in_time(snapshot, job, wanted, now):
            for gpu in job.allocation.gpus:
                jobs[gpu].append(job.id)
    return {
        gpu: Conflicts(reservations=tuple(reservations.get(gpu, ())), jobs=tuple(jobs.get(gpu, ())))
        for gpu in sorted({*reservations, *jobs})
    }


def choose_gpus(
    snapshot: ClusterSnapshot,
    pool: str,
    count: int,
    *,
    models: Collection[str],
    taken: Mapping[str, Conflicts],
    keep: Collection[str] = (),
) -> tuple[str, tuple[str, ...]] | None:
    """The model and `count` healthy GPUs of it; None if no model has enough.

    GPUs in `keep` come first; then GPUs that are free now, on as few nodes as possible, so that whole nodes are used
    before parts of others.
    """
    busy = {gpu for job in snapshot.jobs.values() if job.allocation is not None for gpu in job.allocation.gpus}
    found: list[tuple[bool, int, str, tuple[str, ...]]] = []
    for model in sorted(models):
        usable = [
            (node, gpu)
            for node, gpu in gpus_of(snapshot, pool, model)
            if gpu.id not in taken and (gpu.takes_jobs or gpu.id in keep)
        ]
        kept = [gpu.id for _, gpu in usable if gpu.id in keep][:count]
        free = [(node, gpu.id) for node, gpu in usable if gpu.id not in keep and gpu.id not in busy]
        used = [(node, gpu.id) for node, gpu in usable if gpu.id not in keep and gpu.id in busy]
        chosen = [*kept, *_fewest_nodes(free, count - len(kept))]
        chosen += _fewest_nodes(used, count - len(chosen))
        if len(chosen) == count:
            found.append((any(gpu in busy for gpu in chosen), -len(free), model, tuple(chosen)))
    if not found:
        return None
    _, _, model, gpus = min(found)
    return model, _in_order(snapshot, gpus)


def gpus_of(snapshot: ClusterSnapshot, pool: str, model: str | None = None) -> Iterator[tuple[str, Gpu]]:
    """The GPUs of a pool with their nodes, by node and place."""
    for slot in snapshot.fleet.slots:
        for gpu in sorted(slot.node.gpus, key=lambda gpu: gpu.index):
            if gpu.pool == pool and model in (None, gpu.model):
                yield slot.node.id, gpu


def standing_gpus(snapshot: ClusterSnapshot, pool: str, without: str, now: float) -> int:
    """How many GPUs of the pool have standing reservations, not counting the reservation `without`."""
    return len(
        {
            gpu
            for reservation in in_force(snapshot, now)
            if reservation.pool == pool
            and reservation.until is None
            and reservation.name != without
            and not reservation.is_share
            for gpu in reservation.gpus
        }
    )


def most_standing(snapshot: ClusterSnapshot, pool: str) -> int:
    """How many of the pool's GPUs may have standing reservations under `hybrid`."""
    total = sum(1 for _ in gpus_of(snapshot, pool))
    # A ratio such as 0.3 is not exact: 30 % of 10 GPUs are 3.
    return math.floor(snapshot.allocation.reserved_ratio * total + 1e-9)


def _leaves_in_time(snapshot: ClusterSnapshot, job: Job, wanted: Reservation, now: float) -> bool:
    """Whether a running job does not conflict: it is an owner's, surely ends in time, or can be preempted."""
    if owns(snapshot, wanted, job.user):
        return True
    if job.state is JobState.STOPPING and not job.is_resizing:
        return True
    if job.expected_end <= max(wanted.since, now):
        return True
    return wanted.lends and job.preemptible and snapshot.preemption.enabled


def _fewest_nodes(gpus: list[tuple[str, str]], count: int) -> list[str]:
    """Whole nodes while they are needed whole, the largest first; the rest from the node that it fills best."""
    by_node: dict[str, list[str]] = {}
    for node, gpu in gpus:
        by_node.setdefault(node, []).append(gpu)
    chosen: list[str] = []
    while by_node and len(chosen) < count:
        left = count - len(chosen)
        enough = [node for node, free in by_node.items() if len(free) >= left]
        # `min` and `max` take the first of equals, which is the first in the fleet's order.
        node = min(enough, key=lambda n: len(by_node[n])) if enough else max(by_node, key=lambda n: len(by_node[n]))
        chosen += by_node.pop(node)[:left]
    return chosen


def _in_order(snapshot: ClusterSnapshot, gpus: tuple[str, ...]) -> tuple[str, ...]:
    wanted = {*gpus}
    return tuple(gpu.id for slot in snapshot.fleet.slots for gpu in slot.node.gpus if gpu.id in wanted)
