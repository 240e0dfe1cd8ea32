"""Activity of the SMs of NVIDIA GPUs by NVML, for machines without DCGM: the part of the time in which a kernel
occupied them, as an average over all SMs. Devices from Hopper on report it, as a difference of two samples.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import pynvml  # type: ignore[import-untyped]


@dataclass(slots=True)
class _Samples:
    before: Any
    latest: Any
    #: whether `latest` holds a sample
    is_begun: bool = False


class SmActivity:
    """Belongs to one opened library: `close` it before the library is shut down."""

    def __init__(self) -> None:
        #: by GPU; None for devices that do not report it
        self._samples: dict[str, _Samples | None] = {}

    def since_last(self, gpu_id: str, handle: Any) -> float | None:
        """The mean SM activity since the previous call, from 0 to 1; None at the first call and where the device does
        not report it.
        """
        if gpu_id not in self._samples:
            self._samples[gpu_id] = _samples(handle)
        samples = self._samples[gpu_id]
        if samples is None:
            return None
        samples.before, samples.latest = samples.latest, samples.before
        has_before, samples.is_begun = samples.is_begun, False
        try:
            pynvml.nvmlGpmSampleGet(handle, samples.latest)
            samples.is_begun = True
            return _difference(samples) if has_before else None
        except pynvml.NVMLError:
            return None

    def close(self) -> None:
        for samples in self._samples.values():
            if samples is not None:
                for sample in (samples.before, samples.latest):
                    with contextlib.suppress(pynvml.NVMLError):
                        pynvml.nvmlGpmSampleFree(sample)
        self._samples.clear()


def _samples(handle: Any) -> _Samples | None:
    try:
        if not pynvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice:
            return None
        return _Samples(before=pynvml.nvmlGpmSampleAlloc(), latest=pynvml.nvmlGpmSampleAlloc())
    except pynvml.NVMLError:
        return None


def _difference(samples: _Samples) -> float | None:
    asked = pynvml.c_nvmlGpmMetricsGet_t()
    asked.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    asked.numMetrics = 1
    asked.sample1, asked.sample2 = samples.before, samples.latest
    asked.metrics[0].metricId = pynvml.NVML_GPM_METRIC_SM_UTIL
    answer = pynvml.nvmlGpmMetricsGet(asked).metrics[0]
    if answer.nvmlReturn != pynvml.NVML_SUCCESS or answer.value != answer.value:
        return None
    return min(1.0, max(0.0, float(answer.value) / 100))
