"""Killed at any moment, twenty times: the history opens each time, and has what it had acknowledged."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from corral.control.ports import Metric
from tests.contract.history_crash import GPUS, SPEED, reading_of
from tests.integration.waiting import wait_until
from tests.unit.telemetry.history_model import SetClock, open_history

BEGIN = 1_800_000_000
KILLS = 20
#: A reading may be lost that was not older than this when the process died.
LOST_SECONDS = 10.0


@pytest.fixture
def fork_server(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.contract.history_crash", str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        yield process
        # With its children, if a test failed in the middle.
        os.killpg(process.pid, signal.SIGKILL)


def lines(witness: Path, what: str) -> list[int]:
    if not witness.exists():
        return []
    return [int(line.split()[1]) for line in witness.read_text().splitlines() if line.startswith(what)]


def has_kept(witness: Path, enough: int) -> bool:
    return len(lines(witness, "kept")) >= enough


def begin_life(fork_server: subprocess.Popen[str], mode: str, witness: Path) -> int:
    assert fork_server.stdin is not None
    assert fork_server.stdout is not None
    last = max(lines(witness, "taken"), default=BEGIN * 1000)
    fork_server.stdin.write(f"{mode} {last / 1000 + 60}\n")
    fork_server.stdin.flush()
    return int(fork_server.stdout.readline())


def wait_for_death(fork_server: subprocess.Popen[str]) -> None:
    assert fork_server.stdout is not None
    assert fork_server.stdout.readline() == "dead\n"


def chunk_count(home: Path) -> int:
    with sqlite3.connect(home / "history.db") as connection:
        return int(connection.execute("SELECT count(*) FROM chunk").fetchone()[0])


def check(home: Path) -> set[int]:
    """Open it as the next server would, and compare everything; the moments that it has."""
    with sqlite3.connect(home / "history.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    history = open_history(home / "history.db", SetClock(at=BEGIN), raw_hours=10_000)
    found = history.series(Metric.GPU_UTILIZATION, None, 0, BEGIN * 2, 0.001)
    nodes = history.series(Metric.NODE_CPU, None, 0, BEGIN * 2, 0.001)
    history.close()
    moments = {round(point.at * 1000) for point in nodes.get("n1", [])}
    for gpu in range(GPUS if moments else 0):
        points = {round(point.at * 1000): (point.mean, point.count) for point in found[f"g{gpu}"]}
        assert points == {at: (reading_of(gpu, at), 1) for at in moments}
    return moments


def test_killed_twenty_times(fork_server: subprocess.Popen[str], tmp_path: Path) -> None:
    chance = random.Random(4)
    witness = tmp_path / "witness"
    lived = 0
    for number in range(KILLS):
        process = begin_life(fork_server, "ordinary", witness)
        enough = len(lines(witness, "kept")) + chance.randrange(1, 120)
        wait_until(partial(has_kept, witness, enough), f"life {number}")
        time.sleep(chance.uniform(0, 0.02))  # not always right after an append
        os.kill(process, signal.SIGKILL)
        wait_for_death(fork_server)
        kept = check(tmp_path)
        assert kept >= set(lines(witness, "kept"))
        life, lived = lines(witness, "taken")[lived:], len(lines(witness, "taken"))
        missing = [at for at in life if at not in kept]
        assert missing == life[len(life) - len(missing) :], "only the end may be missing"
        assert all((life[-1] - at) / 1000 / SPEED <= LOST_SECONDS for at in missing)
    assert chunk_count(tmp_path) > KILLS, "hours were moved meanwhile"


def test_killed_in_the_middle_of_a_move(fork_server: subprocess.Popen[str], tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    for _ in range(3):
        begin_life(fork_server, "midway", witness)
        wait_for_death(fork_server)
        assert check(tmp_path) >= set(lines(witness, "kept")) > set()
    assert chunk_count(tmp_path) == 0
    process = begin_life(fork_server, "ordinary", witness)
    wait_until(lambda: chunk_count(tmp_path) > 0, "the hours move after all")
    os.kill(process, signal.SIGKILL)
    wait_for_death(fork_server)
    assert check(tmp_path) >= set(lines(witness, "kept"))
