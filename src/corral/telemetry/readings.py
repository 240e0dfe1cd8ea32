"""The latest reading of every GPU and every node.

It keeps no history and has no clock: the caller gives the time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from corral.control.ports import GpuReading, HostReading, Round


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


class LatestReadings:
    """Receives the readings of the sampling. Safe for use by several threads."""

    def __init__(self, *, stale_after_seconds: float) -> None:
        self._stale_after_seconds = stale_after_seconds
        self._lock = threading.Lock()
        self._readings: dict[str, GpuReading] = {}
        self._hosts: dict[str, HostReading] = {}

    def take(self, taken: Round) -> None:
        self.update(taken.gpus, taken.hosts)

    def update(self, readings: Iterable[GpuReading], hosts: Iterable[HostReading] = ()) -> None:
        """Keep the newest reading of each; a slow collector never overwrites a newer reading."""
        with self._lock:
            for reading in readings:
                known = self._readings.get(reading.gpu_id)
                if known is None or self._is_newer(reading.at, known.at):
                    self._readings[reading.gpu_id] = reading
            for host in hosts:
                seen = self._hosts.get(host.node)
                if seen is None or self._is_newer(host.at, seen.at):
                    self._hosts[host.node] = host

    def _is_newer(self, at: float, known_at: float) -> bool:
        """Also true if it is much older: then the clock was set back."""
        return at >= known_at or known_at - at > self._stale_after_seconds

    def get(self, gpu_id: str, now: float) -> LatestReading | None:
        with self._lock:
            reading = self._readings.get(gpu_id)
        return None if reading is None else LatestReading(reading=reading, stale=self._is_stale(reading.at, now))

    def all(self, now: float) -> dict[str, LatestReading]:
        with self._lock:
            readings = list(self._readings.values())
        return {
            reading.gpu_id: LatestReading(reading=reading, stale=self._is_stale(reading.at, now))
            for reading in readings
        }

    def host(self, node: str, now: float) -> LatestHost | None:
        with self._lock:
            reading = self._hosts.get(node)
        return None if reading is None else LatestHost(reading=reading, stale=self._is_stale(reading.at, now))

    def hosts(self, now: float) -> dict[str, LatestHost]:
        with self._lock:
            readings = list(self._hosts.values())
        return {
            reading.node: LatestHost(reading=reading, stale=self._is_stale(reading.at, now)) for reading in readings
        }

    def retain(self, gpu_ids: Iterable[str], nodes: Iterable[str] | None = None) -> None:
        """Forget the GPUs, and if given the nodes, that are gone."""
        kept = set(gpu_ids)
        kept_nodes = None if nodes is None else set(nodes)
        with self._lock:
            for gpu_id in self._readings.keys() - kept:
                del self._readings[gpu_id]
            if kept_nodes is not None:
                for node in self._hosts.keys() - kept_nodes:
                    del self._hosts[node]

    def _is_stale(self, at: float, now: float) -> bool:
        # In both directions: a reading from before the clock was set back is not valid either.
        return abs(now - at) > self._stale_after_seconds
