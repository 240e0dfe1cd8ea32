"""The self-test of a GPU: does it answer, does it compute, does its memory keep what is written?

    python -m corral.telemetry.selftest GPU-01234567-89ab-cdef-0123-456789abcdef

The test runs in a process of its own, because a broken GPU can block a process that uses it. It needs only the driver,
no CUDA toolkit. It uses at most half of the free memory, so that a job on the same GPU is not disturbed much.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping

import numpy
from numpy.typing import NDArray

from corral.telemetry.virtual import Fault

TIMEOUT_SECONDS = 60.0
MOST_BYTES = 512 << 20
LEAST_BYTES = 1 << 20
PIECE_BYTES = 64 << 20
_PATTERNS = (0x00000000, 0xFFFFFFFF, 0x55555555, 0xAAAAAAAA)
Words = NDArray[numpy.uint32]
#: Odd, so that neighbouring words differ in many bits.
_STRIDE = numpy.uint32(0x9E3779B1)


class DriverSelfTest:
    """Real GPUs. See `corral.control.ports.SelfTest`."""

    def __init__(self, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._timeout = timeout_seconds

    def run(self, gpu_id: str) -> str | None:
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "corral.telemetry.selftest", gpu_id],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = process.wait(self._timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                # A process that is stuck in the kernel cannot be killed, and must not block the server.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(1.0)
                return f"the GPU did not finish the test within {self._timeout:g} s"
            output.seek(0)
            said = output.read().decode(errors="replace").strip()
        if code == 0:
            return None
        last = said.splitlines()[-1] if said else ""
        return last or (f"the test was ended by signal {-code}" if code < 0 else f"the test ended with code {code}")


class VirtualSelfTest:
    """Virtual GPUs pass unless a drill has made them fail."""

    def __init__(self, faults: Callable[[], Mapping[str, Fault]]) -> None:
        self._faults = faults

    def run(self, gpu_id: str) -> str | None:
        fault = self._faults().get(gpu_id)
        if fault is None:
            return None
        if fault.lost:
            return "the GPU does not answer"
        if fault.temperature is not None:
            return f"the GPU is at {fault.temperature:g} °C"
        if fault.remap_failed or fault.ecc_uncorrected:
            return "memory did not keep what was written to it"
        if fault.xids:
            return f"the driver reports XID {fault.xids[-1]}"
        return "the GPU does not compute" if fault.idle else None


class GpuFailed(Exception):
    """The GPU did not pass; the message gives the reason."""


# ------------------------------------------------------------------------------------------------ in the test's process


class _Driver:
    """The few functions of the CUDA driver that are needed. A failing call raises GpuFailed."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise GpuFailed("there is no NVIDIA driver on this machine (libcuda.so.1)") from error

    def call(self, name: str, *arguments: object) -> None:
        function = getattr(self._library, name, None)
        if function is None:
            raise GpuFailed(f"the NVIDIA driver is too old: it has no {name}")
        code = int(function(*arguments))
        if code:
            raise GpuFailed(f"{name} failed: {self._error(code)}")

    def _error(self, code: int) -> str:
        text = ctypes.c_char_p()
        if self._library.cuGetErrorString(code, ctypes.byref(text)) or not text.value:
            return f"error {code}"
        return f"{text.value.decode(errors='replace')} ({code})"


def put_to_the_test(gpu_id: str) -> str:
    """A description of what passed. Raises GpuFailed. The GPU must be the only one that this process sees."""
    driver = _Driver()
    driver.call("cuInit", 0)
    count = ctypes.c_int()
    driver.call("cuDeviceGetCount", ctypes.byref(count))
    if count.value != 1:
        raise GpuFailed(f"the driver finds no GPU {gpu_id}")
    device = ctypes.c_int()
    driver.call("cuDeviceGet", ctypes.byref(device), 0)
    with _context(driver, device):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        size = min(MOST_BYTES, free.value // 4) // LEAST_BYTES * LEAST_BYTES
        if size < LEAST_BYTES:
            raise GpuFailed(f"only {free.value >> 20} MiB of its memory are free: too little to test it")
        with _memory(driver, size) as first, _memory(driver, size) as second:
            for pattern in _PATTERNS:
                _check_pattern(driver, first, size, pattern)
            _check_copy(driver, first, second, size)
    return f"{2 * size >> 20} MiB of memory kept what was written to it, and copies were exact"


@contextlib.contextmanager
def _context(driver: _Driver, device: ctypes.c_int) -> Iterator[None]:
    context = ctypes.c_void_p()
    driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    try:
        driver.call("cuCtxSetCurrent", context)
        yield
    finally:
        driver.call("cuDevicePrimaryCtxRelease_v2", device)


@contextlib.contextmanager
def _memory(driver: _Driver, size: int) -> Iterator[int]:
    place = ctypes.c_uint64()
    driver.call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(size))
    try:
        yield place.value
    finally:
        driver.call("cuMemFree_v2", place)


def _check_pattern(driver: _Driver, place: int, size: int, pattern: int) -> None:
    driver.call("cuMemsetD32_v2", ctypes.c_uint64(place), ctypes.c_uint(pattern), ctypes.c_size_t(size // 4))
    driver.call("cuCtxSynchronize")
    for offset, words in _read_back(driver, place, size):
        _compare(words, numpy.uint32(pattern), offset, f"0x{pattern:08x}")


def _check_copy(driver: _Driver, source: int, target: int, size: int) -> None:
    """Every word holds its own number: finds memory that answers at a wrong address, and copies to a wrong address."""
    for offset in range(0, size, PIECE_BYTES):
        words = _numbered(offset, min(PIECE_BYTES, size - offset))
        pointer = words.ctypes.data_as(ctypes.c_void_p)
        driver.call("cuMemcpyHtoD_v2", ctypes.c_uint64(source + offset), pointer, ctypes.c_size_t(words.nbytes))
    driver.call("cuMemcpyDtoD_v2", ctypes.c_uint64(target), ctypes.c_uint64(source), ctypes.c_size_t(size))
    driver.call("cuCtxSynchronize")
    for offset, words in _read_back(driver, target, size):
        _compare(words, _numbered(offset, words.nbytes), offset, "a copy")


def _numbered(offset: int, size: int) -> Words:
    return numpy.arange(offset // 4, (offset + size) // 4, dtype=numpy.uint32) * _STRIDE


def _read_back(driver: _Driver, place: int, size: int) -> Iterator[tuple[int, Words]]:
    for offset in range(0, size, PIECE_BYTES):
        words = numpy.empty(min(PIECE_BYTES, size - offset) // 4, dtype=numpy.uint32)
        pointer = words.ctypes.data_as(ctypes.c_void_p)
        driver.call("cuMemcpyDtoH_v2", pointer, ctypes.c_uint64(place + offset), ctypes.c_size_t(words.nbytes))
        yield offset, words


def _compare(
    found: Words,
    wanted: numpy.uint32 | Words,
    offset: int,
    what: str,
) -> None:
    wrong = numpy.flatnonzero(found != wanted)
    if wrong.size:
        first = int(wrong[0])
        raise GpuFailed(
            f"memory did not keep {what}: {wrong.size} words are wrong, the first at byte {offset + 4 * first} "
            f"(0x{int(found[first]):08x})"
        )


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m corral.telemetry.selftest GPU-UUID\n")
        return 2
    # The driver reads it when it starts; a UUID means the same GPU in any order of devices.
    os.environ["CUDA_VISIBLE_DEVICES"] = arguments[0]
    try:
        sys.stdout.write(f"passed: {put_to_the_test(arguments[0])}\n")
    except GpuFailed as error:
        sys.stdout.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
