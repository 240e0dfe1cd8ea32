"""The page of corral's own exporter: readings as metrics, under DCGM's names where DCGM has one. Pure.

The opposite of `dcgm`: parsing the page there gives the same readings again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from corral.control.ports import GpuReading, HostReading
from corral.telemetry.dcgm import (
    CPU,
    DISK_TOTAL,
    DISK_USED,
    ECC_CORRECTED,
    ECC_UNCORRECTED,
    ENERGY,
    HOST_MEMORY_TOTAL,
    HOST_MEMORY_USED,
    LOST,
    MEMORY_CLOCK,
    MEMORY_FREE,
    MEMORY_USED,
    MIB,
    NETWORK_RECEIVE,
    NETWORK_SEND,
    POWER,
    POWER_LIMIT,
    PROCESS_MEMORY,
    REMAP_FAILURE,
    REMAPPED_ROWS,
    SM_ACTIVE,
    SM_CLOCK,
    TEMPERATURE,
    THROTTLE,
    UTILIZATION,
    XID,
    XID_EVENTS,
    throttle_bits,
)
from corral.telemetry.promtext import Family


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuPlace:
    """Node and index of a GPU, for its labels."""

    index: int
    model: str
    host: str

    def labels(self, gpu_id: str) -> dict[str, str]:
        return {
            "gpu": str(self.index),
            "UUID": gpu_id,
            "device": f"nvidia{self.index}",
            "modelName": self.model,
            "Hostname": self.host,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenXids:
    """The XID codes of one GPU since the exporter began."""

    last: int = 0
    counts: Mapping[int, int] = field(default_factory=dict)


#: Name, kind, help, and the value of a reading (None: not printed). Names that DCGM has are in DCGM's units.
_GPU_METRICS: tuple[tuple[str, str, str, Callable[[GpuReading], float | None]], ...] = (
    (SM_CLOCK, "gauge", "SM clock in MHz.", lambda gpu: gpu.sm_clock_mhz),
    (MEMORY_CLOCK, "gauge", "Memory clock in MHz.", lambda gpu: gpu.memory_clock_mhz),
    (TEMPERATURE, "gauge", "Temperature of the GPU in degrees Celsius.", lambda gpu: gpu.temperature_celsius),
    (POWER, "gauge", "Power draw in watts.", lambda gpu: gpu.power_watts),
    (POWER_LIMIT, "gauge", "Power limit in watts.", lambda gpu: gpu.power_limit_watts),
    (ENERGY, "counter", "Energy used since the driver was loaded, in mJ.", lambda gpu: _millijoules(gpu)),
    (UTILIZATION, "gauge", "Utilisation in percent.", lambda gpu: _percent(gpu.utilization)),
    (SM_ACTIVE, "gauge", "Activity of the SMs, 0 to 1.", lambda gpu: gpu.sm_activity),
    (MEMORY_FREE, "gauge", "Free memory in MiB.", lambda gpu: _free_mib(gpu.memory_total_bytes, gpu.memory_used_bytes)),
    (MEMORY_USED, "gauge", "Used memory in MiB.", lambda gpu: _mib(gpu.memory_used_bytes)),
    (THROTTLE, "gauge", "Why clocks are held down, as bits.", lambda gpu: throttle_bits(gpu.throttle_reasons)),
    (ECC_CORRECTED, "counter", "Corrected memory errors.", lambda gpu: gpu.ecc_corrected),
    (ECC_UNCORRECTED, "counter", "Memory errors that could not be corrected.", lambda gpu: gpu.ecc_uncorrected),
    (REMAP_FAILURE, "gauge", "1 if a row could not be remapped.", lambda gpu: _flag(gpu.remap_failed)),
    (REMAPPED_ROWS, "gauge", "Rows of memory that were remapped.", lambda gpu: gpu.remapped_rows),
)

_HOST_METRICS: tuple[tuple[str, str, Callable[[HostReading], float | None]], ...] = (
    (CPU, "Use of all CPUs, 0 to 1.", lambda host: host.cpu),
    (HOST_MEMORY_USED, "Memory in use.", lambda host: host.memory_used_bytes),
    (HOST_MEMORY_TOTAL, "Memory of the machine.", lambda host: host.memory_total_bytes),
    (DISK_USED, "Used space on the disk that holds the state.", lambda host: host.disk_used_bytes),
    (DISK_TOTAL, "Size of the disk that holds the state.", lambda host: host.disk_total_bytes),
    (NETWORK_RECEIVE, "Received per second.", lambda host: host.network_receive_bytes),
    (NETWORK_SEND, "Sent per second.", lambda host: host.network_send_bytes),
)

Placed = tuple[GpuReading, GpuPlace, SeenXids]


def gpu_families(gpus: Sequence[Placed]) -> list[Family]:
    """The metrics of GPUs. A lost GPU has only the metric that shows the loss."""
    well = [(reading, place.labels(reading.gpu_id)) for reading, place, _ in gpus if not reading.lost]
    labelled = [(reading, place.labels(reading.gpu_id), xids) for reading, place, xids in gpus]
    families = [
        Family(name, kind, text, [*_samples(well, value), *(_slice_samples(name, well))])
        for name, kind, text, value in _GPU_METRICS
    ]
    return [
        *families,
        Family(XID, "gauge", "The last XID code, 0 for none.", [(names, xids.last) for _, names, xids in labelled]),
        Family(
            XID_EVENTS,
            "counter",
            "XID errors since the exporter began.",
            [
                ({**names, "xid": str(code)}, count)
                for _, names, xids in labelled
                for code, count in sorted(xids.counts.items())
            ],
        ),
        Family(
            PROCESS_MEMORY,
            "gauge",
            "GPU memory of each process; NaN if it is not known.",
            [
                ({**names, "pid": str(each.pid)}, math.nan if each.memory_bytes is None else each.memory_bytes)
                for reading, names in well
                for each in reading.processes
            ],
        ),
        Family(
            LOST,
            "gauge",
            "1 for a GPU that was there and does not answer any more.",
            [(names, float(reading.lost)) for reading, names, _ in labelled],
        ),
    ]


def host_families(hosts: Sequence[HostReading]) -> list[Family]:
    return [
        Family(
            name,
            "gauge",
            text,
            [({"Hostname": host.node}, known) for host in hosts if (known := value(host)) is not None],
        )
        for name, text, value in _HOST_METRICS
    ]


def _samples(
    gpus: Sequence[tuple[GpuReading, dict[str, str]]], value: Callable[[GpuReading], float | None]
) -> list[tuple[Mapping[str, str], float]]:
    return [(names, known) for reading, names in gpus if (known := value(reading)) is not None]


def _slice_samples(
    name: str, gpus: Sequence[tuple[GpuReading, dict[str, str]]]
) -> list[tuple[Mapping[str, str], float]]:
    if name not in (MEMORY_USED, MEMORY_FREE):
        return []
    samples: list[tuple[Mapping[str, str], float]] = []
    for reading, names in gpus:
        for each in reading.mig_slices:
            used = _mib(each.memory_used_bytes)
            value = used if name == MEMORY_USED else _free_mib(each.memory_total_bytes, each.memory_used_bytes)
            if value is not None:
                samples.append(({**names, "GPU_I_PROFILE": each.profile, "GPU_I_ID": each.id}, value))
    return samples


def _millijoules(gpu: GpuReading) -> float | None:
    return None if gpu.energy_joules is None else round(gpu.energy_joules * 1000)


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio * 100, 6)


def _mib(size: int | None) -> float | None:
    return None if size is None else size / MIB


def _free_mib(total: int | None, used: int | None) -> float | None:
    return None if total is None or used is None else (total - used) / MIB


def _flag(value: bool | None) -> float | None:
    return None if value is None else float(value)
