"""Readings of real NVIDIA GPUs through NVML.

Devices differ in what they tell: a field that one does not have is None, a device that does not answer is left out
of that round. Nothing here raises, with or without a driver.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any

import pynvml  # type: ignore[import-untyped]

from corral.control.ports import Collected, GpuReading

logger = logging.getLogger(__name__)

_VOID = (pynvml.NVML_ERROR_UNINITIALIZED, pynvml.NVML_ERROR_DRIVER_NOT_LOADED)


class NvmlCollector:
    """Use from one thread. `gpu_ids`, if given, are the only ones read."""

    name = "nvml"

    def __init__(self, gpu_ids: Sequence[str] | None = None) -> None:
        self._wanted = None if gpu_ids is None else frozenset(gpu_ids)
        self._handles: dict[str, Any] | None = None

    def collect(self, at: float) -> Collected:
        try:
            if self._handles is None:
                self._handles = self._open()
            readings = [_read(gpu_id, handle, at) for gpu_id, handle in self._handles.items()]
        except _DriverGone as error:
            logger.debug("no NVIDIA driver, trying again with the next round: %s", error)
            self.close()
            return Collected()
        return Collected(gpus=[reading for reading in readings if reading is not None])

    def close(self) -> None:
        if self._handles is None:
            return
        self._handles = None
        with contextlib.suppress(_DriverGone):
            _ask(pynvml.nvmlShutdown)

    def _open(self) -> dict[str, Any]:
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise _DriverGone(str(error)) from error
        handles: dict[str, Any] = {}
        for index in range(_ask(pynvml.nvmlDeviceGetCount) or 0):
            handle = _ask(pynvml.nvmlDeviceGetHandleByIndex, index)
            gpu_id = None if handle is None else _text(_ask(pynvml.nvmlDeviceGetUUID, handle))
            if gpu_id and (self._wanted is None or gpu_id in self._wanted):
                handles[gpu_id] = handle
        return handles


class _DriverGone(Exception):
    """There is no driver, or it was unloaded or restarted under us: all handles are void."""


def _read(gpu_id: str, handle: Any, at: float) -> GpuReading | None:
    memory = _ask(pynvml.nvmlDeviceGetMemoryInfo, handle)
    if memory is None:
        return None  # even the simplest question goes unanswered
    rates = _ask(pynvml.nvmlDeviceGetUtilizationRates, handle)
    temperature = _ask(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU)
    milliwatts = _ask(pynvml.nvmlDeviceGetPowerUsage, handle)
    millijoules = _ask(pynvml.nvmlDeviceGetTotalEnergyConsumption, handle)
    return GpuReading(
        gpu_id=gpu_id,
        at=at,
        utilization=None if rates is None else rates.gpu / 100,
        memory_used_bytes=int(memory.used),
        memory_total_bytes=int(memory.total),
        temperature_celsius=None if temperature is None else float(temperature),
        power_watts=None if milliwatts is None else milliwatts / 1000,
        energy_joules=None if millijoules is None else millijoules / 1000,
    )


def _ask(question: Callable[..., Any], *arguments: Any) -> Any:
    """The answer, or None where the device has none."""
    try:
        return question(*arguments)
    except pynvml.NVMLError as error:
        if error.value in _VOID:
            raise _DriverGone(str(error)) from error
        return None


def _text(value: str | bytes | None) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
