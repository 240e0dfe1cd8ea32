"""Readings of real AMD GPUs.

The same contract as NVML's collector: a value that a device does not report is None, a GPU that was there and is
missing in an answer that has others is reported as lost, and nothing here raises, with or without a driver.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from corral.control.ports import Collected, GpuReading
from corral.telemetry.amd.documents import Identity
from corral.telemetry.amd.sources import Source, SourceFailed, find_source
from corral.telemetry.page import GpuPlace

logger = logging.getLogger(__name__)

#: A tool that was missing or failed is tried again after this time.
RETRY_SECONDS = 60.0


class AmdCollector:
    """Use from one thread. `find` returns the tool to read with."""

    name = "amd"

    def __init__(self, find: Callable[[], Source | None] = find_source) -> None:
        self._find = find
        self._source: Source | None = None
        self._next_try = float("-inf")
        #: every GPU that was ever found
        self._seen: dict[str, Identity] = {}

    def collect(self, at: float) -> Collected:
        if self._source is None and at >= self._next_try:
            self._source, self._next_try = self._find(), at + RETRY_SECONDS
        if self._source is None:
            return Collected()
        try:
            found = self._source.read(at)
        except SourceFailed as error:
            logger.warning("AMD's GPUs are not read, trying again in a minute: %s", error)
            self.close()
            self._next_try = at + RETRY_SECONDS
            return Collected()
        if not found:
            return Collected()
        readings = {identity.gpu_id: reading for identity, reading in found.items()}
        self._seen |= {identity.gpu_id: identity for identity in found}
        lost = [GpuReading(gpu_id=gpu_id, at=at, lost=True) for gpu_id in self._seen.keys() - readings.keys()]
        return Collected(gpus=[*readings.values(), *lost])

    def close(self) -> None:
        source, self._source = self._source, None
        if source is not None:
            source.close()

    def places(self, host: str) -> dict[str, GpuPlace]:
        """Node and index of the GPUs that were read so far."""
        return {
            gpu_id: GpuPlace(index=each.index, model=each.product, host=host)
            for gpu_id, each in dict(self._seen).items()
        }
