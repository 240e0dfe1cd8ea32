"""The map of all GPUs, which every open console page fetches every few seconds.

A large fleet is fetched in pages, so that no answer is large. The answer is written without validation: checking a
thousand rows against the schema costs more than building them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from pydantic_core import to_json

from corral.control.fleet.node_views import GpuView, NodePage, NodeView, node_page
from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller
from corral.control.people.permissions import may_see_job
from corral.control.ports import GpuReading
from corral.core.model import WHOLE, Job
from corral.server.http.paging import write_cursor
from corral.server.schemas.base import rfc3339
from corral.telemetry.readings import ReadingsAt

#: GPUs on a page, which is then smaller than half a megabyte, and made in less than 50 ms.
MAX_GPUS = 5_000
#: Nodes whose columns are kept, also of some that are gone.
MOST_KEPT = 100_000


def map_page(state: State, now: float, after: str | None = None, limit: int = MAX_GPUS) -> NodePage:
    """The nodes behind one, or the first ones: as many as have so many GPUs, but at least one."""
    return node_page(state.fleet(now).behind(after), gpus=limit)


class NodeColumns(NamedTuple):
    """A node's GPUs as columns: what only changes with the node and its jobs."""

    id: tuple[str, ...]
    number: tuple[int, ...]
    model: tuple[str, ...]
    pool: tuple[str, ...]
    health: tuple[str, ...]
    allocated: tuple[float, ...]
    #: the job with the largest share of the GPU, and its owner
    job: tuple[str | None, ...]
    owner: tuple[str | None, ...]
    taken: tuple[bool, ...]
    free: tuple[bool, ...]
    #: the ids of GPUs that move when their jobs have ended, and the pools that they move to
    moving: tuple[tuple[str, str], ...]


class MapColumns:
    """The columns of nodes, kept until a node changes: every open page asks for all of them every few seconds."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[NodeView, NodeColumns]] = {}
        #: how often the columns of a node were made
        self.made = 0

    def of(self, views: Sequence[NodeView]) -> list[NodeColumns]:
        if len(self._kept) > MOST_KEPT:
            self._kept.clear()  # most of these nodes are gone
        return [self._of(view) for view in views]

    def _of(self, view: NodeView) -> NodeColumns:
        name = view.node.id
        kept = self._kept.get(name)
        # A node that changes gets a new view.
        if kept is None or kept[0] is not view:
            self.made += 1
            kept = self._kept[name] = (view, _columns_of(view))
        return kept[1]


def _columns_of(node: NodeView) -> NodeColumns:
    holders = [_holder(view) for view in node.gpus]
    gpus = [view.gpu for view in node.gpus]
    return NodeColumns(
        id=tuple(gpu.id for gpu in gpus),
        number=tuple(gpu.index for gpu in gpus),
        model=tuple(gpu.model for gpu in gpus),
        pool=tuple(gpu.pool for gpu in gpus),
        health=tuple(gpu.health.value for gpu in gpus),
        allocated=tuple(view.held_milli / WHOLE if view.held_milli else 0 for view in node.gpus),
        job=tuple(None if holder is None else holder.id for holder in holders),
        owner=tuple(None if holder is None else holder.user for holder in holders),
        taken=tuple(view.is_taken for view in node.gpus),
        free=tuple(view.is_free for view in node.gpus),
        moving=tuple((gpu.id, gpu.next_pool) for gpu in gpus if gpu.next_pool),
    )


def map_of(page: NodePage, kept: MapColumns, measured: ReadingsAt, caller: Caller, now: float) -> bytes:
    """JSON of a `GpuMapView`."""
    nodes = kept.of(page.nodes)
    columns: list[list[Any]] = [
        list(chain.from_iterable(node[place] for node in nodes)) for place in range(len(NodeColumns._fields))
    ]
    ids, number, models_of, pools_of, health, allocated, jobs, owners_of, taken, free, moving = columns
    models, model = _numbered(models_of)
    pools, pool = _numbered(pools_of)
    owners, owner = _numbered(owners_of)
    may_see = [may_see_job(caller, name) for name in owners]
    gpus: dict[str, Sequence[Any]] = {
        "id": ids,
        "node": [place for place, node in enumerate(nodes) for _ in node.id],
        "index": number,
        "model": model,
        "pool": pool,
        "health": health,
        "allocated": allocated,
        "owner": owner,
        "job": [
            job if its_owner is not None and may_see[its_owner] else None
            for job, its_owner in zip(jobs, owner, strict=True)
        ],
        "taken": taken,
        "free": free,
        **_measured(ids, measured),
    }
    shown = [{"id": view.node.id, "state": view.state.value, "cluster": view.node.cluster} for view in page.nodes]
    return to_json(
        {
            "at": rfc3339(now),
            "nodes": shown,
            "models": models,
            "owners": owners,
            "pools": pools,
            "gpus": gpus,
            "next_pools": dict(moving),
            "next_cursor": None if page.is_last else write_cursor([page.nodes[-1].node.id]),
        },
        inf_nan_mode="null",
    )


def _holder(view: GpuView) -> Job | None:
    """The job with the largest share of the GPU."""
    if len(view.jobs) < 2:
        return view.jobs[0] if view.jobs else None
    return max(view.jobs, key=lambda job: _share(job, view))


def _share(job: Job, view: GpuView) -> int:
    grants = job.allocation.grants if job.allocation is not None else ()
    return sum(grant.gpu_milli for grant in grants if grant.node == view.node and view.gpu.id in grant.gpus)


_NEVER_READ = GpuReading(gpu_id="", at=-math.inf)


def _measured(ids: Sequence[str], measured: ReadingsAt) -> dict[str, Sequence[Any]]:
    readings = [reading or _NEVER_READ for reading in measured.some(ids)]
    used = np.array([reading.memory_used_bytes for reading in readings], np.float64)
    total = np.array([reading.memory_total_bytes or None for reading in readings], np.float64)
    return {
        "utilization": _rounded([reading.utilization for reading in readings], 3),
        "memory": _rounded(used / total, 3),
        "temperature": _rounded([reading.temperature_celsius for reading in readings], 1),
        "power": _rounded([reading.power_watts for reading in readings], 1),
        "stale": [measured.is_stale(reading.at) for reading in readings],
    }


def _rounded(values: Any, digits: int) -> list[float]:
    """Rounded all at once; a value that is None becomes NaN, which is written as null."""
    found: list[float] = np.round(np.array(values, np.float64), digits).tolist()
    return found


def _numbered(names: Sequence[str | None]) -> tuple[list[str], list[Any]]:
    """The names in the order of their first use, and for each place the number of its name."""
    known = [name for name in dict.fromkeys(names) if name is not None]
    numbers = {name: number for number, name in enumerate(known)}
    return known, [None if name is None else numbers[name] for name in names]
