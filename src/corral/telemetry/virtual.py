"""Readings of virtual GPUs: simulated, but plausible and the same for the same history.

A busy GPU rises to its own level of utilisation and varies slowly around it; power follows utilisation, temperature
follows power with a lag, energy accumulates. The load of its host follows. There is no clock and no randomness: the
caller gives the time, and differences between GPUs come from their ids. Faults come from the fleet, for drills.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from corral.control.ports import Collected, GpuReading, HostReading
from corral.core.model import Gpu, Node, NodeState

AMBIENT_CELSIUS = 26.0
#: above ambient, at full power
FULL_POWER_RISE_CELSIUS = 46.0
RAMP_SECONDS = 8.0
THERMAL_LAG_SECONDS = 40.0
_BUSY_LOW, _BUSY_HIGH = 0.70, 0.99
_IDLE_MEMORY_BYTES = 450 << 20
_IDLE_SM_CLOCK_MHZ = 210.0
#: from here on a GPU reduces its clocks
THROTTLE_CELSIUS = 90.0
_DISK_BYTES = 4 << 40
#: bytes that checkpoints add per hour; the disk is cleaned at midnight
_DISK_GROWTH_BYTES = 10 << 30
#: Two slow waves without a common period look like the variation of a real training.
_WANDER_PERIODS_SECONDS = (97.0, 311.0)


class SheetLike(Protocol):
    @property
    def tdp_watts(self) -> float: ...

    @property
    def idle_watts(self) -> float: ...

    @property
    def sm_clock_mhz(self) -> float: ...

    @property
    def memory_clock_mhz(self) -> float: ...


class Fault(Protocol):
    """The faults of a virtual GPU."""

    @property
    def temperature(self) -> float | None: ...

    @property
    def lost(self) -> bool: ...

    @property
    def idle(self) -> bool: ...

    @property
    def xids(self) -> tuple[int, ...]: ...

    @property
    def ecc_uncorrected(self) -> int: ...

    @property
    def remap_failed(self) -> bool: ...


class VirtualGpus(Protocol):
    """The source of virtual GPUs."""

    def nodes(self) -> tuple[Node, ...]: ...

    def spec(self, model: str) -> SheetLike: ...

    def faults(self) -> Mapping[str, Fault]: ...


@dataclass(slots=True)
class _State:
    """The state of a GPU between two readings."""

    at: float
    level: float
    temperature_celsius: float
    energy_joules: float
    #: XID codes of its fault that were reported already
    reported_xids: tuple[int, ...] = ()


class VirtualCollector:
    """`busy` gives the held part (0 … 1) of every GPU that a job holds. A node that is down is not read at all: its
    readings become stale, as those of a real node. Use from one thread."""

    name = "virtual"

    def __init__(self, fleet: VirtualGpus, busy: Callable[[], Mapping[str, float]]) -> None:
        self._fleet = fleet
        self._busy = busy
        self._states: dict[str, _State] = {}

    def collect(self, at: float) -> Collected:
        busy = self._busy()
        faults = self._fleet.faults()
        gpus: list[GpuReading] = []
        hosts: list[HostReading] = []
        for node in self._fleet.nodes():
            if node.state is NodeState.DOWN:
                continue
            for gpu in node.gpus:
                held = min(1.0, max(0.0, busy.get(gpu.id, 0.0)))
                gpus.append(self._reading(gpu, self._fleet.spec(gpu.model), held, faults.get(gpu.id), at))
            hosts.append(_host_reading(node, self._load(node), at))
        return Collected(gpus=gpus, hosts=hosts)

    def close(self) -> None:
        self._states.clear()

    def _load(self, node: Node) -> float:
        """The mean utilisation of its GPUs."""
        levels = [self._states[gpu.id].level for gpu in node.gpus]
        return sum(levels) / len(levels) if levels else 0.0

    def _reading(self, gpu: Gpu, sheet: SheetLike, held: float, fault: Fault | None, at: float) -> GpuReading:
        state = self._states.get(gpu.id)
        if state is None:
            resting = AMBIENT_CELSIUS + _rise(sheet.idle_watts, sheet)
            state = self._states[gpu.id] = _State(at=at, level=0.0, temperature_celsius=resting, energy_joules=0.0)
        xids = _new_xids(state, fault)
        if fault is not None and fault.lost:
            state.at = max(state.at, at)
            return GpuReading(gpu_id=gpu.id, at=at, xids=xids, lost=True)
        seconds = max(0.0, at - state.at)
        state.level += (held - state.level) * _share(seconds, RAMP_SECONDS)
        # A hung job keeps its memory and computes nothing.
        work = 0.0 if fault is not None and fault.idle else state.level
        utilization = _utilization(work, _individual(gpu.id), at)
        watts = sheet.idle_watts + (sheet.tdp_watts - sheet.idle_watts) * 0.97 * utilization
        target = AMBIENT_CELSIUS + _rise(watts, sheet) + 4.0 * (_individual(gpu.id) - 0.5)
        state.temperature_celsius += (target - state.temperature_celsius) * _share(seconds, THERMAL_LAG_SECONDS)
        state.energy_joules += watts * seconds
        state.at = max(state.at, at)
        given = fault.temperature if fault is not None else None
        temperature = state.temperature_celsius if given is None else given
        too_hot = temperature >= THROTTLE_CELSIUS
        return GpuReading(
            gpu_id=gpu.id,
            at=at,
            utilization=round(utilization, 2),
            # Most programs leave some SMs without work.
            sm_activity=round(utilization * (0.5 + 0.4 * _individual(gpu.id)), 2),
            memory_used_bytes=_memory_used(gpu, state.level),
            memory_total_bytes=gpu.memory_bytes,
            temperature_celsius=round(temperature, 1),
            power_watts=round(watts, 1),
            power_limit_watts=sheet.tdp_watts,
            energy_joules=round(state.energy_joules, 1),
            sm_clock_mhz=_sm_clock(sheet, utilization, too_hot),
            memory_clock_mhz=sheet.memory_clock_mhz,
            throttle_reasons=("hw_thermal",) if too_hot else (),
            ecc_uncorrected=fault.ecc_uncorrected if fault is not None else 0,
            ecc_corrected=0,
            remapped_rows=0,
            remap_failed=fault.remap_failed if fault is not None else False,
            xids=xids,
        )


def _new_xids(state: _State, fault: Fault | None) -> tuple[int, ...]:
    """Codes that were added to the fault since the last reading; if the list is another one, all codes are new."""
    wanted = () if fault is None else fault.xids
    reported, state.reported_xids = state.reported_xids, wanted
    return wanted[len(reported) :] if wanted[: len(reported)] == reported else wanted


def _sm_clock(sheet: SheetLike, utilization: float, too_hot: bool) -> float:
    """Clocks rise at once when there is work, and fall far when the GPU is too hot."""
    if utilization == 0.0:
        return _IDLE_SM_CLOCK_MHZ
    return round(sheet.sm_clock_mhz * (0.45 if too_hot else 1.0 - 0.04 * utilization) / 15) * 15.0


def _host_reading(node: Node, load: float, at: float) -> HostReading:
    individual = _individual(node.id)
    wave = 0.5 + 0.5 * math.sin(2 * math.pi * (at / _WANDER_PERIODS_SECONDS[0] + individual))
    disk_used = _DISK_BYTES * (0.2 + 0.4 * individual) + _DISK_GROWTH_BYTES * (at / 3600 % 24)
    return HostReading(
        node=node.id,
        at=at,
        cpu=round(0.01 + 0.02 * wave + load * (0.30 + 0.15 * individual + 0.10 * wave), 3),
        memory_used_bytes=int(node.memory_bytes * (0.04 + load * (0.25 + 0.20 * individual))),
        memory_total_bytes=node.memory_bytes,
        disk_used_bytes=int(disk_used),
        disk_total_bytes=_DISK_BYTES,
        network_receive_bytes=round(20e3 + load * (40e6 + 160e6 * wave), 1),
        network_send_bytes=round(15e3 + load * (10e6 + 40e6 * wave), 1),
    )


def _utilization(level: float, individual: float, at: float) -> float:
    """Varies around the GPU's own level inside the busy band, scaled by how far the load has ramped up."""
    middle = _BUSY_LOW + (_BUSY_HIGH - _BUSY_LOW) * (0.25 + 0.5 * individual)
    phase = 2 * math.pi * individual
    waves = sum(math.sin(2 * math.pi * at / period + phase) for period in _WANDER_PERIODS_SECONDS)
    wander = (_BUSY_HIGH - _BUSY_LOW) * 0.25 * waves / len(_WANDER_PERIODS_SECONDS)
    busy = min(_BUSY_HIGH, max(_BUSY_LOW, middle + wander))
    return busy * level if level > 0.005 else 0.0


def _rise(watts: float, sheet: SheetLike) -> float:
    return FULL_POWER_RISE_CELSIUS * watts / sheet.tdp_watts


def _share(seconds: float, constant_seconds: float) -> float:
    """The part of a gap that closes in that time, independent of the sampling interval."""
    return 1.0 - math.exp(-seconds / constant_seconds)


def _memory_used(gpu: Gpu, level: float) -> int:
    work = gpu.memory_bytes * (0.45 + 0.45 * _individual(gpu.id)) * level
    return min(gpu.memory_bytes, _IDLE_MEMORY_BYTES + int(work))


def _individual(gpu_id: str) -> float:
    """Between 0 and 1, the same for the same GPU in every process."""
    return (zlib.crc32(gpu_id.encode()) % 1000) / 999
