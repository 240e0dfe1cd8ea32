"""The tools that read AMD's GPUs: the package `amdsmi`, or else one of the programs `amd-smi` and `rocm-smi`."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from corral.control.ports import GpuReading
from corral.telemetry.amd import documents
from corral.telemetry.amd.documents import Identity

#: The device file of AMD's compute driver: without it there is nothing to read.
_DRIVER = "/dev/kfd"
#: Programs of ROCm are often not on the PATH.
_ROCM_PROGRAMS = "/opt/rocm/bin"
_ANSWER_SECONDS = 20.0
_ROCM_SMI = (
    "--showuniqueid", "--showproductname", "--showuse", "--showmeminfo", "vram", "--showtemp", "--showpower",
    "--showmaxpower", "--showclocks", "--json",
)  # fmt: skip


class SourceFailed(Exception):
    """The tool does not answer, or not in a way that is understood."""


class Source(Protocol):
    """A tool that reads all GPUs. Raises SourceFailed."""

    #: for `doctor` and the log
    name: str

    def read(self, at: float) -> Mapping[Identity, GpuReading]: ...

    def close(self) -> None: ...


def find_source() -> Source | None:
    """The best source of this machine; None without AMD's driver or without any tool."""
    if not os.path.exists(_DRIVER):
        return None
    try:
        return PackageSource(importlib.import_module("amdsmi"))
    except (ImportError, OSError, AttributeError, KeyError, SourceFailed):
        # Its library is missing, or is of another version than the driver: the programs bring their own.
        return find_program()


def find_program(path: str | None = None) -> Source | None:
    path = f"{os.environ.get('PATH', os.defpath)}:{_ROCM_PROGRAMS}" if path is None else path
    if program := shutil.which("amd-smi", path=path):
        return AmdSmiSource(program)
    if program := shutil.which("rocm-smi", path=path):
        return RocmSmiSource(program)
    return None


class AmdSmiSource:
    name = "amd-smi"

    def __init__(self, program: str) -> None:
        self._program = program
        self._known: Mapping[int, Identity] = {}

    def read(self, at: float) -> Mapping[Identity, GpuReading]:
        self._known = self._known or documents.identities(_document([self._program, "static", "--json"]))
        readings = documents.metric_readings(_document([self._program, "metric", "--json"]), self._known, at)
        return {each: readings[each.gpu_id] for each in self._known.values() if each.gpu_id in readings}

    def close(self) -> None:
        self._known = {}


class RocmSmiSource:
    name = "rocm-smi"

    def __init__(self, program: str) -> None:
        self._program = program

    def read(self, at: float) -> Mapping[Identity, GpuReading]:
        return documents.rocm_readings(_document([self._program, *_ROCM_SMI]), at)

    def close(self) -> None:
        """Does nothing: each reading stands for itself."""


def _document(command: list[str]) -> Any:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_ANSWER_SECONDS, check=False
        )
        return documents.parsed(done.stdout.decode(errors="replace"))
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceFailed(f"{command[0]}: {error}") from error
    except ValueError as error:
        reason = done.stderr.decode(errors="replace").strip() or str(error)
        raise SourceFailed(f"{command[0]}: {reason[-500:]}") from error


class PackageSource:
    """AMD's own binding of its library. What it answers is put into the form of `amd-smi metric`."""

    name = "amdsmi"

    def __init__(self, library: Any) -> None:
        self._library = library
        self._failures = (library.AmdSmiException,)
        try:
            library.amdsmi_init(library.AmdSmiInitFlags.INIT_AMD_GPUS)
        except self._failures as error:
            raise SourceFailed(f"amdsmi: {error}") from error

    def read(self, at: float) -> Mapping[Identity, GpuReading]:
        try:
            handles = list(self._library.amdsmi_get_processor_handles())
        except self._failures as error:
            raise SourceFailed(f"amdsmi: {error}") from error
        static = [
            {
                "gpu": index,
                "asic": self._ask("amdsmi_get_gpu_asic_info", handle),
                "limit": {"socket_power": self._field("amdsmi_get_power_cap_info", handle, "power_cap")},
            }
            for index, handle in enumerate(handles)
        ]
        known = documents.identities(static)
        return {each: documents.metric_reading(self._metric(handles[n]), each, at) for n, each in known.items()}

    def close(self) -> None:
        self._ask("amdsmi_shut_down")

    def _metric(self, handle: Any) -> dict[str, Any]:
        library = self._library
        clock = {"gfx": library.AmdSmiClkType.GFX, "mem": library.AmdSmiClkType.MEM}
        sensors = library.AmdSmiTemperatureType
        temperature = {"edge": sensors.EDGE, "hotspot": sensors.HOTSPOT, "mem": sensors.VRAM}
        now = library.AmdSmiTemperatureMetric.CURRENT
        used, errors = (
            self._ask("amdsmi_get_gpu_vram_usage", handle),
            self._ask("amdsmi_get_gpu_total_ecc_count", handle),
        )
        return {
            "usage": self._ask("amdsmi_get_gpu_activity", handle),
            "power": self._ask("amdsmi_get_power_info", handle),
            "fb_usage": used,
            "temperature": {
                name: self._ask("amdsmi_get_temp_metric", handle, sensor, now) for name, sensor in temperature.items()
            },
            "clock": {name: self._ask("amdsmi_get_clock_info", handle, kind) for name, kind in clock.items()},
            "ecc": {name.removesuffix("_count"): count for name, count in errors.items()} if errors else None,
            "energy": {"total_energy_consumption": self._joules(handle)},
            "processes": self._ask("amdsmi_get_gpu_process_list", handle),
        }

    def _joules(self, handle: Any) -> float | None:
        """A counter of steps of some millionths of a joule."""
        counted = self._ask("amdsmi_get_energy_count", handle)
        if not isinstance(counted, Mapping):
            return None
        steps, resolution = counted.get("energy_accumulator", counted.get("power")), counted.get("counter_resolution")
        numbers = isinstance(steps, int | float) and isinstance(resolution, int | float)
        return steps * resolution / 1e6 if numbers else None

    def _field(self, question: str, handle: Any, name: str) -> Any:
        answer = self._ask(question, handle)
        return answer.get(name) if isinstance(answer, Mapping) else None

    def _ask(self, question: str, *arguments: Any) -> Any:
        """The answer, or None if the device or this version of the package has none."""
        function: Callable[..., Any] | None = getattr(self._library, question, None)
        try:
            return None if function is None else function(*arguments)
        except self._failures:
            return None
