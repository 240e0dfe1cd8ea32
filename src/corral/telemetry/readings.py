"""The latest reading of every GPU and every node.

It keeps no history and has no clock: the caller gives the time.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from corral.control.fleet.live_fleet import HeldGpus
from corral.control.ports import GpuReading, HostReading, Round
from corral.telemetry.reading_sums import GpuColumns, GpuSums, HostSums, gpu_sums, host_sums


@dataclass(frozen=True, kw_only=True, slots=True)
class LatestReading:
    reading: GpuReading
    #: too old to be used
    stale: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class LatestHost:
    reading: HostReading
    #: too old to be used
    stale: bool


class ReadingsAt(Mapping[str, LatestReading]):
    """The latest reading of every GPU, looked up when it is needed; a later reading replaces an earlier one."""

    def __init__(self, readings: Mapping[str, GpuReading], now: float, stale_after_seconds: float) -> None:
        self._readings = readings
        self._now = now
        self._stale_after_seconds = stale_after_seconds

    def __getitem__(self, gpu_id: str) -> LatestReading:
        reading = self._readings[gpu_id]
        return LatestReading(reading=reading, stale=self.is_stale(reading.at))

    def some(self, gpu_ids: Iterable[str]) -> list[GpuReading | None]:
        """The readings of these GPUs, stale ones too."""
        known = self._readings
        return [known.get(gpu_id) for gpu_id in gpu_ids]

    def is_stale(self, at: float) -> bool:
        # In both directions: a reading from before the clock was set back is not valid either.
        return abs(self._now - at) > self._stale_after_seconds

    def __iter__(self) -> Iterator[str]:
        # The list is made at once, which no other thread interrupts.
        return iter(list(self._readings))

    def __len__(self) -> int:
        return len(self._readings)


class HostsAt(Mapping[str, LatestHost]):
    """The latest reading of every node, likewise."""

    def __init__(self, readings: Mapping[str, HostReading], now: float, stale_after_seconds: float) -> None:
        self._readings = readings
        self._now = now
        self._stale_after_seconds = stale_after_seconds

    def __getitem__(self, node: str) -> LatestHost:
        reading = self._readings[node]
        return LatestHost(reading=reading, stale=abs(self._now - reading.at) > self._stale_after_seconds)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._readings))

    def __len__(self) -> int:
        return len(self._readings)


class LatestReadings:
    """Receives the readings of the sampling. Safe for use by several threads."""

    def __init__(self, *, stale_after_seconds: float) -> None:
        self._stale_after_seconds = stale_after_seconds
        self._lock = threading.Lock()
        self._readings: dict[str, GpuReading] = {}
        self._hosts: dict[str, HostReading] = {}
        self._columns = GpuColumns()

    def take(self, taken: Round) -> None:
        self.update(taken.gpus, taken.hosts)

    def update(self, readings: Iterable[GpuReading], hosts: Iterable[HostReading] = ()) -> None:
        """Keep the newest reading of each; a slow collector never overwrites a newer reading."""
        with self._lock:
            newer: dict[str, GpuReading] = {}
            for reading in readings:
                known = self._readings.get(reading.gpu_id)
                if known is None or self._is_newer(reading.at, known.at):
                    self._readings[reading.gpu_id] = newer[reading.gpu_id] = reading
            self._columns.put(newer.values())
            for host in hosts:
                seen = self._hosts.get(host.node)
                if seen is None or self._is_newer(host.at, seen.at):
                    self._hosts[host.node] = host

    def _is_newer(self, at: float, known_at: float) -> bool:
        """Whether the reading is newer, or much older: then the clock was set back."""
        return at >= known_at or known_at - at > self._stale_after_seconds

    def get(self, gpu_id: str, now: float) -> LatestReading | None:
        with self._lock:
            reading = self._readings.get(gpu_id)
        return None if reading is None else LatestReading(reading=reading, stale=self._is_stale(reading.at, now))

    def all(self, now: float) -> ReadingsAt:
        """The latest readings by GPU, as a view without copies."""
        return ReadingsAt(self._readings, now, self._stale_after_seconds)

    def fresh(self, now: float) -> dict[str, GpuReading]:
        """Copied, for a pass over all GPUs."""
        with self._lock:
            oldest, newest = now - self._stale_after_seconds, now + self._stale_after_seconds
            return {gpu: reading for gpu, reading in self._readings.items() if oldest <= reading.at <= newest}

    def sums(self, held: HeldGpus, now: float, *, idle_below: float, cluster: str | None = None) -> GpuSums:
        """Over the GPUs of one cluster, or of all."""
        with self._lock:
            numbers = self._columns.numbers(held)
        return gpu_sums(numbers, held, now, self._stale_after_seconds, idle_below=idle_below, cluster=cluster)

    def host_sums(self, now: float, nodes: Collection[str] | None = None) -> HostSums:
        """Over the fresh readings of these nodes, or of all."""
        with self._lock:
            hosts = list(self._hosts.values())
        return host_sums(
            host for host in hosts if not self._is_stale(host.at, now) and (nodes is None or host.node in nodes)
        )

    def host(self, node: str, now: float) -> LatestHost | None:
        with self._lock:
            reading = self._hosts.get(node)
        return None if reading is None else LatestHost(reading=reading, stale=self._is_stale(reading.at, now))

    def hosts(self, now: float) -> Mapping[str, LatestHost]:
        """The latest readings by node, as a view without copies."""
        return HostsAt(self._hosts, now, self._stale_after_seconds)

    def retain(self, gpu_ids: Iterable[str], nodes: Iterable[str] | None = None) -> None:
        """Drops the readings of all other GPUs, and if `nodes` are given, of all other nodes."""
        kept = set(gpu_ids)
        kept_nodes = None if nodes is None else set(nodes)
        with self._lock:
            for gpu_id in self._readings.keys() - kept:
                del self._readings[gpu_id]
            self._columns.retain(kept)
            if kept_nodes is not None:
                for node in self._hosts.keys() - kept_nodes:
                    del self._hosts[node]

    def _is_stale(self, at: float, now: float) -> bool:
        # In both directions: a reading from before the clock was set back is not valid either.
        return abs(now - at) > self._stale_after_seconds
