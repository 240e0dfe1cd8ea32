"""Latest readings, and readings that tolerate what devices do not tell."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from corral.control.ports import GpuReading
from corral.telemetry import nvml
from corral.telemetry.nvml import NvmlCollector
from corral.telemetry.readings import LatestReadings


def reading(gpu_id: str, at: float, utilization: float = 0.5) -> GpuReading:
    return GpuReading(gpu_id=gpu_id, at=at, utilization=utilization)


def test_the_newest_reading_wins_and_grows_stale() -> None:
    latest = LatestReadings(stale_after_seconds=15.0)
    latest.update([reading("a", 100.0, 0.1), reading("b", 100.0)])
    latest.update([reading("a", 105.0, 0.9)])
    latest.update([reading("a", 101.0, 0.2)])  # a late one
    found = latest.get("a", now=110.0)
    assert found is not None
    assert (found.reading.utilization, found.stale) == (0.9, False)
    assert {gpu: each.stale for gpu, each in latest.all(now=116.0).items()} == {"a": False, "b": True}
    assert latest.get("c", now=110.0) is None


def test_gpus_that_are_gone_are_dropped() -> None:
    latest = LatestReadings(stale_after_seconds=15.0)
    latest.update([reading("a", 1.0), reading("b", 1.0)])
    latest.retain(["b", "c"])
    assert set(latest.all(now=1.0)) == {"b"}


class FakeDriver:
    """Two GPUs: the second has no sensors, and either may fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.loaded = True
        self.silent: set[str] = set()
        for name in (
            "nvmlInit", "nvmlShutdown", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID",
            "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetTemperature",
            "nvmlDeviceGetPowerUsage", "nvmlDeviceGetTotalEnergyConsumption",
        ):  # fmt: skip
            monkeypatch.setattr(nvml.pynvml, name, lambda *arguments, name=name: self.answer(name, *arguments))

    def answer(self, name: str, handle: object = None, *rest: object) -> object:
        if not self.loaded:
            raise nvml.pynvml.NVMLError(nvml.pynvml.NVML_ERROR_UNINITIALIZED)
        sensors = ("UtilizationRates", "Temperature", "PowerUsage", "EnergyConsumption")
        if handle in self.silent or (handle == "GPU-1" and name.endswith(sensors)):
            raise nvml.pynvml.NVMLError(nvml.pynvml.NVML_ERROR_NOT_SUPPORTED)
        answers = {
            "nvmlDeviceGetCount": 2,
            "nvmlDeviceGetHandleByIndex": f"GPU-{handle}",
            "nvmlDeviceGetUUID": handle,
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=1000, used=400),
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=87),
            "nvmlDeviceGetTemperature": 61,
            "nvmlDeviceGetPowerUsage": 250_500,
            "nvmlDeviceGetTotalEnergyConsumption": 9_000,
        }
        return answers.get(name)


def test_what_a_device_does_not_tell_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeDriver(monkeypatch)
    full, poor = NvmlCollector().collect(at=5.0).gpus
    assert full == GpuReading(
        gpu_id="GPU-0",
        at=5.0,
        utilization=0.87,
        memory_used_bytes=400,
        memory_total_bytes=1000,
        temperature_celsius=61.0,
        power_watts=250.5,
        energy_joules=9.0,
    )
    assert poor == GpuReading(gpu_id="GPU-1", at=5.0, memory_used_bytes=400, memory_total_bytes=1000)


def test_a_silent_device_is_left_out_and_only_wanted_ones_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = FakeDriver(monkeypatch)
    everything, one = NvmlCollector(), NvmlCollector(gpu_ids=["GPU-1"])
    assert [found.gpu_id for found in one.collect(at=1.0).gpus] == ["GPU-1"]
    assert len(everything.collect(at=1.0).gpus) == 2
    driver.silent.add("GPU-0")
    assert [found.gpu_id for found in everything.collect(at=2.0).gpus] == ["GPU-1"]


def test_a_driver_that_goes_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = FakeDriver(monkeypatch)
    collector = NvmlCollector()
    assert len(collector.collect(at=1.0).gpus) == 2
    driver.loaded = False
    assert collector.collect(at=2.0).gpus == ()
    assert collector.collect(at=3.0).gpus == ()
    driver.loaded = True
    assert len(collector.collect(at=4.0).gpus) == 2
    collector.close()
