"""The latest reading of every GPU, for whoever wants to show or judge it.

It keeps no history and has no clock: the caller says what time it is.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from corral.control.ports import GpuReading


@dataclass(frozen=True, kw_only=True, slots=True)
class LatestReading:
    reading: GpuReading
    #: too old to be believed
    stale: bool


class LatestReadings:
    """Safe for use by several threads."""

    def __init__(self, *, stale_after_seconds: float) -> None:
        self._stale_after_seconds = stale_after_seconds
        self._lock = threading.Lock()
        self._readings: dict[str, GpuReading] = {}

    def update(self, readings: Iterable[GpuReading]) -> None:
        """Keep the newest of each GPU; a slow collector never overwrites a newer reading."""
        with self._lock:
            for reading in readings:
                known = self._readings.get(reading.gpu_id)
                if known is None or known.at <= reading.at:
                    self._readings[reading.gpu_id] = reading

    def get(self, gpu_id: str, now: float) -> LatestReading | None:
        with self._lock:
            reading = self._readings.get(gpu_id)
        return None if reading is None else self._judged(reading, now)

    def all(self, now: float) -> dict[str, LatestReading]:
        with self._lock:
            readings = list(self._readings.values())
        return {reading.gpu_id: self._judged(reading, now) for reading in readings}

    def retain(self, gpu_ids: Iterable[str]) -> None:
        """Drop the GPUs that are gone."""
        kept = set(gpu_ids)
        with self._lock:
            for gpu_id in self._readings.keys() - kept:
                del self._readings[gpu_id]

    def _judged(self, reading: GpuReading, now: float) -> LatestReading:
        return LatestReading(reading=reading, stale=now - reading.at > self._stale_after_seconds)
