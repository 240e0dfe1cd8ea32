"""Records every reading of GPUs and nodes in the history, and once per interval totals of the installation.

Collectors read at different moments, each its part of the fleet. Their readings are collected until one of them reads
again, and written as one moment: few rows, all subjects together. A separate thread writes; if the history is slow or
fails, readings are lost and counted, but sampling is never delayed.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

from corral.control.live.worker import Worker
from corral.control.ports import CLUSTER, Clock, GpuReading, History, HostReading, Metric, Round
from corral.server.fleet.totals import totals_of
from corral.server.monitoring.fleet_metrics import FleetFacts
from corral.server.monitoring.sampling import STALE_INTERVALS
from corral.telemetry.reading_sums import GpuColumns, GpuSums, gpu_sums

log = logging.getLogger("corral.server.monitoring.recorder")

#: A reading is written at the latest so many seconds after it was taken, for any interval.
LONGEST_WAIT_SECONDS = 5.0
#: Moments that may wait for a slow history.
MAX_WAITING = 120
_STATE_SECONDS = 5.0
_STOP_SECONDS = 15.0

Values = dict[Metric, dict[str, float]]


@dataclass(slots=True)
class Batch:
    """The readings of one moment, being collected."""

    begun_at: float
    at: float
    values: Values = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)


class Recorder:
    """`inspect_fleet` asks the controller for `fleet_metrics.read_fleet`; None: only readings are recorded.

    A sink of readings: `take` only collects, `start` runs the thread that writes.
    """

    def __init__(
        self,
        history: History,
        *,
        clock: Clock,
        interval_seconds: float,
        inspect_fleet: Callable[[], Future[FleetFacts]] | None = None,
    ) -> None:
        self._history = history
        self._clock = clock
        self._interval = interval_seconds
        self._inspect_fleet = inspect_fleet
        self._patience = min(interval_seconds, LONGEST_WAIT_SECONDS)
        self._lock = threading.Lock()
        self._batch: Batch | None = None
        self._whole: deque[Batch] = deque()
        self._columns = GpuColumns()
        self._last_at = 0.0
        self._fleet_read_at = 0.0
        self._dropped = 0
        self._problem = ""
        # Readings that arrived during the last write are written at the end.
        pause = self._patience / 2
        self._worker = Worker("recording", self.record, every_seconds=pause, first_after=pause, at_end=self.record)

    @property
    def dropped(self) -> int:
        """Moments that were not recorded because the history failed or was too slow."""
        return self._dropped

    @property
    def problem(self) -> str:
        """Why readings are not recorded at the moment; "" while they are."""
        return self._problem

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        """Write all readings so far."""
        self._worker.stop(_STOP_SECONDS)

    def take(self, taken: Round) -> None:
        names = {reading.gpu_id for reading in taken.gpus} | {f"node:{reading.node}" for reading in taken.hosts}
        if not names:
            return
        with self._lock:
            if self._batch is not None and not self._batch.seen.isdisjoint(names):
                self._close_batch()
            if self._batch is None:
                self._batch = Batch(begun_at=self._clock.now(), at=taken.at)
            self._batch.at = max(self._batch.at, taken.at)
            self._batch.seen |= names
            self._columns.put(taken.gpus)
            for gpu in taken.gpus:
                _add(self._batch.values, gpu.gpu_id, gpu_values(gpu))
            for host in taken.hosts:
                _add(self._batch.values, host.node, host_values(host))

    def record(self) -> None:
        """Write moments that are complete or have waited long enough, and the totals of the fleet when they are due."""
        now = self._clock.now()
        with self._lock:
            # In both directions: a clock that was set back must not delay a batch.
            if self._batch is not None and (
                self._worker.is_stopping or abs(now - self._batch.begun_at) >= self._patience
            ):
                self._close_batch()
            batches = list(self._whole)
            self._whole.clear()
        fleet = self._fleet_values(now)
        if fleet and not batches:
            batches = [Batch(begun_at=now, at=now)]
        if batches:
            batches[-1].values |= fleet
        for batch in batches:
            self._write(batch)

    def _close_batch(self) -> None:
        """Under the lock."""
        assert self._batch is not None
        self._whole.append(self._batch)
        self._batch = None
        if len(self._whole) > MAX_WAITING:
            self._whole.popleft()
            self._dropped += 1
        self._worker.wake()

    def _write(self, batch: Batch) -> None:
        at = batch.at
        if at < self._last_at <= at + STALE_INTERVALS * self._interval:
            # A slow collector delivers readings that are older than others': they get a slightly later time. Much older
            # times come from a clock that was set back; the history handles those.
            at = self._last_at
        try:
            self._history.append(at, batch.values)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the history, reading goes on
            self._dropped += 1
            is_new = not self._problem
            self._problem = str(error) or type(error).__name__
            if is_new:
                log.error("readings are not recorded until the metric history works again: %s", error)
            return
        self._last_at = at
        if self._problem:
            self._problem = ""
            log.warning("the metric history works again; %d moments were not recorded since the start", self._dropped)

    def _fleet_values(self, now: float) -> Values:
        # In both directions, because the clock may be set back.
        if self._inspect_fleet is None or abs(now - self._fleet_read_at) < 0.9 * self._interval:
            return {}
        try:
            fleet = self._inspect_fleet().result(timeout=_STATE_SECONDS)
        except Exception as error:  # noqa: BLE001 - busy or stopping: these numbers are missing for a moment
            log.debug("the totals of the fleet could not be read: %r", error)
            return {}
        self._fleet_read_at = now
        with self._lock:
            numbers = self._columns.numbers(fleet.held)
        return fleet_values(fleet, gpu_sums(numbers, fleet.held, now, STALE_INTERVALS * self._interval), now)


def gpu_values(reading: GpuReading) -> dict[Metric, float]:
    if reading.lost:
        return {}
    known = {
        Metric.GPU_UTILIZATION: reading.utilization,
        Metric.GPU_MEMORY_USED: reading.memory_used_bytes,
        Metric.GPU_TEMPERATURE: reading.temperature_celsius,
        Metric.GPU_POWER: reading.power_watts,
        Metric.GPU_ENERGY: reading.energy_joules,
        Metric.GPU_SM_CLOCK: reading.sm_clock_mhz,
        Metric.GPU_MEMORY_CLOCK: reading.memory_clock_mhz,
        Metric.GPU_THROTTLED: float(bool(reading.throttle_reasons)),
    }
    return {metric: value for metric, value in known.items() if value is not None}


def host_values(reading: HostReading) -> dict[Metric, float]:
    known = {
        Metric.NODE_CPU: reading.cpu,
        Metric.NODE_MEMORY_USED: reading.memory_used_bytes,
        Metric.NODE_DISK_USED: reading.disk_used_bytes,
        Metric.NODE_NETWORK_RECEIVE: reading.network_receive_bytes,
        Metric.NODE_NETWORK_SEND: reading.network_send_bytes,
    }
    return {metric: value for metric, value in known.items() if value is not None}


def fleet_values(fleet: FleetFacts, read: GpuSums, now: float) -> Values:
    """Totals of the installation. A value without readings is absent, not zero. A queue's wait is that of the job that
    has waited longest so far."""
    totals = totals_of(fleet.total, fleet.asked_milli, read)
    cluster: dict[Metric, float | None] = {
        Metric.CLUSTER_ALLOCATION: totals.allocation,
        Metric.CLUSTER_UTILIZATION: totals.utilization,
        Metric.CLUSTER_POWER: totals.power_watts,
        Metric.CLUSTER_TEMPERATURE: totals.temperature_celsius,
        Metric.CLUSTER_GPUS: totals.gpus,
        Metric.CLUSTER_GPUS_HELD: totals.held,
        Metric.CLUSTER_RUNNING: sum(queue.running for queue in fleet.queues.values()),
        Metric.CLUSTER_QUEUED: sum(queue.length for queue in fleet.queues.values()),
    }
    values: Values = {metric: {CLUSTER: value} for metric, value in cluster.items() if value is not None}
    values[Metric.QUEUE_LENGTH] = {name: queue.length for name, queue in fleet.queues.items()}
    values[Metric.QUEUE_WAIT] = {
        name: 0.0 if queue.oldest_queued_at is None else max(0.0, now - queue.oldest_queued_at)
        for name, queue in fleet.queues.items()
    }
    return values


def _add(values: Values, subject: str, readings: Mapping[Metric, float]) -> None:
    for metric, value in readings.items():
        values.setdefault(metric, {})[subject] = value
