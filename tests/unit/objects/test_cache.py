"""Blocks of objects on disk: fetched once, evicted by age, never while open, whole after every crash."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.objects.cache import BlockCache, Identity
from tests.unit.objects import cache_process
from tests.unit.objects.cache_process import BLOCK


def identity(key: str = "k", size: int = 10 * BLOCK, version: str = "1") -> Identity:
    return Identity(bucket="b", key=key, version=version, size=size)


def counting(fetched: list[int], fill: bytes = b"x") -> Callable[[int, int], bytes]:
    def fetch(start: int, end: int) -> bytes:
        fetched.append(start)
        return fill * (end - start)

    return fetch


def read(cache: BlockCache, of: Identity, number: int, fetch: Callable[[int, int], bytes]) -> bytes:
    with cache.opened(of, number, fetch) as block:
        return os.pread(block, 1 << 20, 0)


@pytest.fixture
def cache(tmp_path: Path) -> BlockCache:
    return BlockCache(str(tmp_path / "cache"), 1 << 30, block_bytes=BLOCK)


def test_a_block_is_fetched_once_and_the_last_one_is_short(cache: BlockCache) -> None:
    fetched: list[int] = []
    short = identity(size=2 * BLOCK + 5)
    assert [len(read(cache, short, number, counting(fetched))) for number in (0, 2, 0, 2)] == [BLOCK, 5, BLOCK, 5]
    assert fetched == [0, 2 * BLOCK]
    assert read(cache, identity(version="2"), 0, counting(fetched, b"y")) == b"y" * BLOCK
    assert cache.used_bytes() == 2 * BLOCK + 5


def test_failed_fetch_leaves_no_file_and_is_tried_again(cache: BlockCache) -> None:
    def fails(start: int, end: int) -> bytes:
        raise ConnectionError("no answer")

    with pytest.raises(ConnectionError):
        read(cache, identity(), 0, fails)
    with pytest.raises(OSError, match="1000 bytes were requested from 0 on, and 3 were received"):
        read(cache, identity(), 0, lambda start, end: b"abc")
    assert not cache.has(identity(), 0)
    assert read(cache, identity(), 0, counting([])) == b"x" * BLOCK


def test_a_block_that_a_loss_of_power_damaged_is_fetched_again(cache: BlockCache, tmp_path: Path) -> None:
    fetched: list[int] = []
    read(cache, identity(), 0, counting(fetched))
    (block,) = (tmp_path / "cache" / "blocks").rglob("*.0")
    block.write_bytes(b"")
    assert read(cache, identity(), 0, counting(fetched)) == b"x" * BLOCK
    assert fetched == [0, 0]


def test_the_longest_unused_go_first_and_never_what_is_open(tmp_path: Path) -> None:
    cache = BlockCache(str(tmp_path / "cache"), 5 * BLOCK, block_bytes=BLOCK)
    names = ["a", "b", "c", "d", "e"]
    for age, name in enumerate(names):
        read(cache, identity(name), 0, counting([]))
        (block,) = (tmp_path / "cache" / "blocks").rglob(f"{identity(name).digest}.0")
        os.utime(block, (1000 + age, 1000 + age))
    with cache.opened(identity("a"), 0, counting([])) as opened:
        os.utime(opened, (1000, 1000))  # as old as it was: only being open protects it
        for name in ("f", "g"):
            read(cache, identity(name), 0, counting([]))
        kept = {name for name in (*names, "f", "g") if cache.has(identity(name), 0)}
        assert {"a", "f", "g"} <= kept
        assert "b" not in kept
        assert cache.used_bytes() <= 5 * BLOCK
        assert os.pread(opened, BLOCK, 0) == b"x" * BLOCK


def first_bytes(data: bytes, start: int, end: int) -> bytes:
    return data[: end - start]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 3)), min_size=1, max_size=40))
def test_cache_reads_are_right_and_keep_the_limit(
    tmp_path_factory: pytest.TempPathFactory, reads: list[tuple[str, int]]
) -> None:
    cache = BlockCache(str(tmp_path_factory.mktemp("cache")), 4 * BLOCK, block_bytes=BLOCK)
    for name, number in reads:
        of = identity(name, size=3 * BLOCK + 7)
        expected = f"{name}{number}".encode() * BLOCK
        length = BLOCK if number < 3 else 7
        assert read(cache, of, number, partial(first_bytes, expected)) == expected[:length]
        assert cache.used_bytes() <= 5 * BLOCK


def _start(root: Path, seconds: float, *numbers: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, cache_process.__file__, str(root), str(seconds), *map(str, numbers)]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_processes_share_one_fetch_and_survive_the_death_of_the_process_that_does_it(tmp_path: Path) -> None:
    """One is killed while it fetches; of those that waited for it one takes over, and the others need no fetch."""
    counted = tmp_path / "fetched"
    victim = _start(tmp_path, 60.0, 0)
    _wait(counted.exists)
    others = [_start(tmp_path, 0.1, 0, 1) for _ in range(3)]
    time.sleep(0.3)
    assert [other.poll() for other in others] == [None] * 3
    victim.kill()
    assert victim.wait() == -9
    assert [other.wait(60) for other in others] == [0] * 3
    assert sorted(counted.read_text().split()) == ["0", "0", "1000"]
    assert not list((tmp_path / "cache" / "blocks").rglob("*.part"))
