"""The collector of AMD's GPUs, with programs that print recorded documents, and with a package of AMD's form."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from corral.control.ports import GpuProcess, GpuReading
from corral.telemetry.amd.collector import RETRY_SECONDS, AmdCollector
from corral.telemetry.amd.sources import PackageSource, Source, SourceFailed, find_program
from corral.telemetry.page import GpuPlace

DOCUMENTS = Path(__file__).parent / "documents"


class Programs:
    """A directory of programs of ROCm. Each prints the document that is there for its first argument."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def install(self, program: str, **documents: str) -> None:
        for argument, document in documents.items():
            shutil.copy(DOCUMENTS / f"{document}.json", self.directory / f"{program}.{argument}")
        path = self.directory / program
        path.write_text(f'#!/bin/sh\nname=$(echo "$1" | tr -d -)\nexec cat "{path}.$name"\n')
        path.chmod(0o755)

    def find(self) -> Source | None:
        return find_program(f"{self.directory}:/usr/bin:/bin")


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


def test_amd_smi_is_read_before_rocm_smi(programs: Programs) -> None:
    programs.install("rocm-smi", showuniqueid="rocm_smi_6")
    collector = AmdCollector(programs.find)
    (found,) = collector.collect(5.0).gpus
    assert (found.gpu_id, found.power_watts) == ("GPU-ac1b58f8c066790f", 139.0)
    programs.install("amd-smi", static="amd_smi_7_static", metric="amd_smi_7_metric")
    collector = AmdCollector(programs.find)
    assert [found.gpu_id for found in collector.collect(5.0).gpus] == ["GPU-6f1f0a2b3c4d5e6f", "GPU-06f1f0a2b3c4d5e7"]
    assert collector.places("n")["GPU-06f1f0a2b3c4d5e7"] == GpuPlace(index=1, model="AMD Instinct MI300X", host="n")


def test_without_a_tool_nothing_is_read(programs: Programs) -> None:
    collector = AmdCollector(programs.find)
    assert not collector.collect(5.0).gpus
    collector.close()


def test_a_gpu_that_is_missing_is_lost_and_returns(programs: Programs) -> None:
    programs.install("rocm-smi", showuniqueid="rocm_smi_5")
    collector = AmdCollector(programs.find)
    assert len(collector.collect(5.0).gpus) == 2
    programs.install("rocm-smi", showuniqueid="rocm_smi_6")
    by_id = {found.gpu_id: found.lost for found in collector.collect(10.0).gpus}
    assert by_id == {"GPU-ac1b58f8c066790f": False, "GPU-79ccd55167a2124a": True, "GPU-04edfb117a17a07d": True}
    programs.install("rocm-smi", showuniqueid="rocm_smi_5")
    assert GpuReading(gpu_id="GPU-ac1b58f8c066790f", at=15.0, lost=True) in collector.collect(15.0).gpus


def test_a_program_that_fails_is_tried_again_later(programs: Programs, caplog: pytest.LogCaptureFixture) -> None:
    programs.install("rocm-smi")
    tries = []

    def find() -> Source | None:
        tries.append(1)
        return programs.find()

    collector = AmdCollector(find)
    assert not collector.collect(0.0).gpus
    assert "No such file" in caplog.text
    programs.install("rocm-smi", showuniqueid="rocm_smi_6")
    assert not collector.collect(5.0).gpus
    assert len(tries) == 1
    assert len(collector.collect(RETRY_SECONDS).gpus) == 1


class Library:
    """A package of the form of `amdsmi`, with one GPU that has an id and one that has not."""

    class AmdSmiException(Exception):
        """The package's own error."""

    AmdSmiInitFlags = SimpleNamespace(INIT_AMD_GPUS=2)
    AmdSmiClkType = SimpleNamespace(GFX="gfx", MEM="mem")
    AmdSmiTemperatureType = SimpleNamespace(EDGE="edge", HOTSPOT="hotspot", VRAM="vram")
    AmdSmiTemperatureMetric = SimpleNamespace(CURRENT=0)

    def __init__(self) -> None:
        self.is_open = False
        self.handles = ["h0", "h1"]
        self.is_broken = False

    def amdsmi_init(self, flag: int) -> None:
        if self.is_broken:
            raise self.AmdSmiException("AMDSMI_STATUS_DRIVER_NOT_LOADED")
        self.is_open = True

    def amdsmi_shut_down(self) -> None:
        self.is_open = False

    def amdsmi_get_processor_handles(self) -> list[str]:
        if self.is_broken:
            raise self.AmdSmiException("AMDSMI_STATUS_NOT_INIT")
        return self.handles

    def amdsmi_get_gpu_asic_info(self, handle: str) -> dict[str, Any]:
        serial = {"h0": "0xCE5D239FE548AF74", "h1": "0x0"}[handle]
        return {"market_name": "AMD Radeon RX 9070 XT", "asic_serial": serial, "num_compute_units": 64}

    def amdsmi_get_power_cap_info(self, handle: str) -> dict[str, Any]:
        return {"power_cap": 300_000_000, "max_power_cap": 340_000_000}

    def amdsmi_get_gpu_activity(self, handle: str) -> dict[str, Any]:
        return {"gfx_activity": 42, "umc_activity": "N/A", "mm_activity": "N/A"}

    def amdsmi_get_power_info(self, handle: str) -> dict[str, Any]:
        return {"socket_power": 41, "current_socket_power": "N/A", "average_socket_power": 40, "power_limit": 300}

    def amdsmi_get_gpu_vram_usage(self, handle: str) -> dict[str, Any]:
        return {"vram_total": 16304, "vram_used": 57}

    def amdsmi_get_temp_metric(self, handle: str, sensor: str, metric: int) -> int:
        if sensor == "edge":
            raise self.AmdSmiException("AMDSMI_STATUS_NOT_SUPPORTED")
        return 47

    def amdsmi_get_clock_info(self, handle: str, kind: str) -> dict[str, Any]:
        return {"clk": {"gfx": 2100, "mem": 1600}[kind], "min_clk": 0, "max_clk": 3000}

    def amdsmi_get_gpu_total_ecc_count(self, handle: str) -> dict[str, int]:
        return {"correctable_count": 5, "uncorrectable_count": 0, "deferred_count": 0}

    def amdsmi_get_energy_count(self, handle: str) -> dict[str, float]:
        return {"energy_accumulator": 2_000_000, "counter_resolution": 15.0, "timestamp": 1}

    def amdsmi_get_gpu_process_list(self, handle: str) -> list[Any]:
        return [{"name": "python", "pid": 42, "mem": 300}, {"pid": 43, "memory_usage": {"vram_mem": 4096}}, "N/A"]


def test_the_package_gives_all_values_that_the_device_has() -> None:
    library = Library()
    source = PackageSource(library)
    collector = AmdCollector(lambda: source)
    assert list(collector.collect(5.0).gpus) == [
        GpuReading(
            gpu_id="GPU-ce5d239fe548af74",
            at=5.0,
            utilization=0.42,
            memory_used_bytes=57 << 20,
            memory_total_bytes=16304 << 20,
            temperature_celsius=47.0,
            power_watts=41.0,
            power_limit_watts=300.0,
            energy_joules=30.0,
            sm_clock_mhz=2100.0,
            memory_clock_mhz=1600.0,
            ecc_uncorrected=0,
            ecc_corrected=5,
            processes=(GpuProcess(pid=42, memory_bytes=300), GpuProcess(pid=43, memory_bytes=4096)),
        )
    ]
    library.is_broken = True
    assert not collector.collect(10.0).gpus
    assert not library.is_open


def test_a_package_whose_driver_is_missing_is_no_source() -> None:
    library = Library()
    library.is_broken = True
    with pytest.raises(SourceFailed, match="DRIVER_NOT_LOADED"):
        PackageSource(library)


def test_an_older_package_without_some_functions_gives_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("amdsmi_get_gpu_total_ecc_count", "amdsmi_get_energy_count", "amdsmi_get_gpu_process_list"):
        monkeypatch.delattr(Library, name)
    (found,) = PackageSource(Library()).read(5.0).values()
    assert (found.ecc_uncorrected, found.energy_joules, found.processes) == (None, None, ())
    assert found.utilization == 0.42
