"""The NVML collector, the exporter and the self-test on a real GPU, beside what `nvidia-smi` says.

Skipped on machines without an NVIDIA driver. By hand: `pytest -v tests/contract/monitoring/test_nvml_real.py`.
"""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator

import pytest

from corral.control.ports import GpuReading
from corral.engines.local.fleet import SLICE_INDEX_STEP, discover_gpus
from corral.telemetry.exporter import Exporter
from corral.telemetry.nvml import NvmlCollector
from corral.telemetry.selftest import DriverSelfTest

SMI = shutil.which("nvidia-smi")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SMI is None, reason="no nvidia-smi: these tests need an NVIDIA GPU, install its driver"),
]

MIB = 1 << 20
FIELDS: dict[str, Callable[[GpuReading], float | None]] = {
    "utilization.gpu": lambda reading: None if reading.utilization is None else reading.utilization * 100,
    "memory.used": lambda reading: None if reading.memory_used_bytes is None else reading.memory_used_bytes / MIB,
    "memory.total": lambda reading: None if reading.memory_total_bytes is None else reading.memory_total_bytes / MIB,
    "temperature.gpu": lambda reading: reading.temperature_celsius,
    "power.draw": lambda reading: reading.power_watts,
    "enforced.power.limit": lambda reading: reading.power_limit_watts,
    "clocks.sm": lambda reading: reading.sm_clock_mhz,
    "clocks.mem": lambda reading: reading.memory_clock_mhz,
    "ecc.errors.uncorrected.volatile.total": lambda reading: reading.ecc_uncorrected,
    "ecc.errors.corrected.volatile.total": lambda reading: reading.ecc_corrected,
}
#: What may move between two readings of a GPU that no other program uses.
MAY_DIFFER = {"utilization.gpu": 100, "memory.used": 64, "temperature.gpu": 5, "power.draw": 150, "clocks.sm": 2000}

BURN = """
import ctypes, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    assert code == 0, (name, code)
call("cuInit", 0)
device, context, place = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
size = 2 << 30
call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(size))
print("working", flush=True)
until = time.monotonic() + 60
while time.monotonic() < until:
    for pattern in range(50):
        call("cuMemsetD32_v2", place, ctypes.c_uint(pattern), ctypes.c_size_t(size // 4))
    call("cuCtxSynchronize")
"""


@pytest.fixture
def collector() -> Iterator[NvmlCollector]:
    found = NvmlCollector()
    yield found
    found.close()


@pytest.fixture
def working(collector: NvmlCollector) -> Iterator[subprocess.Popen[str]]:
    """A process that keeps the first GPU busy with 2 GiB of its memory."""
    first = collector.collect(1.0).gpus[0].gpu_id
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": first}
    process = subprocess.Popen([sys.executable, "-c", BURN], stdout=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def smi(*fields: str) -> dict[str, dict[str, str]]:
    """The output of nvidia-smi, by UUID."""
    assert SMI is not None
    query = ["uuid", *fields]
    found = subprocess.run(
        [SMI, f"--query-gpu={','.join(query)}", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = csv.reader(io.StringIO(found.stdout), skipinitialspace=True)
    return {row[0]: dict(zip(fields, row[1:], strict=True)) for row in rows if row}


def test_every_field_agrees_with_nvidia_smi(collector: NvmlCollector) -> None:
    readings = {reading.gpu_id: reading for reading in collector.collect(time.time()).gpus}
    said = smi(*FIELDS)
    assert readings.keys() == said.keys()
    wrong = []
    for gpu_id, answers in said.items():
        for name, text in answers.items():
            ours = FIELDS[name](readings[gpu_id])
            theirs = float(text) if text.replace(".", "", 1).replace("-", "", 1).isdigit() else None
            allowed = MAY_DIFFER.get(name, 1)
            if (ours is None) != (theirs is None) or (ours is not None and abs(ours - (theirs or 0)) > allowed):
                wrong.append(f"{gpu_id} {name}: corral {ours}, nvidia-smi {text}")
    assert wrong == []


def test_a_data_centre_gpu_reports_every_value(collector: NvmlCollector) -> None:
    collector.collect(time.time())  # the activity of the SMs is a difference of two samples
    time.sleep(0.2)
    for reading in collector.collect(time.time()).gpus:
        if reading.ecc_uncorrected is None:
            pytest.skip(f"{reading.gpu_id} has no ECC: not a data centre GPU")
        reported = {name: getattr(reading, name) for name in reading.__slots__}
        assert {name for name, value in reported.items() if value is None} == set()
        assert (reading.lost, reading.remap_failed) == (False, False)


def test_work_shows(collector: NvmlCollector, working: subprocess.Popen[str]) -> None:
    def look() -> GpuReading:
        return collector.collect(time.time()).gpus[0]

    before = look()
    deadline = time.monotonic() + 20
    # The device counts energy and use a few times a second only, and others may be at work already.
    while ((busy := look()).utilization or 0) < 0.5 or (busy.energy_joules or 0) <= (before.energy_joules or 0):
        assert time.monotonic() < deadline, f"no use was seen: {busy}"
        time.sleep(0.2)
    assert (busy.memory_used_bytes or 0) >= 2 << 30
    if busy.sm_activity is not None:  # GPUs before Hopper report none
        assert busy.sm_activity > 0.3
    assert busy.sm_clock_mhz is not None
    assert "gpu_idle" not in busy.throttle_reasons
    memories = [process.memory_bytes or 0 for process in busy.processes]
    # In a container the numbers of processes may be those of the host.
    assert memories == [] or max(memories) >= 2 << 30


def test_links_agree_with_what_nvidia_smi_says_of_the_topology() -> None:
    """`nvidia-smi topo -m` has a row for each GPU: NV… is NVLink; all but SYS is within a NUMA node."""
    assert SMI is not None
    gpus = [gpu for gpu in discover_gpus() if gpu.index < SLICE_INDEX_STEP]
    reported = subprocess.run([SMI, "topo", "-m"], capture_output=True, text=True, check=True).stdout
    lines = re.sub(r"\x1b\[[0-9;]*m", "", reported).splitlines()
    rows = [line.split() for line in lines if re.match(r"GPU\d+\s", line)]
    near = {int(row[0].removeprefix("GPU")): row[1 : len(rows) + 1] for row in rows}
    assert near.keys() >= {gpu.index for gpu in gpus}
    groups = defaultdict(list)
    for gpu in gpus:
        if gpu.link_group:
            groups[gpu.link_group].append(gpu.index)
        else:
            others = [near[gpu.index][other.index] for other in gpus if other.index != gpu.index]
            assert not any(word.startswith("NV") for word in others), "a linked GPU has a group"
    for name, members in groups.items():
        assert len(members) > 1
        words = [near[one][other] for one in members for other in members if one != other]
        if name.startswith("nvlink"):
            assert all(word.startswith("NV") for word in words), (name, words)
        else:
            assert "SYS" not in words, (name, words)


def test_events_can_be_asked_for_without_waiting(collector: NvmlCollector) -> None:
    collector.collect(1.0)
    session = collector._session
    assert session is not None
    if session.events is None:
        pytest.skip("this driver reports no XID events")
    assert all(reading.xids == () for reading in collector.collect(2.0).gpus)


def test_the_exporter_serves_it(collector: NvmlCollector) -> None:
    exporter = Exporter([collector], lambda: collector.places("here"), interval_seconds=1.0)
    exporter.read()
    page = exporter.page()
    for gpu_id, answers in smi("name", "index").items():
        assert f'gpu="{answers["index"]}",UUID="{gpu_id}",device="nvidia{answers["index"]}"' in page
        assert f'modelName="{answers["name"]}",Hostname="here"' in page


def test_a_good_gpu_passes_its_self_test_and_an_unknown_one_does_not(collector: NvmlCollector) -> None:
    for reading in collector.collect(1.0).gpus:
        assert DriverSelfTest().run(reading.gpu_id) is None
    answer = DriverSelfTest().run("GPU-00000000-0000-0000-0000-000000000000")
    assert answer is not None
    assert "no GPU" in answer or "cuInit failed" in answer
