"""A disk that becomes full: what is refused, what is given up, and what is made again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from corral.control.errors import OverLimit
from corral.control.ports import EngineUnavailable, Store, Transaction
from corral.server.settings.disk_limits import DiskLimits
from corral.server.system.disk_guard import RESERVE, DiskGuard, Free
from corral.server.system.write_proof import WriteProof
from tests.unit.control.world import WrappedStore

MIB = 1 << 20
LIMITS = DiskLimits(job_bytes=None, job_files=None, min_free_bytes=100 * MIB, reserve_bytes=8 * MIB)


class SmallDisk(DiskGuard):
    """A guard of a disk whose free space a test says."""

    free_bytes = 1000 * MIB
    free_files: int | None = 1_000_000

    def free(self, place: str | Path | None = None) -> Free:
        return Free(bytes=self.free_bytes, own_bytes=self.free_bytes, files=self.free_files)


@pytest.fixture
def guard(tmp_path: Path) -> SmallDisk:
    return SmallDisk(home=tmp_path, limits=LIMITS, keep_room=lambda: None)


def test_the_reserve_is_given_up_bit_by_bit_and_made_again(guard: SmallDisk, tmp_path: Path) -> None:
    reserve = tmp_path / RESERVE
    guard.look()
    assert reserve.stat().st_size == 8 * MIB
    assert reserve.stat().st_blocks * 512 >= 8 * MIB, "it takes what it reserves"
    guard.free_bytes = MIB
    sizes = []
    for _ in range(10):
        guard.look()
        sizes.append(reserve.stat().st_size // MIB)
    assert sizes == [7, 6, 5, 4, 3, 2, 1, 0, 0, 0]
    guard.free_bytes = 90 * MIB
    guard.look()
    assert reserve.stat().st_size == 0, "there is not enough for it yet"
    guard.free_bytes = 500 * MIB
    guard.look()
    assert reserve.stat().st_size == 8 * MIB


def test_nothing_is_launched_on_a_disk_that_is_almost_full(guard: SmallDisk) -> None:
    guard.check_launch()
    guard.free_bytes = 99 * MIB
    with pytest.raises(EngineUnavailable, match="99MiB free, and 100MiB are kept free"):
        guard.check_launch()
    guard.free_bytes, guard.free_files = 1000 * MIB, 10
    with pytest.raises(EngineUnavailable, match="room for 10 more files"):
        guard.check_launch()
    guard.free_files = None
    guard.check_launch()


def test_nothing_is_brought_that_has_no_room(guard: SmallDisk) -> None:
    guard.check_room(900 * MIB)
    with pytest.raises(OverLimit, match="this needs 901MiB"):
        guard.check_room(901 * MIB)


def test_writing_is_proven_and_what_hangs_is_not_waited_for(store: Store, tmp_path: Path) -> None:
    may_write = threading.Event()

    class Slow(WrappedStore):
        @contextmanager
        def write(self) -> Iterator[Transaction]:
            assert may_write.wait(30)
            with store.write() as tables:
                yield tables

    async def story() -> None:
        assert await WriteProof(store, tmp_path).problem(30) == ""
        assert (tmp_path / ".ready").read_text() == "ready\n"
        assert await WriteProof(store, tmp_path / "nowhere").problem(30) == (
            "the home directory cannot be written: No such file or directory"
        )
        hanging = WriteProof(Slow(store), tmp_path)
        assert "does not answer" in await hanging.problem(0.01)
        assert "does not answer" in await hanging.problem(0.01)
        assert sum(thread.name == "write-proof" for thread in threading.enumerate()) == 1, "one hangs, not many"
        may_write.set()
        assert await hanging.problem(30) == ""

    asyncio.run(story())


def test_a_store_that_cannot_be_written_is_said(store: Store, tmp_path: Path) -> None:
    class Full(WrappedStore):
        @contextmanager
        def write(self) -> Iterator[Transaction]:
            raise OSError(28, "No space left on device")
            yield

    proof = WriteProof(Full(store), tmp_path)
    assert asyncio.run(proof.problem(30)) == "the store cannot be written"
