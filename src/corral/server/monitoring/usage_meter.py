"""Measures the use of every attempt from readings, and stores it every few seconds.

The use is a growing sum per attempt, so a failed write is repaired by the next one, and after a restart counting
continues from the stored sum; only the few seconds that were not written yet are lost.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from corral.control.live.controller import Controller, ControllerStopped
from corral.control.monitoring import attempt_usage
from corral.control.ports import GpuReading, Holder, Round, Store
from corral.core.monitoring.attempt_usage import (
    IDLE_UTILIZATION,
    NOTHING_MEASURED,
    Measured,
    Sample,
    Share,
    add,
    countable_seconds,
)

log = logging.getLogger("corral.server.monitoring.usage_meter")

#: A reading counts for the time since the previous one, if that was at most so many intervals ago.
LONGEST_GAP_INTERVALS = 3
FLUSH_SECONDS = 15.0
#: An attempt without readings may come back, and then its sum must continue to grow: it is kept for so long.
REMEMBER_SECONDS = 600.0
_STOP_SECONDS = 10.0


class UsageMeter:
    """Implements `corral.control.ports.ReadingSink`."""

    def __init__(
        self,
        *,
        controller: Controller,
        store: Store,
        now: float,
        interval_seconds: float,
        idle_below: float = IDLE_UTILIZATION,
        flush_seconds: float = FLUSH_SECONDS,
    ) -> None:
        """Created before the first reading, at `now`; counting continues from the stored sums."""
        self._controller = controller
        self._idle_below = idle_below
        self._longest_gap = LONGEST_GAP_INTERVALS * interval_seconds
        self._flush_seconds = flush_seconds
        self._flushed_at = 0.0
        self._before: dict[str, Sample] = {}
        #: the holder of each GPU at its last reading
        self._holders_before: dict[str, frozenset[str]] = {}
        with store.read() as tx:
            self._measured = {record.attempt_id: record.measured for record in tx.usage.open()}
        self._held_until = dict.fromkeys(self._measured, now)
        self._held: set[str] = set()
        #: sums that grew since they were last sent; shared with the thread that handles a failed write
        self._unsaved: dict[str, Measured] = {}
        self._lock = threading.Lock()

    def take(self, taken: Round) -> None:
        for reading in taken.gpus:
            self._count(reading, taken)
        held = {holder.attempt_id for holders in taken.holders.values() for holder in holders}
        over = self._held - held
        self._held = held
        # In both directions, because the clock may be set back.
        if over or abs(taken.at - self._flushed_at) >= self._flush_seconds:
            self._flushed_at = taken.at
            self._flush()
            self._forget(taken.at)

    def stop(self) -> None:
        """Store the rest. `take` must not be called afterwards."""
        answer = self._flush()
        if answer is not None:
            try:
                answer.result(_STOP_SECONDS)
            except Exception as error:  # noqa: BLE001 - the server stops; a few seconds of usage are not worth more
                log.warning("the last use of jobs could not be stored: %s", error)

    def _count(self, reading: GpuReading, taken: Round) -> None:
        holders = taken.holders.get(reading.gpu_id, ())
        before = self._before.get(reading.gpu_id)
        if before and before.at - reading.at > self._longest_gap:
            before = None  # the clock was set back: the elapsed time is unknown
        if reading.lost or taken.at - reading.at > self._longest_gap or (before and reading.at <= before.at):
            return
        sample = attempt_usage.sample_of(reading)
        held_before = self._holders_before.get(reading.gpu_id, frozenset())
        held_milli = sum(holder.gpu_milli for holder in holders)
        for holder in holders:
            # A new attempt has held the GPU since some moment after the previous reading: at the latest since its
            # start.
            since = before.at if before and holder.attempt_id in held_before else _known_since(holder, reading.at)
            seconds = countable_seconds(before, sample, self._longest_gap, since)
            if before is not None and seconds > 0:
                share = Share(gpu_milli=holder.gpu_milli, held_milli=held_milli)
                self._add(holder.attempt_id, sample, before, share, seconds)
        self._before[reading.gpu_id] = sample
        self._holders_before[reading.gpu_id] = frozenset(holder.attempt_id for holder in holders)

    def _add(self, attempt: str, sample: Sample, before: Sample, share: Share, seconds: float) -> None:
        so_far = self._measured.get(attempt, NOTHING_MEASURED)
        measured = add(so_far, sample, before, share, seconds, self._idle_below)
        self._measured[attempt] = measured
        self._held_until[attempt] = sample.at
        with self._lock:
            self._unsaved[attempt] = measured

    def _flush(self) -> Future[None] | None:
        with self._lock:
            saving, self._unsaved = self._unsaved, {}
        if not saving:
            return None
        answer = self._controller.execute(attempt_usage.save_measured, saving)
        answer.add_done_callback(lambda done: self._note_saved(done, saving))
        return answer

    def _forget(self, now: float) -> None:
        for attempt, until in list(self._held_until.items()):
            if attempt not in self._held and until < now - REMEMBER_SECONDS:
                del self._held_until[attempt]
                self._measured.pop(attempt, None)

    def _note_saved(self, answer: Future[Any], saving: Mapping[str, Measured]) -> None:
        error = answer.exception()
        if error is None:
            return
        if not isinstance(error, ControllerStopped):
            log.warning("the use of jobs could not be stored, and is stored again: %s", error)
        with self._lock:
            # Sums that have grown meanwhile include it.
            self._unsaved = {**saving, **self._unsaved}


def _known_since(holder: Holder, at: float) -> float:
    return at if holder.running_since is None else holder.running_since
