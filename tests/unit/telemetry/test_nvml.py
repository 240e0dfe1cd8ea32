"""The NVML collector with devices that report little, fail, fall off the bus, or return."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pynvml  # type: ignore[import-untyped]
import pytest

from corral.control.ports import GpuProcess, GpuReading, MigSlice
from corral.telemetry.nvml import REOPEN_SECONDS, NvmlCollector
from corral.telemetry.page import GpuPlace

ERROR = pynvml.NVMLError
NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED
IS_LOST = pynvml.NVML_ERROR_GPU_IS_LOST
UNINITIALIZED = pynvml.NVML_ERROR_UNINITIALIZED
TIMEOUT = pynvml.NVML_ERROR_TIMEOUT
XID = pynvml.nvmlEventTypeXidCriticalError

FULL = GpuReading(
    gpu_id="GPU-0",
    at=5.0,
    utilization=0.87,
    memory_used_bytes=400,
    memory_total_bytes=1000,
    temperature_celsius=61.0,
    power_watts=250.5,
    power_limit_watts=700.0,
    energy_joules=9.0,
    sm_clock_mhz=1980.0,
    memory_clock_mhz=3201.0,
    throttle_reasons=("sw_power_cap", "hw_thermal"),
    ecc_uncorrected=1,
    ecc_corrected=7,
    remapped_rows=3,
    remap_failed=True,
    processes=(GpuProcess(pid=42, memory_bytes=300), GpuProcess(pid=43)),
)


class FakeDriver:
    """Two GPUs; the second reports only its memory. `errors` are raised before any answer, by function or GPU."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.present = ["GPU-0", "GPU-1"]
        self.errors: dict[str, int] = {}
        self.events: list[SimpleNamespace] = []
        self.registered: list[str] = []
        self.freed = 0
        self.freed_samples = 0
        self.activity = 42.0
        self.opened = 0
        answers: dict[str, Callable[..., Any]] = {
            "nvmlInit": self._init,
            "nvmlShutdown": lambda: None,
            "nvmlDeviceGetCount": lambda: len(self.present),
            "nvmlDeviceGetHandleByIndex": lambda index: self.present[index],
            "nvmlDeviceGetUUID": lambda handle: handle,
            "nvmlDeviceGetName": lambda handle: "NVIDIA H200" + (" MIG 1g.18gb" if "MIG" in handle else ""),
            "nvmlDeviceGetMemoryInfo": lambda handle, version=None: SimpleNamespace(total=1000, used=400),
            "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=87),
            "nvmlDeviceGetTemperature": lambda handle, sensor: 61,
            "nvmlDeviceGetPowerUsage": lambda handle: 250_500,
            "nvmlDeviceGetEnforcedPowerLimit": lambda handle: 700_000,
            "nvmlDeviceGetTotalEnergyConsumption": lambda handle: 9_000,
            "nvmlDeviceGetClockInfo": lambda handle, kind: 1980 if kind == pynvml.NVML_CLOCK_SM else 3201,
            # 1 is idleness, which is no reason
            "nvmlDeviceGetCurrentClocksEventReasons": lambda handle: 0x1 | 0x4 | 0x40,
            "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: 0x4,
            "nvmlDeviceGetTotalEccErrors": lambda handle, kind, counter: 1 if kind else 7,
            "nvmlDeviceGetRemappedRows": lambda handle: (1, 2, 0, 1),
            "nvmlDeviceGetComputeRunningProcesses": lambda handle: [
                SimpleNamespace(pid=42, usedGpuMemory=300), SimpleNamespace(pid=43, usedGpuMemory=None),
            ],
            "nvmlDeviceGetMigMode": lambda handle: [0, 0],
            "nvmlDeviceGetMaxMigDeviceCount": lambda handle: 7,
            "nvmlDeviceGetMigDeviceHandleByIndex": self._slice,
            "nvmlGpmQueryDeviceSupport": lambda handle: SimpleNamespace(isSupportedDevice=1),
            "nvmlGpmSampleAlloc": pynvml.c_nvmlGpmSample_t,
            "nvmlGpmSampleGet": lambda handle, sample: sample,
            "nvmlGpmSampleFree": self._free_sample,
            "nvmlGpmMetricsGet": self._activity,
            "nvmlEventSetCreate": lambda: "events",
            "nvmlEventSetFree": self._free,
            "nvmlDeviceGetSupportedEventTypes": lambda handle: XID | 1,
            "nvmlDeviceRegisterEvents": lambda handle, kinds, events: self.registered.append(handle),
            "nvmlEventSetWait": self._wait,
        }  # fmt: skip
        for name, answer in answers.items():
            monkeypatch.setattr(pynvml, name, self._guarded(name, answer))

    def _guarded(self, name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
        simple = ("Count", "HandleByIndex", "UUID", "Name", "MemoryInfo")

        def guarded(*arguments: Any) -> Any:
            for key in ("*", name, *arguments):
                if isinstance(key, str) and key in self.errors:
                    raise ERROR(self.errors[key])
            if "GPU-1" in arguments and not name.endswith(simple):
                raise ERROR(NOT_SUPPORTED)
            return answer(*arguments)

        return guarded

    def _init(self) -> None:
        self.opened += 1

    def _free(self, events: str) -> None:
        self.freed += 1

    def _free_sample(self, sample: Any) -> None:
        self.freed_samples += 1

    def _activity(self, asked: Any) -> Any:
        assert asked.metrics[0].metricId == pynvml.NVML_GPM_METRIC_SM_UTIL
        asked.metrics[0].value = self.activity
        return asked

    def _slice(self, handle: str, index: int) -> str:
        if index >= 2:
            raise ERROR(pynvml.NVML_ERROR_NOT_FOUND)
        return f"MIG-{index}"

    def _wait(self, events: str, milliseconds: int) -> SimpleNamespace:
        assert milliseconds == 0
        if not self.events:
            raise ERROR(TIMEOUT)
        return self.events.pop(0)

    def xid(self, gpu_id: str, code: int, kind: int = XID) -> None:
        self.events.append(SimpleNamespace(device=gpu_id, eventType=kind, eventData=code))


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return FakeDriver(monkeypatch)


def test_everything_is_read_and_what_a_device_does_not_tell_is_none(driver: FakeDriver) -> None:
    collector = NvmlCollector()
    full, poor = collector.collect(at=5.0).gpus
    assert full == FULL
    assert poor == GpuReading(gpu_id="GPU-1", at=5.0, memory_used_bytes=400, memory_total_bytes=1000)
    assert collector.places("n")["GPU-1"] == GpuPlace(index=1, model="NVIDIA H200", host="n")


def test_the_activity_of_the_sms_is_known_from_the_second_reading_on(driver: FakeDriver) -> None:
    collector = NvmlCollector()
    assert [reading.sm_activity for reading in collector.collect(at=5.0).gpus] == [None, None]
    assert [reading.sm_activity for reading in collector.collect(at=10.0).gpus] == [0.42, None]
    driver.activity = float("nan")
    assert collector.collect(at=15.0).gpus[0].sm_activity is None
    driver.activity = 180.0
    driver.errors["nvmlGpmSampleGet"] = TIMEOUT
    assert collector.collect(at=20.0).gpus[0].sm_activity is None, "a failed sample is no zero"
    del driver.errors["nvmlGpmSampleGet"]
    assert collector.collect(at=25.0).gpus[0].sm_activity is None, "there is no sample before this one"
    assert collector.collect(at=30.0).gpus[0].sm_activity == 1.0
    collector.close()
    assert driver.freed_samples == 2


def test_a_driver_without_samples_has_no_activity(driver: FakeDriver) -> None:
    driver.errors["nvmlGpmQueryDeviceSupport"] = pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
    collector = NvmlCollector()
    collector.collect(at=5.0)
    assert collector.collect(at=10.0).gpus[0].sm_activity is None


def test_an_older_driver_is_asked_in_its_own_words(driver: FakeDriver) -> None:
    driver.errors["nvmlDeviceGetCurrentClocksEventReasons"] = pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
    assert NvmlCollector().collect(at=1.0).gpus[0].throttle_reasons == ("sw_power_cap",)


def test_slices_of_a_partitioned_gpu(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pynvml, "nvmlDeviceGetMigMode", lambda handle: [1, 1])
    assert NvmlCollector(["GPU-0"]).collect(at=1.0).gpus[0].mig_slices == (
        MigSlice(id="MIG-0", profile="1g.18gb", memory_used_bytes=400, memory_total_bytes=1000),
        MigSlice(id="MIG-1", profile="1g.18gb", memory_used_bytes=400, memory_total_bytes=1000),
    )


def test_a_silent_device_is_left_out_and_only_wanted_ones_are_read(driver: FakeDriver) -> None:
    everything, one = NvmlCollector(), NvmlCollector(gpu_ids=["GPU-1"])
    assert [found.gpu_id for found in one.collect(at=1.0).gpus] == ["GPU-1"]
    assert len(everything.collect(at=1.0).gpus) == 2
    driver.errors["GPU-0"] = NOT_SUPPORTED
    assert [found.gpu_id for found in everything.collect(at=2.0).gpus] == ["GPU-1"]


def test_xids_come_once_to_the_gpu_that_had_them(driver: FakeDriver) -> None:
    collector = NvmlCollector()
    collector.collect(at=1.0)
    assert driver.registered == ["GPU-0"]  # the other one has no events
    driver.xid("GPU-0", 79)
    driver.xid("GPU-0", 999, kind=1)  # another kind of event
    driver.xid("GPU-0", 48)
    assert [found.xids for found in collector.collect(at=2.0).gpus] == [(79, 48), ()]
    assert [found.xids for found in collector.collect(at=3.0).gpus] == [(), ()]
    collector.close()
    assert driver.freed == 1


def test_without_events_everything_else_is_read(driver: FakeDriver) -> None:
    driver.errors["nvmlEventSetCreate"] = NOT_SUPPORTED
    assert len(NvmlCollector().collect(at=1.0).gpus) == 2
    del driver.errors["nvmlEventSetCreate"]
    driver.errors["nvmlDeviceRegisterEvents"] = pynvml.NVML_ERROR_NO_PERMISSION
    assert len(NvmlCollector().collect(at=1.0).gpus) == 2
    assert driver.freed == 1


def test_a_gpu_off_the_bus_is_lost_and_its_last_xid_is_reported(driver: FakeDriver) -> None:
    collector = NvmlCollector()
    collector.collect(at=1.0)
    driver.xid("GPU-0", 79)
    driver.errors["nvmlDeviceGetMemoryInfo"] = IS_LOST
    readings = {found.gpu_id: found for found in collector.collect(at=2.0).gpus}
    assert readings["GPU-0"] == GpuReading(gpu_id="GPU-0", at=2.0, xids=(79,), lost=True)


def test_a_lost_gpu_stays_lost_after_reopening_until_it_is_back(driver: FakeDriver) -> None:
    collector = NvmlCollector()
    collector.collect(at=1.0)
    driver.errors["GPU-0"] = IS_LOST
    assert [found.lost for found in collector.collect(at=2.0).gpus] == [True, False]
    assert driver.opened == 1
    collector.collect(at=1.0 + REOPEN_SECONDS)  # closed after this look
    after = {found.gpu_id: found.lost for found in collector.collect(at=3.0 + REOPEN_SECONDS).gpus}
    assert after == {"GPU-0": True, "GPU-1": False}
    assert driver.opened == 2
    driver.errors.clear()
    collector.collect(at=4.0 + 2 * REOPEN_SECONDS)
    back = {found.gpu_id: found.lost for found in collector.collect(at=5.0 + 2 * REOPEN_SECONDS).gpus}
    assert back == {"GPU-0": False, "GPU-1": False}


def test_a_gpu_that_is_missing_after_the_driver_came_back_is_lost(driver: FakeDriver) -> None:
    collector = NvmlCollector()
    assert len(collector.collect(at=1.0).gpus) == 2
    driver.errors["*"] = UNINITIALIZED
    assert collector.collect(at=2.0).gpus == ()
    assert collector.collect(at=3.0).gpus == ()
    driver.errors.clear()
    driver.present = ["GPU-1"]
    assert {found.gpu_id: found.lost for found in collector.collect(at=4.0).gpus} == {"GPU-0": True, "GPU-1": False}
    collector.close()
    collector.close()


@pytest.mark.parametrize("name", ["nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlEventSetWait", "nvmlInit"])
@pytest.mark.parametrize("error", [pynvml.NVML_ERROR_UNKNOWN, IS_LOST, UNINITIALIZED, TIMEOUT])
def test_nothing_raises_whatever_fails(driver: FakeDriver, name: str, error: int) -> None:
    collector = NvmlCollector()
    for at in range(3):
        driver.errors[name] = error
        collector.collect(at=float(at))
        driver.errors.clear()
        collector.collect(at=at + 0.5)
    collector.close()
    assert len(collector.collect(at=10.0).gpus) == 2
