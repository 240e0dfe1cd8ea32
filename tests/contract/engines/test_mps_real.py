"""Shares of a real GPU under NVIDIA's MPS: two halves side by side, and one that asks for too much.

Skipped on machines without an NVIDIA driver. By hand: `pytest -v tests/contract/engines/test_mps_real.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from corral.control.ports import Instance
from corral.engines.attempts.accounts import Account
from corral.engines.attempts.environment import SHARE_VARIABLE, share_environment
from corral.engines.local.fleet import SLICE_INDEX_STEP, discover_gpus
from corral.engines.local.mps import PROGRAM, Mps

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("nvidia-smi") is None or shutil.which(PROGRAM) is None,
        reason="no nvidia-smi: these tests need an NVIDIA GPU, install its driver",
    ),
]

GIB = 1 << 30
OUT_OF_MEMORY = 2
#: A program of a job: takes memory, and writes to it until its standard input ends. Each line of its output is a step.
JOB = """
import ctypes, json, select, sys
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    return getattr(cuda, name)(*arguments)
def say(**values):
    print(json.dumps(values), flush=True)
part, does = float(sys.argv[1]), sys.argv[2]
device, context, place = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
free, total, units = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_int()
assert call("cuInit", 0) == 0
call("cuDeviceGet", ctypes.byref(device), 0)
assert call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device) == 0
call("cuCtxSetCurrent", context)
call("cuDeviceGetAttribute", ctypes.byref(units), 16, device)
call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
taken = call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(int(total.value * part)))
say(units=units.value, free=free.value, total=total.value, taken=taken)
if taken:
    sys.exit(taken)
if does == "fault":
    ptx = b'''.version 7.0
.target sm_70
.address_size 64
.visible .entry wrong() {.reg .b64 %a; .reg .b32 %b; mov.u64 %a, 16; mov.u32 %b, 1; st.global.u32 [%a], %b; ret;}
\\0'''
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    assert call("cuModuleLoadData", ctypes.byref(module), ptx) == 0
    assert call("cuModuleGetFunction", ctypes.byref(function), module, b"wrong") == 0
    call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
    sys.exit(call("cuCtxSynchronize") % 256)
rounds = error = 0
while not error and not select.select([sys.stdin], [], [], 0)[0]:
    call("cuMemsetD32_v2", place, rounds, ctypes.c_size_t(1 << 26))
    error = call("cuCtxSynchronize")
    rounds += 1
say(rounds=rounds, error=error)
"""


def half() -> Instance:
    whole = next(gpu for gpu in discover_gpus() if gpu.index < SLICE_INDEX_STEP)
    return Instance(
        rank=0, node="here", gpu_ids=(whole.id,), gpu_indexes=(0,), gpu_milli=500, gpu_memory_bytes=whole.memory_bytes
    )


class Job:
    """A program with half of the first GPU, as the engine starts it."""

    #: those of one test: a daemon does not end while one of them lives
    begun_here: ClassVar[list[subprocess.Popen[str]]] = []

    def __init__(self, mps: Mps, part: float, does: str = "work", account: Account | None = None) -> None:
        share = share_environment(half(), pipe_directory=mps.pipe_of(account))
        assert share[SHARE_VARIABLE] == "enforced"
        as_account: dict[str, Any] = {}
        if account is not None:
            as_account = {"user": account.uid, "group": account.gid, "extra_groups": []}
        self.process = subprocess.Popen(
            [sys.executable, "-c", JOB, str(part), does],
            env={**os.environ, **share, "CUDA_VISIBLE_DEVICES": "0", "HOME": "/tmp"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            **as_account,
        )
        self.begun_here.append(self.process)
        assert self.process.stdout is not None
        self.begun: dict[str, int] = json.loads(self.process.stdout.readline())

    def ended(self) -> dict[str, int]:
        """Ask it to end; returns its last line."""
        out, _ = self.process.communicate(timeout=60)
        found: dict[str, int] = json.loads(out)
        return found

    def code(self) -> int:
        return self.process.wait(timeout=60)


@pytest.fixture
def mps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mps]:
    place = Path(f"/tmp/corral-mps-{os.getpid()}")
    place.mkdir(mode=0o711)
    yield Mps(str(place), os.environ)
    for process in Job.begun_here:
        process.kill()
        process.communicate(timeout=60)
    Job.begun_here.clear()
    for pipe in place.glob("*/pipe"):
        env = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": str(pipe)}
        subprocess.run([PROGRAM], input=b"quit\n", env=env, check=False, timeout=60)
    shutil.rmtree(place)


def test_two_halves_run_side_by_side_and_each_sees_its_half(mps: Mps) -> None:
    one, two = Job(mps, 0.45), Job(mps, 0.45)
    for job in (one, two):
        assert job.begun["taken"] == 0
        # The driver's total is a little more than what CUDA can give out.
        assert job.begun["free"] <= job.begun["total"] * 0.51
        # The server rounds to groups of units: an H200 has 132, its half 66.
        assert job.begun["units"] <= 70
    for job in (one, two):
        assert (ended := job.ended())["error"] == 0
        assert ended["rounds"] > 10


def test_a_job_that_asks_for_more_than_its_share_gets_an_error_and_others_go_on(mps: Mps) -> None:
    good = Job(mps, 0.45)
    greedy = Job(mps, 0.6)
    assert (greedy.begun["taken"], greedy.code()) == (OUT_OF_MEMORY, OUT_OF_MEMORY)
    killed = Job(mps, 0.4)
    killed.process.send_signal(signal.SIGKILL)
    assert killed.code() == -signal.SIGKILL
    assert Job(mps, 0.45).ended()["error"] == 0
    assert good.ended()["error"] == 0


def test_a_daemon_that_died_is_started_again_before_the_next_job(mps: Mps) -> None:
    pipe = Path(mps.pipe_of(None))
    os.kill(int((pipe / f"{PROGRAM}.pid").read_text()), signal.SIGKILL)
    time.sleep(0.5)
    assert Job(mps, 0.6).begun["taken"] == OUT_OF_MEMORY


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts programs as other accounts: run as root")
def test_accounts_neither_wait_for_each_other_nor_share_a_fault(mps: Mps) -> None:
    ann, eve = (Account(name=name, uid=uid, gid=uid, groups=(uid,)) for name, uid in (("ann", 48501), ("eve", 48502)))
    victim = Job(mps, 0.45, account=ann)
    beside = Job(mps, 0.45, account=eve)
    assert beside.begun["taken"] == victim.begun["taken"] == 0
    assert Job(mps, 0.01, "fault", account=eve).code() not in (0, -signal.SIGKILL)
    assert victim.process.poll() is None
    assert victim.ended()["error"] == 0
    # Programs of one account share their daemon, and its end: this is what the documentation says.
    assert beside.ended()["error"] != 0
