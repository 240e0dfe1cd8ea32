"""The self-test answers in words, and never hangs its caller."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from corral.engines.local.faults import GpuFault
from corral.telemetry import selftest
from corral.telemetry.selftest import DriverSelfTest, VirtualSelfTest


@pytest.mark.parametrize(
    ("fault", "answer"),
    [
        (None, None),
        (GpuFault(), None),
        (GpuFault(lost=True), "the GPU does not answer"),
        (GpuFault(temperature=97.0), "the GPU is at 97 °C"),
        (GpuFault(ecc_uncorrected=1), "memory did not keep what was written to it"),
        (GpuFault(remap_failed=True), "memory did not keep what was written to it"),
        (GpuFault(xids=(31, 79)), "the driver reports XID 79"),
        (GpuFault(idle=True), "the GPU does not compute"),
    ],
)
def test_a_virtual_gpu_passes_unless_a_drill_is_on(fault: GpuFault | None, answer: str | None) -> None:
    faults = {} if fault is None else {"g": fault}
    assert VirtualSelfTest(lambda: faults).run("g") == answer
    assert VirtualSelfTest(lambda: faults).run("another") is None


def test_without_a_driver_or_without_that_gpu_it_says_so() -> None:
    answer = DriverSelfTest().run("GPU-00000000-0000-0000-0000-000000000000")
    assert answer is not None
    assert "no NVIDIA driver" in answer or "cuInit failed" in answer or "finds no GPU" in answer


def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Run this instead of the test, as the test's process."""
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(script))


def test_a_gpu_that_hangs_fails_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, monkeypatch, "exec sleep 300")
    assert DriverSelfTest(timeout_seconds=0.1).run("g") == "the GPU did not finish the test within 0.1 s"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("echo passed; exit 0", None),
        ("echo noise; echo cuMemAlloc_v2 failed: out of memory; exit 1", "cuMemAlloc_v2 failed: out of memory"),
        ("kill -SEGV $$", "the test was ended by signal 11"),
        ("exit 3", "the test ended with code 3"),
    ],
)
def test_output_of_the_self_test_gives_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, answer: str | None
) -> None:
    program(tmp_path, monkeypatch, text)
    assert DriverSelfTest().run("g") == answer


class FakeDriver:
    """Memory that is kept in this process, with one bad word if asked."""

    def __init__(self, *, bad_at: int | None = None, free: int = 64 << 20, devices: int = 1) -> None:
        import ctypes

        self.c = ctypes
        self.bad_at = bad_at
        self.free = free
        self.devices = devices
        self.buffers: list[object] = []

    def call(self, name: str, *arguments: object) -> None:
        getattr(self, name)(*arguments)

    def cuInit(self, flags: int) -> None: ...

    def cuDeviceGet(self, *arguments: object) -> None: ...

    def cuDevicePrimaryCtxRetain(self, *arguments: object) -> None: ...

    def cuCtxSetCurrent(self, *arguments: object) -> None: ...

    def cuDevicePrimaryCtxRelease_v2(self, *arguments: object) -> None: ...

    def cuCtxSynchronize(self) -> None: ...

    def cuMemFree_v2(self, place: Any) -> None: ...

    def cuDeviceGetCount(self, count: Any) -> None:
        count._obj.value = self.devices

    def cuMemGetInfo_v2(self, free: Any, total: Any) -> None:
        free._obj.value = self.free

    def cuMemAlloc_v2(self, place: Any, size: Any) -> None:
        buffer = self.c.create_string_buffer(size.value)
        self.buffers.append(buffer)
        place._obj.value = self.c.addressof(buffer)

    def cuMemsetD32_v2(self, place: Any, pattern: Any, count: Any) -> None:
        words = (self.c.c_uint32 * count.value).from_address(place.value)
        self.c.memmove(words, pattern.value.to_bytes(4, "little") * count.value, 4 * count.value)
        if self.bad_at is not None:
            words[self.bad_at] ^= 1

    def cuMemcpyHtoD_v2(self, place: Any, source: Any, size: Any) -> None:
        self.c.memmove(place.value, source, size.value)

    def cuMemcpyDtoH_v2(self, target: Any, place: Any, size: Any) -> None:
        self.c.memmove(target, place.value, size.value)

    def cuMemcpyDtoD_v2(self, target: Any, source: Any, size: Any) -> None:
        self.c.memmove(target.value, source.value, size.value)


def test_good_memory_passes_and_a_bad_word_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "PIECE_BYTES", 3 << 20)
    monkeypatch.setattr(selftest, "_Driver", FakeDriver)
    assert selftest.put_to_the_test("g").startswith("32 MiB of memory kept")
    monkeypatch.setattr(selftest, "_Driver", lambda: FakeDriver(bad_at=1_000_000))
    with pytest.raises(selftest.GpuFailed, match=r"0x00000000: 1 words are wrong, the first at byte 4000000"):
        selftest.put_to_the_test("g")


def test_too_little_memory_and_no_such_gpu_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "_Driver", lambda: FakeDriver(free=1 << 20))
    with pytest.raises(selftest.GpuFailed, match="only 1 MiB"):
        selftest.put_to_the_test("g")
    monkeypatch.setattr(selftest, "_Driver", lambda: FakeDriver(devices=0))
    with pytest.raises(selftest.GpuFailed, match="finds no GPU g"):
        selftest.put_to_the_test("g")
