"""Reads the fleet at a regular interval and passes the readings to all sinks.

Each collector has a thread of its own, so that a collector that hangs delays no other: only its readings become stale.
One more thread passes the rounds to the sinks, one after the other. If the sinks are too slow, the oldest rounds are
dropped and counted; reading is never delayed. The sinks decide what a reading means.
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

#: A reading that is older than so many intervals is stale.
STALE_INTERVALS = 3
#: Rounds of all collectors together that may wait for the sinks.
MAX_WAITING = 256
_STOP_SECONDS = 5.0
#: timeout for collectors that hang; they are not waited for any longer
_STOP_COLLECTOR_SECONDS = 1.0

#: by node and GPU
NodeUse = Mapping[str, Mapping[str, float]]
Holders = Callable[[], Mapping[str, Sequence[Holder]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Look:
    collector: int
    at: float
    collected: Collected


class Sampling:
    """`holders` is called once per round for the holder of each GPU. Sinks are called in their order, on one thread."""

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
                # Closed by the thread that used it: not every library may be closed by another one.
                at_end=collector.close,
            )
            for number, collector in enumerate(self._collectors)
        ]

    @property
    def dropped(self) -> int:
        """Rounds that were dropped because the sinks were too slow."""
        return self._dropped

    def start(self) -> None:
        self._dispatcher.start()
        for reader in self._readers:
            reader.start()

    def stop(self) -> None:
        """No sink is called after this. Does not wait for a collector that hangs."""
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
        """Read everything once and pass it to the sinks, in the caller's thread; instead of `start`."""
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

    # -------------------------------------------------------------------------------------------- sinks

    def _dispatch(self) -> None:
        with self._news:
            while not self._waiting and not self._dispatcher.is_stopping:
                self._news.wait()
        if not self._dispatcher.is_stopping:
            self._hand_on(self._next_looks())

    def _next_looks(self) -> list[_Look]:
        """The oldest reading of each collector: one round has the readings of all collectors."""
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
        # A slow collector's readings are older: rounds never go back in time, but readings keep their times. A much
        # older time means that the clock was set back.
        if newest > self._last_at or self._last_at - newest > STALE_INTERVALS * self._interval:
            self._last_at = newest
        return Round(at=self._last_at, gpus=tuple(gpus.values()), hosts=tuple(hosts.values()), holders=self._held_now())

    def _held_now(self) -> Mapping[str, Sequence[Holder]]:
        try:
            self._last_holders = self._holders()
        except Exception as error:  # noqa: BLE001 - who held it a moment ago is the best guess
            if not self._dispatcher.is_stopping:
                self._complaints.failed("the holders of GPUs", error)
        else:
            self._complaints.worked("the holders of GPUs")
        return self._last_holders


class _Pace:
    """A step at a regular interval; after a slow step the missed ones are skipped."""

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
    """Logs once that a part fails, and once that it works again: a line every few seconds would hide everything
    else."""

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
    """Sends the measured use of GPUs to the controller, for the placement policy that uses it."""

    def __init__(self, node_of: Callable[[], Mapping[str, str]], send: Callable[[NodeUse], None]) -> None:
        self._node_of = node_of
        self._send = send

    def take(self, taken: Round) -> None:
        loads = loads_of(taken.gpus, self._node_of())
        if loads:
            self._send(loads)


def loads_of(readings: Sequence[GpuReading], node_of: Mapping[str, str]) -> NodeUse:
    """The utilisation of GPUs, by node and GPU."""
    by_node: dict[str, dict[str, float]] = defaultdict(dict)
    for reading in readings:
        if reading.utilization is not None and reading.gpu_id in node_of:
            by_node[node_of[reading.gpu_id]][reading.gpu_id] = reading.utilization
    return dict(by_node)
