"""Recorders to be killed.

For every line of input `MODE MOMENT` a process is forked that keeps readings, from that moment on, in the directory
argv[1]; its number is printed, and `dead` when it has been killed.

Forked, because a new interpreter for every death would take most of the time. Readings go the real way, through the
recorder; time runs an hour in a second, so that hours end and move into chunks all the while. In the mode `midway` the
process kills itself inside the transaction that moves an hour, when its chunks are written and the head still has it.

The file `witness` says which rounds were taken, and which the history has acknowledged.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from corral.control.ports import GpuReading, HostReading, Metric, Round
from corral.server.monitoring.recorder import Recorder
from corral.telemetry.history import EmbeddedHistory, compaction

GPUS = 24
SPEED = 3600


class FastClock:
    def __init__(self, begin: float) -> None:
        self._begin = begin
        self._started = time.monotonic()

    def now(self) -> float:
        return self._begin + (time.monotonic() - self._started) * SPEED

    def monotonic(self) -> float:
        return self.now()


class Witness:
    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def saw(self, what: str, at: float) -> None:
        os.write(self._file, f"{what} {round(at * 1000)}\n".encode())


class WitnessedHistory(EmbeddedHistory):
    witness: Witness

    def append(self, at: float, values: Mapping[Metric, Mapping[str, float]]) -> None:
        super().append(at, values)
        self.witness.saw("kept", at)


def reading_of(gpu: int, at_ms: int) -> float:
    """The reading of a GPU at a time, so that the check can compute it again."""
    return (at_ms // 1000 * 7 + gpu * 13) % 101 / 100


def live(home: Path, mode: str, begin: float) -> None:
    if mode == "midway":
        compaction.write_rows = _write_and_die
    clock = FastClock(begin)
    history = WitnessedHistory(
        home / "history.db", raw_seconds=90 * 86_400, minute_seconds=90 * 86_400, hour_seconds=365 * 86_400, clock=clock
    )
    history.witness = witness = Witness(home / "witness")
    recorder = Recorder(history, clock=clock, interval_seconds=5.0)
    recorder.start()
    threading.Thread(target=_tend_forever, args=(history,), daemon=True).start()
    while True:
        at = round(clock.now(), 3)
        witness.saw("taken", at)
        recorder.take(_round(at))
        time.sleep(0.005)


def _round(at: float) -> Round:
    gpus = [
        GpuReading(gpu_id=f"g{gpu}", at=at, utilization=reading_of(gpu, round(at * 1000)), temperature_celsius=50.0)
        for gpu in range(GPUS)
    ]
    return Round(at=at, gpus=gpus, hosts=[HostReading(node="n1", at=at, cpu=0.5)])


def _tend_forever(history: EmbeddedHistory) -> None:
    while True:
        history.tend()


def _write_and_die(connection: sqlite3.Connection, rows: compaction.Rows) -> None:
    connection.executemany("INSERT INTO chunk VALUES (?, ?, ?, ?, ?)", rows[:1])
    os.kill(os.getpid(), signal.SIGKILL)


def main(directory: str) -> None:
    for line in sys.stdin:
        mode, begin = line.split()
        process = os.fork()
        if process == 0:
            live(Path(directory), mode, float(begin))
        sys.stdout.write(f"{process}\n")
        sys.stdout.flush()
        os.waitpid(process, 0)
        sys.stdout.write("dead\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
