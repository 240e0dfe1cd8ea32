"""An active check of one GPU and its node, as the program of a job.

    python3 -m corral.presets.gpu_checks --checks compute,memory,pcie,disk,network,dcgm [--cpu]

Computes and stores known values and compares them, and measures rates. It uses PyTorch if it is installed, and `dcgmi`
where that is found. `--cpu` is a test mode without a GPU: its rates are those of the processor, so that the way of a
check through the platform can be tested anywhere. The last line of the output is the result, as JSON behind `MARK`.
The exit code is 0 if everything that ran was right, 1 if something was wrong, and 2 if the check could not be run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MARK = "corral-check: "
#: length of each measurement of a rate
MEASURE_SECONDS = 1.0
_MIB = 1 << 20
_PATTERNS = (0x00, 0xFF, 0x55, 0xAA)
_DCGM_SECONDS = 300


class Skipped(Exception):
    """The check cannot be made here; the message gives the reason."""


class Result:
    def __init__(self) -> None:
        self.measurements: list[dict[str, Any]] = []
        self.problems: list[dict[str, Any]] = []
        self.skipped: list[dict[str, str]] = []

    def measured(self, check: str, metric: str, value: float) -> None:
        self.measurements.append({"check": check, "metric": metric, "value": value})
        say(f"{metric}: {value:.4g}")

    def wrong(self, check: str, text: str) -> None:
        self.problems.append({"check": check, "text": text, "is_fatal": True})
        say(f"{check}: {text}")


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def rate(action: Callable[[], object], amount: float, wait: Callable[[], object] = lambda: None) -> float:
    """Amounts per second, over about a second, after one run that is not counted."""
    action()
    wait()
    began, runs = time.perf_counter(), 0
    while time.perf_counter() - began < MEASURE_SECONDS:
        action()
        wait()
        runs += 1
    return runs * amount / (time.perf_counter() - began)


# ------------------------------------------------------------------------------------------------ GPU, by PyTorch


def torch_on_gpu() -> Any:
    try:
        import torch
    except ImportError:
        raise Skipped("PyTorch is not installed for this Python") from None
    if not torch.cuda.is_available():
        raise Skipped("PyTorch finds no GPU")
    return torch


def compute_on_gpu(result: Result) -> None:
    torch = torch_on_gpu()
    # Whole numbers below 2^24 are exact in fp32, whatever the order of additions.
    small = torch.randint(-8, 9, (256, 256), generator=torch.Generator().manual_seed(1), dtype=torch.int64)
    wanted = small @ small
    torch.backends.cuda.matmul.allow_tf32 = False
    found = (small.to("cuda", torch.float32) @ small.to("cuda", torch.float32)).round().to("cpu", torch.int64)
    if wrong := int((found != wanted).sum()):
        result.wrong("compute", f"{wrong} of {wanted.numel()} elements of a product are wrong")
    size = 8192
    factor = torch.randn(size, size, device="cuda", dtype=torch.float16)
    first = factor @ factor
    for _ in range(4):
        if not torch.equal(first, factor @ factor):
            result.wrong("compute", "the same product had different values")
            break
    speed = rate(lambda: factor @ factor, 2.0 * size**3 / 1e12, torch.cuda.synchronize)
    result.measured("compute", "compute_tflops", speed)


def memory_on_gpu(result: Result) -> None:
    torch = torch_on_gpu()
    free, _ = torch.cuda.mem_get_info()
    block = torch.empty(int(free * 0.8), device="cuda", dtype=torch.uint8)
    for pattern in _PATTERNS:
        block.fill_(pattern)
        wrong = sum(int((part != pattern).sum()) for part in block.split(256 * _MIB))
        if wrong:
            result.wrong("memory", f"{wrong} of {block.numel()} bytes did not keep 0x{pattern:02x}")
            break
    half = block.numel() // 2
    source, target = block[:half], block[half : 2 * half]
    speed = rate(lambda: target.copy_(source), 2 * half / 1e9, torch.cuda.synchronize)
    result.measured("memory", "memory_gb_per_second", speed)


def pcie_on_gpu(result: Result) -> None:
    torch = torch_on_gpu()
    size = 256 * _MIB
    host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    device = torch.empty(size, dtype=torch.uint8, device="cuda")
    synchronize = torch.cuda.synchronize
    into = rate(lambda: device.copy_(host, non_blocking=True), size / 1e9, synchronize)
    out = rate(lambda: host.copy_(device, non_blocking=True), size / 1e9, synchronize)
    result.measured("pcie", "pcie_to_gpu_gb_per_second", into)
    result.measured("pcie", "pcie_from_gpu_gb_per_second", out)


# ------------------------------------------------------------------------------------------------ test mode


def compute_on_cpu(result: Result) -> None:
    numbers = range(1, 20_001)
    if sum(number * number for number in numbers) != 20_000 * 20_001 * 40_001 // 6:
        result.wrong("compute", "a sum of squares is wrong")
    speed = rate(lambda: sum(number * number for number in numbers), 2 * len(numbers) / 1e12)
    result.measured("compute", "compute_tflops", speed)


def memory_on_cpu(result: Result) -> None:
    block = bytearray(16 * _MIB)
    for pattern in _PATTERNS:
        block[:] = bytes([pattern]) * len(block)
        if block.count(pattern) != len(block):
            result.wrong("memory", f"memory did not keep 0x{pattern:02x}")
    result.measured("memory", "memory_gb_per_second", rate(lambda: bytes(block), 2 * len(block) / 1e9))


def pcie_on_cpu(result: Result) -> None:
    raise Skipped("there is no GPU in test mode")


# ------------------------------------------------------------------------------------------------ node


def disk(result: Result) -> None:
    size = 64 * _MIB
    with tempfile.NamedTemporaryFile() as file:
        block = os.urandom(_MIB)
        began = time.perf_counter()
        for _ in range(size // _MIB):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        result.measured("disk", "disk_write_mb_per_second", size / 1e6 / (time.perf_counter() - began))
        # So that the disk is read, and not the cache.
        os.posix_fadvise(file.fileno(), 0, size, os.POSIX_FADV_DONTNEED)
        file.seek(0)
        began = time.perf_counter()
        while found := file.read(_MIB):
            if found != block:
                result.wrong("disk", "a file did not keep what was written to it")
                break
        result.measured("disk", "disk_read_mb_per_second", size / 1e6 / (time.perf_counter() - began))


def network(result: Result) -> None:
    """The rate that the fastest link has negotiated: a bad cable or port brings it down."""
    speeds = []
    for path in Path("/sys/class/net").glob("*/speed"):
        try:
            is_up = (path.parent / "operstate").read_text().strip() == "up"
            speed = int(path.read_text())
        except (OSError, ValueError):
            continue  # a link that is down, or a virtual one, has no speed
        if is_up and speed > 0:
            speeds.append(speed)
    if not speeds:
        raise Skipped("no link of this node reports a speed")
    result.measured("network", "network_link_gbit_per_second", max(speeds) / 1000)


def dcgm(result: Result) -> None:
    program = shutil.which("dcgmi")
    if program is None:
        raise Skipped("dcgmi is not installed")
    index = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    command = [program, "diag", "-r", "2", "-i", index, "-j"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_DCGM_SECONDS, check=False)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        raise Skipped(f"dcgmi ended with code {done.returncode} and without a report") from None
    for text in dcgm_failures(report):
        result.wrong("dcgm", text)


def dcgm_failures(report: Any) -> list[str]:
    """The failed tests of a report of `dcgmi diag -j`, wherever they are in it: its shape differs between versions."""
    found: list[str] = []

    def walk(part: Any, name: str) -> None:
        if isinstance(part, dict):
            name = str(part.get("name", name))
            if str(part.get("status", "")).lower() == "fail":
                warnings = part.get("warnings") or part.get("warning") or part.get("info") or ""
                if isinstance(warnings, list):
                    warnings = "; ".join(
                        str(warning.get("warning", warning) if isinstance(warning, dict) else warning)
                        for warning in warnings
                    )
                found.append(f"{name or 'a test'} failed" + (f": {warnings}" if warnings else ""))
            for key, value in part.items():
                walk(value, name or str(key))
        elif isinstance(part, list):
            for value in part:
                walk(value, name)

    walk(report, "")
    return list(dict.fromkeys(found))


ON_GPU = {"compute": compute_on_gpu, "memory": memory_on_gpu, "pcie": pcie_on_gpu}
ON_CPU = {"compute": compute_on_cpu, "memory": memory_on_cpu, "pcie": pcie_on_cpu}
ON_NODE = {"disk": disk, "network": network, "dcgm": dcgm}


def check(names: list[str], *, on_cpu: bool) -> Result:
    result = Result()
    for name in names:
        action = {**ON_NODE, **(ON_CPU if on_cpu else ON_GPU)}[name]
        try:
            action(result)
        except Skipped as reason:
            result.skipped.append({"check": name, "reason": str(reason)})
        except MemoryError as error:
            result.skipped.append({"check": name, "reason": f"too little memory is free: {error}"[:500]})
        except Exception as error:  # noqa: BLE001 - a GPU that fails in the middle of a check is what is searched
            if type(error).__name__ == "OutOfMemoryError":
                result.skipped.append({"check": name, "reason": f"too little GPU memory is free: {error}"[:500]})
            else:
                result.wrong(name, f"{type(error).__name__}: {error}"[:500])
    return result


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="corral.presets.gpu_checks")
    parser.add_argument("--checks", required=True)
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args(arguments)
    names = [name for name in options.checks.split(",") if name]
    unknown = [name for name in names if name not in {**ON_GPU, **ON_NODE}]
    if unknown or not names:
        parser.error(f"unknown checks: {', '.join(unknown) or 'none given'}")
    result = check(names, on_cpu=options.cpu)
    body = {
        "mode": "cpu" if options.cpu else "gpu",
        "measurements": result.measurements,
        "problems": result.problems,
        "skipped": result.skipped,
    }
    say(MARK + json.dumps(body))
    if result.problems:
        return 1
    return 0 if len(result.skipped) < len(names) else 2


if __name__ == "__main__":
    sys.exit(main())
