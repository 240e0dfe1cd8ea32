"""The map of all GPUs, which every open console page fetches every few seconds.

A large fleet is fetched in pages, so that no answer is large. The answer is written without validation: checking a
thousand rows against the schema costs more than building them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from corral.control.fleet.node_views import GpuView, NodeView
from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller
from corral.control.people.permissions import may_see_job
from corral.core.model import WHOLE, Job
from corral.server.http.paging import write_cursor
from corral.server.schemas.base import rfc3339
from corral.server.schemas.fleet.nodes import Measured

#: GPUs on a page, which is then smaller than half a megabyte, and made in less than 50 ms.
MAX_GPUS = 5_000


@dataclass(frozen=True, kw_only=True, slots=True)
class MapPage:
    """Nodes in their order, and whether there are more behind them."""

    nodes: tuple[NodeView, ...]
    is_last: bool


def map_page(state: State, now: float, after: str | None = None, limit: int = MAX_GPUS) -> MapPage:
    """The nodes behind one, or the first ones: as many as have so many GPUs, but at least one."""
    found: list[NodeView] = []
    gpus = 0
    for view in state.fleet(now).behind(after):
        if found and gpus + len(view.gpus) > limit:
            return MapPage(nodes=tuple(found), is_last=False)
        gpus += len(view.gpus)
        found.append(view)
    return MapPage(nodes=tuple(found), is_last=True)


def map_of(page: MapPage, measured: Measured, caller: Caller, now: float) -> bytes:
    """JSON of a `GpuMapView`."""
    owners, models, pools = _Numbering(), _Numbering(), _Numbering()
    visible = _visible_ids(caller)
    rows: list[tuple[Any, ...]] = []
    for place, node in enumerate(page.nodes):
        for view in node.gpus:
            gpu = view.gpu
            holder = _holder(view)
            rows.append(
                (
                    gpu.id,
                    place,
                    gpu.index,
                    models.of(gpu.model),
                    pools.of(gpu.pool),
                    gpu.health.value,
                    view.held_milli / WHOLE if view.held_milli else 0,
                    None if holder is None else owners.of(holder.user),
                    None if holder is None else visible(holder),
                    view.is_taken,
                    view.is_free,
                    *_measured(gpu.id, measured),
                )
            )
    columns = zip(*rows, strict=True) if rows else [()] * len(_COLUMNS)
    nodes = [view.node for view in page.nodes]
    return to_json(
        {
            "at": rfc3339(now),
            "nodes": [
                {"id": view.node.id, "state": view.state.value, "cluster": view.node.cluster} for view in page.nodes
            ],
            "models": models.names,
            "owners": owners.names,
            "pools": pools.names,
            "gpus": dict(zip(_COLUMNS, columns, strict=True)),
            "next_cursor": None if page.is_last else write_cursor([nodes[-1].id]),
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


_COLUMNS = (
    "id",
    "node",
    "index",
    "model",
    "pool",
    "health",
    "allocated",
    "owner",
    "job",
    "taken",
    "free",
    "utilization",
    "memory",
    "temperature",
    "power",
    "stale",
)


def _measured(gpu_id: str, measured: Measured) -> tuple[float | None, float | None, float | None, float | None, bool]:
    """Utilisation, memory, temperature, power, and whether the reading is stale."""
    latest = measured.get(gpu_id)
    if latest is None:
        return None, None, None, None, True
    reading = latest.reading
    used, total = reading.memory_used_bytes, reading.memory_total_bytes
    return (
        _rounded(reading.utilization, 3),
        round(used / total, 3) if used is not None and total else None,
        _rounded(reading.temperature_celsius, 1),
        _rounded(reading.power_watts, 1),
        latest.stale,
    )


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _visible_ids(caller: Caller) -> Callable[[Job], str | None]:
    """The id of a job that the caller may see; checked once per owner, not once per GPU."""
    known: dict[str, bool] = {}

    def visible(job: Job) -> str | None:
        may = known.get(job.user)
        if may is None:
            may = known[job.user] = may_see_job(caller, job.user)
        return job.id if may else None

    return visible


class _Numbering:
    """Names in the order of their first use, so that a column can refer to them by index."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._places: dict[str, int] = {}

    def of(self, name: str) -> int:
        place = self._places.get(name)
        if place is None:
            place = self._places[name] = len(self.names)
            self.names.append(name)
        return place
