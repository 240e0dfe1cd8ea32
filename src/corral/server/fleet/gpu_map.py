"""The map of all GPUs, which every open console page fetches every few seconds.

Held GPUs are read on the controller's thread, in one pass and as plain values; readings are added afterwards. The
answer is written without validation: checking a thousand rows against the schema costs more than building them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller
from corral.control.people.permissions import may_see_job
from corral.core.fleet.free_gpus import free_gpus
from corral.core.model import WHOLE, Job, Node
from corral.server.schemas.base import rfc3339
from corral.server.schemas.fleet.nodes import Measured


@dataclass(frozen=True, kw_only=True, slots=True)
class Fleet:
    """The nodes in their order, and of every held GPU the held share and the job with the largest share;
    and the free GPUs."""

    nodes: tuple[Node, ...]
    held: Mapping[str, tuple[int, Job]]
    free: Set[str]


def fleet_now(state: State, now: float) -> Fleet:
    held: dict[str, tuple[int, Job]] = {}
    largest: dict[str, int] = {}
    for attempt in state.attempts.values():
        job = state.snapshot.jobs[attempt.job_id]
        for grant in attempt.allocation.grants:
            for gpu in grant.gpus:
                known = held.get(gpu)
                if known is None:
                    held[gpu], largest[gpu] = (grant.gpu_milli, job), grant.gpu_milli
                    continue
                holder = known[1]
                if grant.gpu_milli > largest[gpu]:
                    holder, largest[gpu] = job, grant.gpu_milli
                held[gpu] = (known[0] + grant.gpu_milli, holder)
    return Fleet(
        nodes=tuple(slot.node for slot in state.snapshot.fleet.slots),
        held=held,
        free=free_gpus(state.snapshot, now).free,
    )


def map_of(fleet: Fleet, measured: Measured, caller: Caller, now: float) -> bytes:
    """JSON of a `GpuMapView`."""
    owners, models, pools = _Numbering(), _Numbering(), _Numbering()
    visible = _visible_ids(caller)
    rows: list[tuple[Any, ...]] = []
    for place, node in enumerate(fleet.nodes):
        for gpu in node.gpus:
            held = fleet.held.get(gpu.id)
            rows.append(
                (
                    gpu.id,
                    place,
                    gpu.index,
                    models.of(gpu.model),
                    pools.of(gpu.pool),
                    gpu.health.value,
                    0 if held is None else held[0] / WHOLE,
                    None if held is None else owners.of(held[1].user),
                    None if held is None else visible(held[1]),
                    gpu.id in node.taken.gpus,
                    gpu.id in fleet.free,
                    *_measured(gpu.id, measured),
                )
            )
    columns = zip(*rows, strict=True) if rows else [()] * len(_COLUMNS)
    return to_json(
        {
            "at": rfc3339(now),
            "nodes": [{"id": node.id, "state": node.state.value, "cluster": node.cluster} for node in fleet.nodes],
            "models": models.names,
            "owners": owners.names,
            "pools": pools.names,
            "gpus": dict(zip(_COLUMNS, columns, strict=True)),
        },
        inf_nan_mode="null",
    )


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
