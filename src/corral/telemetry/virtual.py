"""Readings of virtual GPUs: simulated, but believable and the same for the same history.

A GPU under work climbs to its own level of utilisation and wanders slowly around it; power follows utilisation,
temperature follows power with a lag, energy adds up. No clock and no chance: time comes from the caller, and what
distinguishes one GPU from another comes from its id.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from corral.control.ports import GpuReading
from corral.core.model import Gpu, Node

AMBIENT_CELSIUS = 26.0
#: above ambient, at full power
FULL_POWER_RISE_CELSIUS = 46.0
RAMP_SECONDS = 8.0
THERMAL_LAG_SECONDS = 40.0
_BUSY_LOW, _BUSY_HIGH = 0.70, 0.99
_IDLE_MEMORY_BYTES = 450 << 20
#: Two slow waves without a common period look like the drift of a real training.
_WANDER_PERIODS_SECONDS = (97.0, 311.0)


class SheetLike(Protocol):
    @property
    def tdp_watts(self) -> float: ...

    @property
    def idle_watts(self) -> float: ...


class VirtualGpus(Protocol):
    """Where the imagined GPUs come from."""

    def nodes(self) -> tuple[Node, ...]: ...

    def spec(self, model: str) -> SheetLike: ...


@dataclass(slots=True)
class _State:
    """A GPU between two readings."""

    at: float
    level: float
    temperature_celsius: float
    energy_joules: float


class VirtualCollector:
    """`busy` gives the held part (0 … 1) of every GPU that somebody holds. Use from one thread."""

    def __init__(self, fleet: VirtualGpus, busy: Callable[[], Mapping[str, float]]) -> None:
        self._fleet = fleet
        self._busy = busy
        self._states: dict[str, _State] = {}

    def collect(self, at: float) -> Sequence[GpuReading]:
        busy = self._busy()
        return [
            self._reading(gpu, self._fleet.spec(gpu.model), min(1.0, max(0.0, busy.get(gpu.id, 0.0))), at)
            for node in self._fleet.nodes()
            for gpu in node.gpus
        ]

    def _reading(self, gpu: Gpu, sheet: SheetLike, held: float, at: float) -> GpuReading:
        state = self._states.get(gpu.id)
        if state is None:
            resting = AMBIENT_CELSIUS + _rise(sheet.idle_watts, sheet)
            state = self._states[gpu.id] = _State(at=at, level=0.0, temperature_celsius=resting, energy_joules=0.0)
        seconds = max(0.0, at - state.at)
        state.level += (held - state.level) * _share(seconds, RAMP_SECONDS)
        utilization = _utilization(state.level, _individual(gpu.id), at)
        watts = sheet.idle_watts + (sheet.tdp_watts - sheet.idle_watts) * 0.97 * utilization
        target = AMBIENT_CELSIUS + _rise(watts, sheet) + 4.0 * (_individual(gpu.id) - 0.5)
        state.temperature_celsius += (target - state.temperature_celsius) * _share(seconds, THERMAL_LAG_SECONDS)
        state.energy_joules += watts * seconds
        state.at = max(state.at, at)
        return GpuReading(
            gpu_id=gpu.id,
            at=at,
            utilization=round(utilization, 2),
            memory_used_bytes=_memory_used(gpu, state.level),
            memory_total_bytes=gpu.memory_bytes,
            temperature_celsius=round(state.temperature_celsius, 1),
            power_watts=round(watts, 1),
            energy_joules=round(state.energy_joules, 1),
        )


def _utilization(level: float, individual: float, at: float) -> float:
    """Around the GPU's own level inside the busy band, scaled by how far the work has ramped up."""
    middle = _BUSY_LOW + (_BUSY_HIGH - _BUSY_LOW) * (0.25 + 0.5 * individual)
    phase = 2 * math.pi * individual
    waves = sum(math.sin(2 * math.pi * at / period + phase) for period in _WANDER_PERIODS_SECONDS)
    wander = (_BUSY_HIGH - _BUSY_LOW) * 0.25 * waves / len(_WANDER_PERIODS_SECONDS)
    busy = min(_BUSY_HIGH, max(_BUSY_LOW, middle + wander))
    return busy * level if level > 0.005 else 0.0


def _rise(watts: float, sheet: SheetLike) -> float:
    return FULL_POWER_RISE_CELSIUS * watts / sheet.tdp_watts


def _share(seconds: float, constant_seconds: float) -> float:
    """How much of a gap closes in that time, whatever the sampling interval."""
    return 1.0 - math.exp(-seconds / constant_seconds)


def _memory_used(gpu: Gpu, level: float) -> int:
    work = gpu.memory_bytes * (0.45 + 0.45 * _individual(gpu.id)) * level
    return min(gpu.memory_bytes, _IDLE_MEMORY_BYTES + int(work))


def _individual(gpu_id: str) -> float:
    """Between 0 and 1, the same for the same GPU in every process."""
    return (zlib.crc32(gpu_id.encode()) % 1000) / 999
