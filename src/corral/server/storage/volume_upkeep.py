"""Reconciles volumes with their rows: creates and removes directories, applies sizes, and measures use.

The rows are the desired state; the driver reports the actual state. Every round reconciles both, and every step is
idempotent, so after a crash the next round continues. A directory without a row is logged and never removed: it may be
the only copy of a user's data.

Measuring has threads of its own, which owners share fairly, since it may take long. Volumes that running jobs mount are
measured every minute, once more when the last of these jobs has ended, and otherwise rarely; a large volume less often
than a small one. Only changes are written.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import wait
from dataclasses import dataclass, field
from typing import Any

from corral.control.live.controller import Controller
from corral.control.live.state import State
from corral.control.live.worker import Worker
from corral.control.ports import LaunchOrder, StorageKind, Store, VolumeDriver, VolumeUnavailable, VolumeUse
from corral.control.records import VolumeRecord, VolumeState
from corral.control.storage import volumes
from corral.core.storage.volumes import VolumeType
from corral.stores.storage.fair_pool import FairPool, Steps, Task

log = logging.getLogger("corral.server.storage.volume_upkeep")

LOOK_SECONDS = 1.0
#: How often finished rows are read again: their sizes may have changed.
REREAD_SECONDS = 5.0
#: A failed step is tried again after this time.
AGAIN_SECONDS = 30.0
MEASURE_SECONDS = 60.0
MEASURE_IDLE_SECONDS = 900.0
#: How soon a volume is measured whose last job has just ended.
MEASURE_LEFT_SECONDS = 2.0
#: Maximum share of the time for measuring one volume.
_MEASURE_PART = 0.05
#: Volumes that are measured at the same time, each of another owner, and how long a round waits for them.
_MEASURERS = 4
_VOLUMES_PER_USER = 1_000_000
_MEASURE_WAIT_SECONDS = 5.0
_ASK_SECONDS = 10.0
#: Types of volumes that are directories here.
_OURS = (VolumeType.BLOCK, VolumeType.FILESYSTEM)


@dataclass(kw_only=True, slots=True)
class _Known:
    """State of volumes between rounds."""

    #: the sizes that were applied
    sizes: dict[str, int] = field(default_factory=dict)
    #: volumes with a failed step, and the time of the next attempt
    again_at: dict[str, float] = field(default_factory=dict)
    measured_at: dict[str, float] = field(default_factory=dict)
    #: how long measuring took
    cost_seconds: dict[str, float] = field(default_factory=dict)
    #: volumes mounted in the last round, and volumes unmounted since they were measured
    mounted: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)


class VolumeUpkeep:
    def __init__(
        self,
        *,
        controller: Controller,
        store: Store,
        driver: VolumeDriver,
        clusters: Collection[str],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._controller = controller
        self._store = store
        self.driver = driver
        self._clusters = frozenset(clusters)
        self._monotonic = monotonic
        self._known = _Known()
        self._lock = threading.Lock()
        self._launched: set[str] = set()
        self._reread_at = 0.0
        #: a volume with millions of files delays no other owner's volumes
        self._pool = FairPool("measuring", threads=_MEASURERS, per_user=1, waiting_per_user=_VOLUMES_PER_USER)
        #: the previous use, and the task
        self._measuring: dict[str, tuple[int | None, Task[VolumeUse]]] = {}
        self._workers = [
            Worker(name, work, every_seconds=LOOK_SECONDS, first_after=LOOK_SECONDS)
            for name, work in (("storage", self.look), ("storage-measuring", self.measure))
        ]

    def start(self) -> None:
        self._reconcile()
        for worker in self._workers:
            worker.start()

    def stop(self) -> None:
        for worker in self._workers:
            worker.ask_to_stop()
        self._pool.close()
        for worker in self._workers:
            worker.stop()

    def changed(self, volume_id: str) -> None:
        """Files of a volume have changed: measure it soon."""
        self._known.measured_at.pop(volume_id, None)

    def prepare(self, cluster: str, order: LaunchOrder) -> LaunchOrder:
        """Launch step: note the volumes that the job can write, so that they are measured even if the job ends before
        the next measurement."""
        volume_ids = {item.id for item in order.storage if item.kind is StorageKind.VOLUME and not item.read_only}
        with self._lock:
            self._launched |= volume_ids
        return order

    # -------------------------------------------------------------------------------------------- making and removing

    def look(self) -> None:
        """One round: reconcile volumes that differ from their rows."""
        now = self._monotonic()
        if not self._controller.inspect(_has_unfinished).result(_ASK_SECONDS) and now < self._reread_at:
            return
        self._reread_at = now + REREAD_SECONDS
        for row in self._rows():
            if self._known.again_at.get(row.id, 0.0) <= now:
                self._bring_about(row, now)

    def _bring_about(self, row: VolumeRecord, now: float) -> None:
        try:
            if row.state is VolumeState.DELETING:
                self.driver.delete(row.id)
                self._report(volumes.note_gone, row.id)
                self._forget(row.id)
            elif row.state in (VolumeState.CREATING, VolumeState.FAILED):
                self.driver.create(row.id, row.size_bytes, row.owner)
                self._known.sizes[row.id] = row.size_bytes
                self._report(volumes.note_made, row.id)
            elif self._known.sizes.get(row.id) != row.size_bytes:
                self.driver.resize(row.id, row.size_bytes)
                self._known.sizes[row.id] = row.size_bytes
        except VolumeUnavailable as error:
            log.warning("%s", error)
            self._known.again_at[row.id] = now + AGAIN_SECONDS
            self._report(volumes.note_failed, row.id, str(error))

    def _reconcile(self) -> None:
        """Checks directories at the start: those without a row are logged; rounds finish interrupted steps."""
        rows = {row.id: row for row in self._rows()}
        there = self.driver.volumes()
        unknown = sorted(there - rows.keys())
        if unknown:
            log.warning(
                "%d volumes have files and no row, so no job can mount them: %s. They are not changed; an operator "
                "checks them and removes them by hand",
                len(unknown),
                ", ".join(unknown[:10]),
            )
        for row in rows.values():
            if row.state is VolumeState.READY and row.id not in there:
                log.error("volume %s of %s has lost its directory: an empty one is made", row.id, row.owner)
                try:
                    self.driver.create(row.id, row.size_bytes, row.owner)
                except VolumeUnavailable as error:
                    log.error("%s", error)

    # -------------------------------------------------------------------------------------------- measuring

    def measure(self) -> None:
        """Measure due volumes one after the other; changes are written together."""
        # Taken before the state is read: a job that was launched before and is not in the state has ended.
        with self._lock:
            launched, self._launched = self._launched, set()
        mounted = self._controller.inspect(_mounted).result(_ASK_SECONDS)
        left = (self._known.mounted | launched) - mounted
        # Read here: a disk that does not answer must not block the controller.
        open_to_jobs = [volume_id for volume_id in sorted(left) if self._is_open_to_jobs(volume_id)]
        if open_to_jobs:
            self._controller.inspect(_close_to_jobs, self.driver, open_to_jobs).result(_ASK_SECONDS)
        self._known.left |= left
        self._known.mounted = mounted
        rows = self._rows() if self._is_any_due(mounted) else []
        for row in rows:
            if row.state is VolumeState.READY and self._is_due(row.id, row.id in mounted):
                self._begin_measuring(row)
        changed = self._measurements()
        if changed:
            self._report(volumes.note_measured, changed)

    def _is_open_to_jobs(self, volume_id: str) -> bool:
        try:
            return self.driver.is_open_to_jobs(volume_id)
        except VolumeUnavailable as error:
            log.warning("%s", error)
            return False

    def _is_any_due(self, mounted: set[str]) -> bool:
        ids = self._controller.inspect(_ready_ids, self._clusters).result(_ASK_SECONDS)
        return any(self._is_due(volume_id, volume_id in mounted) for volume_id in ids)

    def _is_due(self, volume_id: str, is_mounted: bool) -> bool:
        measured_at = self._known.measured_at.get(volume_id)
        if measured_at is None:
            return True
        pause = MEASURE_SECONDS if is_mounted else MEASURE_IDLE_SECONDS
        if volume_id in self._known.left:
            pause = MEASURE_LEFT_SECONDS
        pause = max(pause, self._known.cost_seconds.get(volume_id, 0.0) / _MEASURE_PART)
        return self._monotonic() - measured_at >= pause

    def _begin_measuring(self, row: VolumeRecord) -> None:
        if row.id in self._measuring:
            return
        # Before measuring: changes during the measurement cause another one.
        self._known.measured_at[row.id] = self._monotonic()
        self._known.left.discard(row.id)
        self._measuring[row.id] = (row.used_bytes, self._pool.submit(row.owner, self._usage(row.id)))

    def _usage(self, volume_id: str) -> Steps[VolumeUse]:
        yield from ()
        began = self._monotonic()
        use = self.driver.usage(volume_id)
        self._known.cost_seconds[volume_id] = self._monotonic() - began
        return use

    def _measurements(self) -> dict[str, VolumeUse]:
        """Changes of measured volumes. A measurement that takes long is collected in a later round."""
        wait([task.future for _, task in self._measuring.values()], timeout=_MEASURE_WAIT_SECONDS)
        changed: dict[str, VolumeUse] = {}
        for volume_id, (before, task) in list(self._measuring.items()):
            if not task.future.done():
                continue
            del self._measuring[volume_id]
            error = task.future.exception()
            if isinstance(error, VolumeUnavailable):
                log.warning("%s", error)
            elif error is not None:
                log.error("volume %s could not be measured: %r", volume_id, error)
            elif task.future.result().used_bytes != before:
                changed[volume_id] = task.future.result()
        return changed

    # -------------------------------------------------------------------------------------------- helpers

    def _rows(self) -> list[VolumeRecord]:
        with self._store.read() as tables:
            found = tables.volumes.all()
        return [row for row in found if row.type in _OURS and row.cluster in self._clusters]

    def _report(self, use_case: Callable[..., None], *args: Any) -> None:
        """Waits for the controller: the next round must see the changes."""
        self._controller.execute(use_case, *args).result(_ASK_SECONDS)

    def _forget(self, volume_id: str) -> None:
        known = self._known
        for remembered in (known.sizes, known.again_at, known.measured_at, known.cost_seconds):
            remembered.pop(volume_id, None)


def _has_unfinished(state: State) -> bool:
    return any(volume.not_ready for volume in state.snapshot.volumes.values())


def _ready_ids(state: State, clusters: Collection[str]) -> list[str]:
    found = [volume for volume in state.snapshot.volumes.values() if not volume.not_ready]
    return [volume.id for volume in found if volume.cluster in clusters and volume.type in _OURS]


def _close_to_jobs(state: State, driver: VolumeDriver, volume_ids: list[str]) -> None:
    """Runs on the controller's thread, where no job can start with one of them at the same time."""
    held = _mounted(state)
    for volume_id in volume_ids:
        if volume_id not in held:
            try:
                driver.close_to_jobs(volume_id)
            except VolumeUnavailable as error:
                log.warning("%s", error)


def _mounted(state: State) -> set[str]:
    """Volumes that jobs hold now."""
    return set(state.snapshot.mounted.volumes())
