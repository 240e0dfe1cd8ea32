"""Readings of real NVIDIA GPUs through NVML.

Devices differ in the values that they report: a missing field is None, a device that does not answer is left out of the
round. A device that has fallen off the bus, or is missing after the driver came back, is reported as lost. Nothing here
raises, with or without a driver.
"""

from __future__ import annotations

import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pynvml  # type: ignore[import-untyped]

from corral.control.ports import Collected, GpuProcess, GpuReading, MigSlice
from corral.telemetry.dcgm import throttle_names
from corral.telemetry.nvml_activity import SmActivity
from corral.telemetry.page import GpuPlace

logger = logging.getLogger(__name__)

_VOID = (pynvml.NVML_ERROR_UNINITIALIZED, pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
_LOST = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED)
#: A lost GPU that was repaired is found only after the library was initialised again.
REOPEN_SECONDS = 60.0
_MAX_EVENTS = 256


@dataclass(kw_only=True, slots=True)
class _Session:
    """The library while it is open."""

    opened_at: float
    handles: dict[str, Any] = field(default_factory=dict)
    #: the event set of XID errors; None if the driver reports none
    events: Any = None
    activity: SmActivity = field(default_factory=SmActivity)


class NvmlCollector:
    """Use from one thread. `gpu_ids`, if given, are the only ones read."""

    name = "nvml"

    def __init__(self, gpu_ids: Sequence[str] | None = None) -> None:
        self._wanted = None if gpu_ids is None else frozenset(gpu_ids)
        self._session: _Session | None = None
        #: every GPU that was ever found, with its index and product name
        self._seen: dict[str, tuple[int, str]] = {}

    def collect(self, at: float) -> Collected:
        try:
            session = self._session = self._session or self._open(at)
            xids = _new_xids(session.events)
            readings = {
                gpu_id: _read(gpu_id, handle, at, xids, session.activity) for gpu_id, handle in session.handles.items()
            }
        except _DriverGone as error:
            logger.debug("no NVIDIA driver, trying again with the next round: %s", error)
            self.close()
            return Collected()
        for gpu_id in self._seen.keys() - session.handles.keys():
            readings[gpu_id] = GpuReading(gpu_id=gpu_id, at=at, lost=True)
        whole = [reading for reading in readings.values() if reading is not None]
        found = [*whole, *(part for reading in whole for part in _of_slices(reading))]
        if any(reading.lost for reading in found) and at - session.opened_at >= REOPEN_SECONDS:
            self.close()
        return Collected(gpus=found)

    def close(self) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        session.activity.close()
        if session.events is not None:
            _does(pynvml.nvmlEventSetFree, session.events)
        _does(pynvml.nvmlShutdown)

    def places(self, host: str) -> dict[str, GpuPlace]:
        """Node and index of the GPUs that were read so far."""
        seen = dict(self._seen)
        return {gpu_id: GpuPlace(index=index, model=model, host=host) for gpu_id, (index, model) in seen.items()}

    def _open(self, at: float) -> _Session:
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise _DriverGone(str(error)) from error
        try:
            return self._begin(at)
        except (_DriverGone, _GpuLost) as error:
            _does(pynvml.nvmlShutdown)
            raise _DriverGone(str(error)) from error

    def _begin(self, at: float) -> _Session:
        session = _Session(opened_at=at)
        count = _ask(pynvml.nvmlDeviceGetCount)
        if count is None:
            raise _DriverGone("it does not report the number of GPUs")
        for index in range(count):
            with contextlib.suppress(_GpuLost):
                handle = _ask(pynvml.nvmlDeviceGetHandleByIndex, index)
                gpu_id = None if handle is None else _text(_ask(pynvml.nvmlDeviceGetUUID, handle))
                if gpu_id and (self._wanted is None or gpu_id in self._wanted):
                    session.handles[gpu_id] = handle
                    self._seen[gpu_id] = (index, _text(_ask(pynvml.nvmlDeviceGetName, handle)) or "")
        session.events = _watch_xids(session.handles.values())
        return session


class _DriverGone(Exception):
    """The driver is missing, or was unloaded or restarted: all handles are invalid."""


class _GpuLost(Exception):
    """This device no longer answers, and will not until it is reset."""


# ------------------------------------------------------------------------------------------------ one device


def _read(
    gpu_id: str, handle: Any, at: float, xids: Mapping[str, Sequence[int]], activity: SmActivity
) -> GpuReading | None:
    codes = tuple(xids.get(gpu_id, ()))
    try:
        return _answers(gpu_id, handle, at, codes, activity)
    except _GpuLost:
        return GpuReading(gpu_id=gpu_id, at=at, xids=codes, lost=True)


def _answers(gpu_id: str, handle: Any, at: float, xids: tuple[int, ...], activity: SmActivity) -> GpuReading | None:
    memory = _memory(handle)
    if memory is None:
        return None  # the device does not answer even the simplest query
    rates = _ask(pynvml.nvmlDeviceGetUtilizationRates, handle)
    limit = _ask(pynvml.nvmlDeviceGetEnforcedPowerLimit, handle)
    remapped = _ask(pynvml.nvmlDeviceGetRemappedRows, handle)
    return GpuReading(
        gpu_id=gpu_id,
        at=at,
        utilization=None if rates is None else rates.gpu / 100,
        sm_activity=activity.since_last(gpu_id, handle),
        memory_used_bytes=int(memory.used),
        memory_total_bytes=int(memory.total),
        temperature_celsius=_number(_ask(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU)),
        power_watts=_thousandth(_ask(pynvml.nvmlDeviceGetPowerUsage, handle)),
        power_limit_watts=_thousandth(limit),
        energy_joules=_thousandth(_ask(pynvml.nvmlDeviceGetTotalEnergyConsumption, handle)),
        sm_clock_mhz=_number(_ask(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM)),
        memory_clock_mhz=_number(_ask(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_MEM)),
        throttle_reasons=throttle_names(_throttle_bits(handle)),
        ecc_uncorrected=_ecc(handle, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
        ecc_corrected=_ecc(handle, pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
        remapped_rows=None if remapped is None else int(remapped[0] + remapped[1]),
        remap_failed=None if remapped is None else bool(remapped[3]),
        xids=xids,
        processes=_processes(handle),
        mig_slices=_slices(handle),
    )


def _memory(handle: Any) -> Any:
    """Used memory without the driver's own share, as `nvidia-smi` shows it; older drivers do not report it."""
    second = _ask(pynvml.nvmlDeviceGetMemoryInfo, handle, pynvml.nvmlMemory_v2)
    return _ask(pynvml.nvmlDeviceGetMemoryInfo, handle) if second is None else second


def _throttle_bits(handle: Any) -> int:
    """The newer function, or the one of older drivers."""
    bits = _ask(pynvml.nvmlDeviceGetCurrentClocksEventReasons, handle)
    if bits is None:
        bits = _ask(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
    return int(bits or 0)


def _ecc(handle: Any, kind: int) -> int | None:
    count = _ask(pynvml.nvmlDeviceGetTotalEccErrors, handle, kind, pynvml.NVML_VOLATILE_ECC)
    return None if count is None else int(count)


def _processes(handle: Any) -> tuple[GpuProcess, ...]:
    found = _ask(pynvml.nvmlDeviceGetComputeRunningProcesses, handle) or ()
    return tuple(
        GpuProcess(pid=int(each.pid), memory_bytes=None if each.usedGpuMemory is None else int(each.usedGpuMemory))
        for each in found
    )


def _of_slices(whole: GpuReading) -> list[GpuReading]:
    """The values of each slice, for jobs whose GPUs are slices."""
    return [
        GpuReading(
            gpu_id=part.id,
            at=whole.at,
            memory_used_bytes=part.memory_used_bytes,
            memory_total_bytes=part.memory_total_bytes,
            temperature_celsius=whole.temperature_celsius,
            xids=whole.xids,
        )
        for part in whole.mig_slices
    ]


def _slices(handle: Any) -> tuple[MigSlice, ...]:
    mode = _ask(pynvml.nvmlDeviceGetMigMode, handle)
    if mode is None or mode[0] != pynvml.NVML_DEVICE_MIG_ENABLE:
        return ()
    slices = []
    for index in range(_ask(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
        part = _ask(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index)
        slice_id = None if part is None else _text(_ask(pynvml.nvmlDeviceGetUUID, part))
        if slice_id:
            memory = _memory(part)
            slices.append(
                MigSlice(
                    id=slice_id,
                    # "NVIDIA A100-SXM4-40GB MIG 1g.5gb"
                    profile=(_text(_ask(pynvml.nvmlDeviceGetName, part)) or "").rpartition(" ")[2],
                    memory_used_bytes=None if memory is None else int(memory.used),
                    memory_total_bytes=None if memory is None else int(memory.total),
                )
            )
    return tuple(slices)


# ------------------------------------------------------------------------------------------------ XID errors


def _watch_xids(handles: Any) -> Any:
    """A set of events that receives the XID errors of all devices; None if no device reports any."""
    events = _ask(pynvml.nvmlEventSetCreate)
    if events is None:
        return None
    watched = 0
    for handle in handles:
        with contextlib.suppress(_GpuLost):
            kinds = _ask(pynvml.nvmlDeviceGetSupportedEventTypes, handle) or 0
            if kinds & pynvml.nvmlEventTypeXidCriticalError:
                watched += _does(pynvml.nvmlDeviceRegisterEvents, handle, pynvml.nvmlEventTypeXidCriticalError, events)
    if watched:
        return events
    _does(pynvml.nvmlEventSetFree, events)
    return None


def _new_xids(events: Any) -> dict[str, list[int]]:
    """New XID errors by GPU. Does not wait."""
    found: dict[str, list[int]] = defaultdict(list)
    with contextlib.suppress(_GpuLost):
        for _ in range(_MAX_EVENTS if events is not None else 0):
            event = _ask(pynvml.nvmlEventSetWait, events, 0)
            if event is None:  # no more
                break
            gpu_id = _text(_ask(pynvml.nvmlDeviceGetUUID, event.device))
            if gpu_id and event.eventType == pynvml.nvmlEventTypeXidCriticalError:
                found[gpu_id].append(int(event.eventData))
    return found


# ------------------------------------------------------------------------------------------------ asking


def _ask(question: Callable[..., Any], *arguments: Any) -> Any:
    """The answer, or None if the device has none."""
    try:
        return question(*arguments)
    except pynvml.NVMLError as error:
        if error.value in _VOID:
            raise _DriverGone(str(error)) from error
        if error.value in _LOST:
            raise _GpuLost(str(error)) from error
        return None


def _does(action: Callable[..., Any], *arguments: Any) -> bool:
    """Whether the device did it."""
    try:
        action(*arguments)
    except pynvml.NVMLError:
        return False
    return True


def _number(value: int | None) -> float | None:
    return None if value is None else float(value)


def _thousandth(value: int | None) -> float | None:
    return None if value is None else value / 1000


def _text(value: str | bytes | None) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
