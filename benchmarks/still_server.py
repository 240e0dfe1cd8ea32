"""A server over a large fleet that stands still: `python -m benchmarks.still_server up`, options as of `corral up`.

Everything is real except the engine of the local cluster: it reports the nodes and the running attempts that the file
`FLEET` in the server's home lists, and starts nothing. A line on the standard input gives every GPU and every node a
fresh reading.
"""

from __future__ import annotations

import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from corral.control.ports import (
    AttemptPhase,
    AttemptStatus,
    Engine,
    GpuReading,
    HostReading,
    LaunchOrder,
    LogChunk,
    Observation,
)
from corral.core.model import Node
from corral.engines import registry
from corral.engines.engine_setup import EngineSetup
from corral.server.http.context import ServerContext
from corral.server.wiring import run

#: the pickled `Still` of a home
FLEET = "still-fleet.pickle"


@dataclass(frozen=True, kw_only=True, slots=True)
class Still:
    nodes: tuple[Node, ...]
    #: attempts that run for ever
    running: tuple[str, ...]
    since: float


class StillEngine(Engine):
    def __init__(self, still: Still) -> None:
        statuses = (
            AttemptStatus(attempt_id=attempt, phase=AttemptPhase.RUNNING, at=still.since) for attempt in still.running
        )
        self._observation = Observation(nodes=still.nodes, attempts=tuple(statuses))

    def observe(self) -> Observation:
        return self._observation

    def launch(self, order: LaunchOrder) -> None: ...

    def stop(self, attempt_id: str, grace_seconds: float) -> None: ...

    def logs(self, attempt_id: str, rank: int, offset: int, limit: int) -> LogChunk:
        return LogChunk(data=b"", next_offset=0, at_end=True)

    def forget(self, attempt_ids: Sequence[str], *, delete_logs: bool = False) -> None: ...

    def has(self, attempt_id: str) -> bool:
        return False

    def withhold(self, node: str, reason: str) -> None: ...

    def release(self, node: str, *, force: bool) -> None: ...

    def subscribe(self, sink: Callable[[AttemptStatus], None]) -> None: ...

    def close(self) -> None: ...


def open_engine(setup: EngineSetup) -> Engine:
    return StillEngine(pickle.loads((setup.home / FLEET).read_bytes()))


def _read_fleet(context: ServerContext) -> None:
    """Fresh readings for every line on the standard input; answers with a line when they are there."""
    still: Still = pickle.loads((context.settings.home / FLEET).read_bytes())
    for _ in sys.stdin:
        at = time.time()
        gpus = [
            GpuReading(
                gpu_id=gpu.id,
                at=at,
                utilization=(number % 100) / 100,
                sm_activity=0.5,
                memory_used_bytes=10 << 30,
                memory_total_bytes=80 << 30,
                temperature_celsius=40.0 + number % 40,
                power_watts=300.0,
                power_limit_watts=400.0,
                energy_joules=1e6,
                sm_clock_mhz=1400.0,
                memory_clock_mhz=1600.0,
                ecc_corrected=0,
                ecc_uncorrected=0,
                remapped_rows=0,
            )
            for number, gpu in enumerate(gpu for node in still.nodes for gpu in node.gpus)
        ]
        hosts = [
            HostReading(node=node.id, at=at, cpu=0.4, memory_used_bytes=1 << 38, memory_total_bytes=1 << 40)
            for node in still.nodes
        ]
        context.readings.update(gpus, hosts)
        sys.stdout.write("read\n")
        sys.stdout.flush()


def main() -> None:
    assembled = run.assembled

    @contextmanager
    def with_readings(*args: Any, **values: Any) -> Iterator[Any]:
        with assembled(*args, **values) as assembly:
            threading.Thread(target=_read_fleet, args=(assembly.context,), daemon=True).start()
            yield assembly

    run.assembled = with_readings
    registry.ENGINES = {**registry.ENGINES, "local": "benchmarks.still_server"}
    from corral.cli.main import main as command_line

    command_line()


if __name__ == "__main__":
    main()
