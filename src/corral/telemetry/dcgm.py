"""The metric names of NVIDIA's DCGM exporter and of corral's own, and how readings are made from them. Pure.

Units are DCGM's (MiB, mJ, %). Where DCGM has no name for a value, corral uses a name of its own. Exporters spell the
host's label `Hostname` or `hostname`. `page` prints the page of corral's own exporter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from corral.control.ports import GpuProcess, GpuReading, HostReading, MigSlice
from corral.telemetry.promtext import Sample

MIB = 1 << 20
#: Bits of DCGM_FI_DEV_CLOCK_THROTTLE_REASONS, which are NVML's, and their names. Idleness (1) is not a throttle reason.
THROTTLE_BITS = (
    (0x002, "app_clocks"),
    (0x004, "sw_power_cap"),
    (0x008, "hw_slowdown"),
    (0x010, "sync_boost"),
    (0x020, "sw_thermal"),
    (0x040, "hw_thermal"),
    (0x080, "hw_power_brake"),
    (0x100, "display_clocks"),
    (0x200, "board_limit"),
    (0x400, "reliability"),
)
#: From here on DCGM means "no value", for whole numbers and for others.
_BLANK_INTEGER = float(0x7FFFFFFFFFFFFFF0)
_BLANK_FLOATS = frozenset(140737488355328.0 + code for code in range(16))

UTILIZATION = "DCGM_FI_DEV_GPU_UTIL"
ENGINE_ACTIVE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
SM_ACTIVE = "DCGM_FI_PROF_SM_ACTIVE"
MEMORY_USED = "DCGM_FI_DEV_FB_USED"
MEMORY_FREE = "DCGM_FI_DEV_FB_FREE"
MEMORY_RESERVED = "DCGM_FI_DEV_FB_RESERVED"
MEMORY_TOTAL = "DCGM_FI_DEV_FB_TOTAL"
TEMPERATURE = "DCGM_FI_DEV_GPU_TEMP"
POWER = "DCGM_FI_DEV_POWER_USAGE"
POWER_LIMIT = "DCGM_FI_DEV_POWER_MGMT_LIMIT"
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
SM_CLOCK = "DCGM_FI_DEV_SM_CLOCK"
MEMORY_CLOCK = "DCGM_FI_DEV_MEM_CLOCK"
THROTTLE = "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"
#: the names in newer versions
THROTTLE_LATER = "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"
ECC_UNCORRECTED = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"
ECC_CORRECTED = "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"
REMAPPED_UNCORRECTABLE = "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"
REMAPPED_CORRECTABLE = "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"
REMAP_FAILURE = "DCGM_FI_DEV_ROW_REMAP_FAILURE"
XID = "DCGM_FI_DEV_XID_ERRORS"
#: corral's own
OWN = "corral_exporter_"
LOST = f"{OWN}gpu_lost"
REMAPPED_ROWS = f"{OWN}gpu_remapped_rows"
XID_EVENTS = f"{OWN}gpu_xid_events_total"
PROCESS_MEMORY = f"{OWN}gpu_process_memory_bytes"
CPU = f"{OWN}cpu_ratio"
HOST_MEMORY_USED = f"{OWN}memory_used_bytes"
HOST_MEMORY_TOTAL = f"{OWN}memory_total_bytes"
DISK_USED = f"{OWN}disk_used_bytes"
DISK_TOTAL = f"{OWN}disk_total_bytes"
NETWORK_RECEIVE = f"{OWN}network_receive_bytes_per_second"
NETWORK_SEND = f"{OWN}network_send_bytes_per_second"

#: Metrics of each slice of a partitioned GPU; all others are for the whole device.
_OF_SLICES = frozenset({MEMORY_USED, MEMORY_FREE, MEMORY_RESERVED, MEMORY_TOTAL, UTILIZATION, ENGINE_ACTIVE, SM_ACTIVE})
_OF_GPUS = frozenset(
    {
        UTILIZATION, ENGINE_ACTIVE, SM_ACTIVE, MEMORY_USED, MEMORY_FREE, MEMORY_RESERVED, MEMORY_TOTAL, TEMPERATURE,
        POWER, POWER_LIMIT, ENERGY, SM_CLOCK, MEMORY_CLOCK, THROTTLE, THROTTLE_LATER, ECC_UNCORRECTED, ECC_CORRECTED,
        REMAPPED_UNCORRECTABLE, REMAPPED_CORRECTABLE, REMAP_FAILURE, XID, LOST, REMAPPED_ROWS, XID_EVENTS,
        PROCESS_MEMORY,
    }
)  # fmt: skip
_OF_HOSTS = frozenset({CPU, HOST_MEMORY_USED, HOST_MEMORY_TOTAL, DISK_USED, DISK_TOTAL, NETWORK_RECEIVE, NETWORK_SEND})
#: All metrics that are used.
NAMES = _OF_GPUS | _OF_HOSTS


def throttle_names(bits: int) -> tuple[str, ...]:
    return tuple(word for bit, word in THROTTLE_BITS if bits & bit)


def throttle_bits(names: Iterable[str]) -> int:
    return sum(bit for bit, name in THROTTLE_BITS if name in names)


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuLabels:
    """The labels by which an exporter identifies a GPU; empty or None if it does not report them."""

    uuid: str
    host: str
    index: int | None


class XidMemory:
    """Finds the XID codes that are new since the last call for a GPU. Codes at the first call are old."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._counts: dict[str, Mapping[int, int]] = {}

    def new(self, gpu_id: str, last: int, counts: Mapping[int, int]) -> tuple[int, ...]:
        """`last` is the last code (0: none), which is all that DCGM reports; `counts` is the number of errors by code,
        if reported."""
        is_first = gpu_id not in self._last
        before, self._last[gpu_id] = self._last.get(gpu_id, 0), last
        counted, self._counts[gpu_id] = self._counts.get(gpu_id, {}), counts
        if is_first:
            return ()
        if counts:
            return tuple(code for code in sorted(counts) for _ in range(_growth(counted.get(code, 0), counts[code])))
        return (last,) if last and last != before else ()


def _growth(before: int, now: int) -> int:
    """A counter that fell was reset."""
    return now - before if now >= before else now


@dataclass(slots=True)
class _Found:
    """The metrics of one GPU."""

    labels: GpuLabels
    values: dict[str, float] = field(default_factory=dict)
    xid_counts: dict[int, int] = field(default_factory=dict)
    processes: list[GpuProcess] = field(default_factory=list)
    slices: dict[str, dict[str, float]] = field(default_factory=dict)
    profiles: dict[str, str] = field(default_factory=dict)


def gpu_readings(
    samples: Iterable[Sample], at: float, identify: Callable[[GpuLabels], str | None], xids: XidMemory
) -> list[GpuReading]:
    """The GPUs that `identify` knows, each once."""
    readings: dict[str, GpuReading] = {}
    for found in _by_gpu(samples).values():
        gpu_id = identify(found.labels)
        if gpu_id is not None:
            readings[gpu_id] = _reading(gpu_id, found, at, xids)
    return list(readings.values())


def host_readings(samples: Iterable[Sample], at: float, identify: Callable[[str], str | None]) -> list[HostReading]:
    hosts: dict[str, dict[str, float]] = {}
    for sample in samples:
        if sample.name in _OF_HOSTS and _has_value(sample.value):
            hosts.setdefault(_host_label(sample.labels), {})[sample.name] = sample.value
    readings = []
    for host, values in hosts.items():
        node = identify(host)
        if node is not None:
            readings.append(
                HostReading(
                    node=node,
                    at=at,
                    cpu=values.get(CPU),
                    memory_used_bytes=_whole(values.get(HOST_MEMORY_USED)),
                    memory_total_bytes=_whole(values.get(HOST_MEMORY_TOTAL)),
                    disk_used_bytes=_whole(values.get(DISK_USED)),
                    disk_total_bytes=_whole(values.get(DISK_TOTAL)),
                    network_receive_bytes=values.get(NETWORK_RECEIVE),
                    network_send_bytes=values.get(NETWORK_SEND),
                )
            )
    return readings


def _by_gpu(samples: Iterable[Sample]) -> dict[tuple[str, str], _Found]:
    gpus: dict[tuple[str, str], _Found] = {}
    for sample in samples:
        if sample.name not in _OF_GPUS:
            continue
        labels = sample.labels
        uuid, host, index = labels.get("UUID") or labels.get("uuid", ""), _host_label(labels), labels.get("gpu", "")
        if not uuid and not index:
            continue
        key = (uuid, "") if uuid else (host, index)
        found = gpus.get(key)
        if found is None:
            names = GpuLabels(uuid=uuid, host=host, index=int(index) if index.isdecimal() else None)
            found = gpus[key] = _Found(labels=names)
        _add(found, sample)
    return gpus


def _add(found: _Found, sample: Sample) -> None:
    labels, value = sample.labels, sample.value
    if sample.name == PROCESS_MEMORY:
        pid = labels.get("pid", "")
        if pid.isdecimal():
            found.processes.append(GpuProcess(pid=int(pid), memory_bytes=_whole(value if _has_value(value) else None)))
        return
    if not _has_value(value):
        return
    slice_id = labels.get("GPU_I_ID", "")
    if sample.name == XID_EVENTS:
        if labels.get("xid", "").isdecimal():
            found.xid_counts[int(labels["xid"])] = int(value)
    elif slice_id and sample.name in _OF_SLICES:
        found.slices.setdefault(slice_id, {})[sample.name] = value
        found.profiles[slice_id] = labels.get("GPU_I_PROFILE", "")
    else:
        found.values[sample.name] = value


def _reading(gpu_id: str, found: _Found, at: float, memory: XidMemory) -> GpuReading:
    values = found.values
    xids = memory.new(gpu_id, int(values.get(XID, 0)), found.xid_counts)
    if values.get(LOST):
        return GpuReading(gpu_id=gpu_id, at=at, xids=xids, lost=True)
    slices = tuple(
        MigSlice(
            id=slice_id,
            profile=found.profiles[slice_id],
            memory_used_bytes=_bytes(own.get(MEMORY_USED)),
            memory_total_bytes=_memory_total(own),
        )
        for slice_id, own in sorted(found.slices.items())
    )
    throttle = values.get(THROTTLE, values.get(THROTTLE_LATER, 0.0))
    return GpuReading(
        gpu_id=gpu_id,
        at=at,
        utilization=_utilization(values),
        sm_activity=values.get(SM_ACTIVE),
        memory_used_bytes=_bytes(values.get(MEMORY_USED)),
        memory_total_bytes=_memory_total(values),
        temperature_celsius=values.get(TEMPERATURE),
        power_watts=values.get(POWER),
        power_limit_watts=values.get(POWER_LIMIT),
        energy_joules=values[ENERGY] / 1000 if ENERGY in values else None,
        sm_clock_mhz=values.get(SM_CLOCK),
        memory_clock_mhz=values.get(MEMORY_CLOCK),
        throttle_reasons=throttle_names(int(throttle)),
        ecc_uncorrected=_whole(values.get(ECC_UNCORRECTED)),
        ecc_corrected=_whole(values.get(ECC_CORRECTED)),
        remapped_rows=_remapped(values),
        remap_failed=bool(values[REMAP_FAILURE]) if REMAP_FAILURE in values else None,
        xids=xids,
        processes=tuple(found.processes),
        mig_slices=slices,
    )


def _utilization(values: Mapping[str, float]) -> float | None:
    if UTILIZATION in values:
        return values[UTILIZATION] / 100
    return values.get(ENGINE_ACTIVE)  # a ratio; some set-ups have only this


def _memory_total(values: Mapping[str, float]) -> int | None:
    if MEMORY_TOTAL in values:
        return _bytes(values[MEMORY_TOTAL])
    if MEMORY_USED not in values or MEMORY_FREE not in values:
        return None
    return _bytes(values[MEMORY_USED] + values[MEMORY_FREE] + values.get(MEMORY_RESERVED, 0.0))


def _remapped(values: Mapping[str, float]) -> int | None:
    if REMAPPED_ROWS in values:
        return int(values[REMAPPED_ROWS])
    remapped = [values[name] for name in (REMAPPED_UNCORRECTABLE, REMAPPED_CORRECTABLE) if name in values]
    return int(sum(remapped)) if remapped else None


def _host_label(labels: Mapping[str, str]) -> str:
    return labels.get("Hostname") or labels.get("hostname", "")


def _has_value(value: float) -> bool:
    return math.isfinite(value) and 0 <= value < _BLANK_INTEGER and value not in _BLANK_FLOATS


def _bytes(mib: float | None) -> int | None:
    return None if mib is None else round(mib * MIB)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
