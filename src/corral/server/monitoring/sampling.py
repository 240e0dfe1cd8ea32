"""Reading the fleet at a regular pace, and handing what was read to everybody who wants it.

Each collector has a thread of its own, so that one that hangs holds up nobody: what it should have read grows stale.
One more thread hands the rounds to the sinks, one after the other. Whoever is too slow loses the oldest rounds, which
are counted, and never holds up the reading. What a reading means is decided by the sinks.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from corral.control.live.worker import Worker
from corral.control.ports import Clock, Collected, Collector, GpuReading, Holder, HostReading, ReadingSink, Round

log = logging.getLogger("corral.server.monitoring.sampling")

#: A reading that is older than so many intervals says nothing about now.
STALE_INTERVALS = 3
#: How many looks of all collectors together may wait for the sinks.
MAX_WAITING = 256
_STOP_SECONDS = 5.0
#: for collectors that hang: they are left behind
_STOP_COLLECTOR_SECONDS = 1.0

Holders = Callable[[], Mapping[str, Sequence[Holder]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Look:
    collector: int
    at: float
    collected: Collected


class Sampling:
    """`holders` is asked once per round who holds which GPU. Sinks are called in their order, on one thread."""

    def __init__(
        self,
        collectors: Sequence[Collector],
        sinks: Sequence[ReadingSink],
        *,
        holders: Holders,
        clock: Clock,
        interval_seconds: float,
    ) -> None:
        self._collectors = tuple(collectors)
        self._sinks = tuple(sinks)
        self._holders = holders
        self._clock = clock
        self._interval = interval_seconds
        self._last_holders: Mapping[str, Sequence[Holder]] = {}
        self._last_at = 0.0
        self._waiting: deque[_Look] = deque()
        self._news = threading.Condition()
        self._dropped = 0
        self._complaints = _Complaints()
        self._dispatcher = Worker("sampling", self._dispatch, every_seconds=0.0, interrupt=self._notify)
        self._readers = [
            Worker(
                f"read-{collector.name}",
                _Pace(partial(self._look, number, collector), interval_seconds).step,
                every_seconds=interval_seconds,
                # By the thread that used it: not every library may be left by another.
                at_end=collector.close,
            )
            for number, collector in enumerate(self._collectors)
        ]

    @property
    def dropped(self) -> int:
        """Looks that no sink ever saw because the sinks were too slow."""
        return self._dropped

    def start(self) -> None:
        self._dispatcher.start()
        for reader in self._readers:
            reader.start()

    def stop(self) -> None:
        """No sink is called after this. A collector that hangs is left to itself."""
        for reader in self._readers:
            reader.ask_to_stop()
        self._dispatcher.stop(_STOP_SECONDS)
        deadline = time.monotonic() + _STOP_COLLECTOR_SECONDS
        for reader in self._readers:
            reader.stop(max(0.0, deadline - time.monotonic()))

    def _notify(self) -> None:
        with self._news:
            self._news.notify_all()

    def sample(self) -> None:
        """Read everything once and hand it on, in the caller's thread: instead of `start`, not beside it."""
        for number, collector in enumerate(self._collectors):
            self._look(number, collector)
        while looks := self._next_looks():
            self._hand_on(looks)

    # -------------------------------------------------------------------------------------------- reading

    def _look(self, number: int, collector: Collector) -> None:
        at = self._clock.now()
        try:
            collected = collector.collect(at)
        except Exception as error:  # noqa: BLE001 - a collector must not raise; if one does, the others go on
            self._complaints.failed(f"collector {collector.name}", error)
            return
        self._complaints.worked(f"collector {collector.name}")
        with self._news:
            self._waiting.append(_Look(collector=number, at=at, collected=collected))
            if len(self._waiting) > MAX_WAITING:
                self._waiting.popleft()
                self._dropped += 1
            self._news.notify()

    # -------------------------------------------------------------------------------------------- handing on

    def _dispatch(self) -> None:
        with self._news:
            while not self._waiting and not self._dispatcher.is_stopping:
                self._news.wait()
        if not self._dispatcher.is_stopping:
            self._hand_on(self._next_looks())

    def _next_looks(self) -> list[_Look]:
        """The oldest of each collector: with many collectors one round serves them all."""
        with self._news:
            found: dict[int, _Look] = {}
            for look in self._waiting:
                found.setdefault(look.collector, look)
            taken = list(found.values())
            for look in taken:
                self._waiting.remove(look)
        return taken

    def _hand_on(self, looks: Sequence[_Look]) -> None:
        taken = self._round(looks)
        for number, sink in enumerate(self._sinks, 1):
            if self._dispatcher.is_stopping:
                return
            name = f"sink {number} ({type(sink).__name__})"
            try:
                sink.take(taken)
            except Exception as error:  # noqa: BLE001 - one that fails must not cost the others their readings
                self._complaints.failed(name, error)
            else:
                self._complaints.worked(name)

    def _round(self, looks: Sequence[_Look]) -> Round:
        gpus: dict[str, GpuReading] = {}
        hosts: dict[str, HostReading] = {}
        for look in looks:
            for reading in look.collected.gpus:
                known = gpus.get(reading.gpu_id)
                if known is None or known.at <= reading.at:
                    gpus[reading.gpu_id] = reading
            for host in look.collected.hosts:
                seen = hosts.get(host.node)
                if seen is None or seen.at <= host.at:
                    hosts[host.node] = host
        newest = max(look.at for look in looks)
        # A slow collector comes with an older time: rounds never go back in time, its readings keep theirs. Unless it
        # comes from so long ago that the clock was set back.
        if newest > self._last_at or self._last_at - newest > STALE_INTERVALS * self._interval:
            self._last_at = newest
        return Round(at=self._last_at, gpus=tuple(gpus.values()), hosts=tuple(hosts.values()), holders=self._held_now())

    def _held_now(self) -> Mapping[str, Sequence[Holder]]:
        try:
            self._last_holders = self._holders()
        except Exception as error:  # noqa: BLE001 - who held it a moment ago is the best guess
            if not self._dispatcher.is_stopping:
                self._complaints.failed("who holds which GPU", error)
        else:
            self._complaints.worked("who holds which GPU")
        return self._last_holders


class _Pace:
    """A step at a steady pace; one that took too long makes the next ones fall out, not pile up."""

    def __init__(self, look: Callable[[], None], interval_seconds: float) -> None:
        self._take = look
        self._interval = interval_seconds
        self._due = time.monotonic()

    def step(self) -> float:
        self._take()
        now = time.monotonic()
        self._due = max(self._due + self._interval, now)
        return self._due - now


class _Complaints:
    """Says once that something fails, and once that it works again: every few seconds would bury everything else."""

    def __init__(self) -> None:
        self._failing: set[str] = set()
        self._lock = threading.Lock()

    def failed(self, name: str, error: Exception) -> None:
        with self._lock:
            is_new = name not in self._failing
            self._failing.add(name)
        if is_new:
            log.error("%s fails: %s", name, error, exc_info=error)

    def worked(self, name: str) -> None:
        with self._lock:
            if name not in self._failing:
                return
            self._failing.remove(name)
        log.info("%s works again", name)


class NodeLoads:
    """Tells the measured load of nodes, for the placement policy that goes by it."""

    def __init__(self, node_of: Callable[[], Mapping[str, str]], tell: Callable[[Mapping[str, float]], None]) -> None:
        self._node_of = node_of
        self._tell = tell

    def take(self, taken: Round) -> None:
        loads = loads_of(taken.gpus, self._node_of())
        if loads:
            self._tell(loads)


def loads_of(readings: Sequence[GpuReading], node_of: Mapping[str, str]) -> dict[str, float]:
    """The load of each node: the mean use of its GPUs."""
    by_node: dict[str, list[float]] = defaultdict(list)
    for reading in readings:
        if reading.utilization is not None and reading.gpu_id in node_of:
            by_node[node_of[reading.gpu_id]].append(reading.utilization)
    return {node: sum(values) / len(values) for node, values in by_node.items()}
