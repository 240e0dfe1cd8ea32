"""Sums over the latest readings of many GPUs and nodes.

Readings are kept as columns of numbers beside the readings themselves, so that the sums over a hundred thousand GPUs,
of those that are fresh and of those that jobs hold, take a millisecond at any moment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corral.control.fleet.live_fleet import HeldGpus
from corral.control.ports import GpuReading, HostReading

_Numbers = npt.NDArray[np.float64]
_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuSums:
    """The sums over GPUs with a fresh reading that are part of the fleet. A value that no GPU reports is None, not
    zero.
    """

    #: GPUs with a fresh reading that answer
    read: int = 0
    #: sum over held GPUs, and whether any of them reports it
    utilization: float | None = None
    #: mean over held GPUs
    sm_activity: float | None = None
    #: held GPUs that are used less than the limit
    idle: int = 0
    power_watts: float | None = None
    power_limit_watts: float | None = None
    #: temperature of the hottest GPU, and the mean
    temperature_celsius: float | None = None
    temperature_mean_celsius: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class HostSums:
    """The sums over nodes with a fresh reading."""

    #: mean over the nodes that report it
    cpu: float | None = None
    #: memory of the nodes that report both
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None


class _Columns:
    """Rows of numbers by a key; a missing number is NaN."""

    def __init__(self, width: int) -> None:
        self.rows: dict[str, int] = {}
        self._numbers = np.full((width, 64), np.nan)

    def put(self, keys: Sequence[str], values: Sequence[Sequence[float | None]]) -> None:
        """`values` has a row for each key."""
        if not keys:
            return
        places = [self.rows.setdefault(key, len(self.rows)) for key in keys]
        while len(self.rows) > self._numbers.shape[1]:
            self._numbers = np.concatenate([self._numbers, np.full_like(self._numbers, np.nan)], axis=1)
        self._numbers[:, places] = np.array(values, dtype=np.float64).T

    def retain(self, keys: Collection[str]) -> None:
        kept = [key for key in self.rows if key in keys]
        self._numbers = self._numbers[:, [*(self.rows[key] for key in kept)]].copy()
        if not kept:
            self._numbers = np.full((self._numbers.shape[0], 64), np.nan)
        self.rows = {key: place for place, key in enumerate(kept)}

    def copy(self) -> _Numbers:
        return self._numbers[:, : len(self.rows)].copy()


class GpuColumns:
    """Not safe for use by several threads: `numbers` makes a copy that is."""

    def __init__(self) -> None:
        self._columns = _Columns(7)
        #: the places that `_order` was made for, how many rows it has, and for each row the GPU's place or -1
        self._order: tuple[Mapping[str, int] | None, int, npt.NDArray[np.int64]] = (None, 0, np.empty(0, np.int64))

    def put(self, readings: Collection[GpuReading]) -> None:
        values = [
            (
                reading.at,
                reading.utilization,
                reading.sm_activity,
                reading.power_watts,
                reading.power_limit_watts,
                reading.temperature_celsius,
                float(reading.lost),
            )
            for reading in readings
        ]
        self._columns.put([reading.gpu_id for reading in readings], values)

    def retain(self, gpu_ids: Collection[str]) -> None:
        self._columns.retain(gpu_ids)
        self._order = (None, 0, np.empty(0, np.int64))

    def numbers(self, held: HeldGpus) -> tuple[_Numbers, npt.NDArray[np.int64]]:
        """A copy of the columns, and for each row the place of its GPU in the fleet, or -1."""
        places, count, order = self._order
        rows = self._columns.rows
        if places is not held.places or count != len(rows):
            order = np.fromiter((held.places.get(key, -1) for key in rows), np.int64, len(rows))
            self._order = (held.places, len(rows), order)
        return self._columns.copy(), order


def gpu_sums(
    numbers: tuple[_Numbers, npt.NDArray[np.int64]],
    held: HeldGpus,
    now: float,
    stale_after_seconds: float,
    *,
    idle_below: float = 0.0,
    cluster: str | None = None,
) -> GpuSums:
    """The sums of one cluster, or of all."""
    (at, utilization, sm_activity, power, limit, celsius, lost), places = numbers
    known: _Mask = (places >= 0) & (np.abs(now - at) <= stale_after_seconds) & (lost == 0)
    if cluster is not None:
        known &= _at(held.clusters.get(cluster, bytes(len(held.held))), places)
    is_held = known & _at(held.held, places)
    used = _numbers(utilization[is_held])
    active = _numbers(sm_activity[is_held])
    watts, limits, temperatures = _numbers(power[known]), _numbers(limit[known]), _numbers(celsius[known])
    return GpuSums(
        read=int(np.count_nonzero(known)),
        utilization=float(used.sum()) if used.size else None,
        sm_activity=float(active.mean()) if active.size else None,
        idle=int(np.count_nonzero(used < idle_below)),
        power_watts=float(watts.sum()) if watts.size else None,
        power_limit_watts=float(limits.sum()) if limits.size else None,
        temperature_celsius=float(temperatures.max()) if temperatures.size else None,
        temperature_mean_celsius=float(temperatures.mean()) if temperatures.size else None,
    )


def host_sums(hosts: Iterable[HostReading]) -> HostSums:
    """The sums of fresh readings."""
    cpus: list[float] = []
    used = total = known = 0
    for host in hosts:
        if host.cpu is not None:
            cpus.append(host.cpu)
        if host.memory_used_bytes is not None and host.memory_total_bytes is not None:
            used, total, known = used + host.memory_used_bytes, total + host.memory_total_bytes, known + 1
    return HostSums(
        cpu=sum(cpus) / len(cpus) if cpus else None,
        memory_used_bytes=used if known else None,
        memory_total_bytes=total if known else None,
    )


def _numbers(values: Any) -> _Numbers:
    found: _Numbers = values[~np.isnan(values)]
    return found


def _at(flags: bytes, places: npt.NDArray[np.int64]) -> _Mask:
    """The flag of each place; a place of -1 has none."""
    if not flags:
        return np.zeros(places.shape, np.bool_)
    found: _Mask = np.frombuffer(flags, np.bool_)[places]
    return found
