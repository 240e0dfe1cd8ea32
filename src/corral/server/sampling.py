"""A thread that reads the GPUs at a regular pace."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from corral.control.ports import Clock, Collector, GpuReading
from corral.telemetry.readings import LatestReadings

log = logging.getLogger("corral.server.sampling")

#: A reading that is older than so many intervals says nothing about now.
STALE_INTERVALS = 3


class Sampler:
    """`on_sample` is called, on the sampler's thread, with what was just read."""

    def __init__(
        self,
        collector: Collector,
        readings: LatestReadings,
        *,
        clock: Clock,
        interval_seconds: float,
        on_sample: Callable[[Sequence[GpuReading]], None] = lambda readings: None,
    ) -> None:
        self._collector = collector
        self._readings = readings
        self._clock = clock
        self._interval = interval_seconds
        self._on_sample = on_sample
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampling", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)

    def sample(self) -> None:
        """Read once."""
        taken = self._collector.collect(self._clock.now())
        self._readings.update(taken)
        self._on_sample(taken)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.sample()
            except Exception:
                # A collector must not raise; if one does, the fleet must still be scheduled.
                log.exception("reading the GPUs failed")
            self._stopping.wait(self._interval)


def loads_of(readings: Sequence[GpuReading], node_of: Mapping[str, str]) -> dict[str, float]:
    """The load of each node: the mean use of its GPUs."""
    by_node: dict[str, list[float]] = defaultdict(list)
    for reading in readings:
        if reading.utilization is not None and reading.gpu_id in node_of:
            by_node[node_of[reading.gpu_id]].append(reading.utilization)
    return {node: sum(values) / len(values) for node, values in by_node.items()}
