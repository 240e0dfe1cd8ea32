"""Removes ended jobs with their files, and events, beyond the retention limits.

This happens in the background and in small batches: a turn of the controller deletes some rows, and the worker removes
the files of those jobs outside of every transaction. After a crash, the store still lists the files to be removed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from corral.control.live.controller import Controller
from corral.control.live.worker import Worker
from corral.control.ports import Clock, Engine, OnThisDisk, Store
from corral.control.records import JobRecord
from corral.control.system import request_keys, retention
from corral.control.system.retention import RetentionRules
from corral.core.model import attempt_id
from corral.files.usage import DiskUse, measure_steps
from corral.stores.jobs.job_directories import DirectoryWorkspace

log = logging.getLogger("corral.server.system.retention_worker")

#: A server that starts has more urgent work first.
FIRST_SECONDS = 60.0
EVERY_SECONDS = 600.0
MEASURE_SECONDS = 6 * 3600.0
BATCH = 50
EVENT_BATCH = 1000
_PAGE = 500
_PAUSE_SECONDS = 0.2
_ASK_SECONDS = 60.0

Result = TypeVar("Result")


class Retention:
    def __init__(
        self,
        *,
        controller: Controller,
        store: Store,
        engines: Mapping[str, Engine],
        workspace: DirectoryWorkspace,
        rules: RetentionRules,
        clock: Clock,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._controller = controller
        self._store = store
        self._engines = engines
        self._workspace = workspace
        self._rules = rules
        self._clock = clock
        self._pause = pause
        self._measure_at = 0.0
        self._worker = Worker("retention", self.tidy, every_seconds=EVERY_SECONDS, first_after=FIRST_SECONDS)

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def tidy(self) -> None:
        """One round."""
        self.remove_files()
        for batch in _batches(self._due(), BATCH):
            if self._worker.is_stopping:
                return
            dropped = self._ask(retention.drop, batch)
            self.remove_files()
            if dropped:
                log.info("%d ended jobs were removed by retention", dropped)
            self._pause(_PAUSE_SECONDS)
        self._prune_events()
        self._ask(request_keys.prune_keys)

    def remove_files(self) -> None:
        """Remove the files of jobs whose rows were deleted. Idempotent. Jobs whose files cannot be removed now are
        tried again in the next round, and hold up no other."""
        with self._store.read() as tables:
            files = retention.files_to_remove(tables)
        for batch in _batches(iter(files), BATCH):
            removed = batch
            try:
                self._remove_files_of(batch, files)
            except Exception:  # noqa: BLE001 - whatever it is, the other jobs of the batch are tried
                removed = [job_id for job_id in batch if self._can_remove(job_id, files)]
            if removed:
                self._ask(retention.note_removed, removed)

    def _can_remove(self, job_id: str, files: Mapping[str, int]) -> bool:
        try:
            self._remove_files_of([job_id], files)
        except Exception as error:  # noqa: BLE001 - the job stays in the list of files to remove
            log.warning("the files of job %s cannot be removed, trying again later: %s", job_id, error)
            return False
        return True

    def _remove_files_of(self, job_ids: Sequence[str], files: Mapping[str, int]) -> None:
        attempts = retention.attempts_of({job_id: files[job_id] for job_id in job_ids})
        for engine in self._engines.values():
            engine.forget(attempts, delete_logs=True)
        self._workspace.remove(job_ids)

    # -------------------------------------------------------------------------------------------- jobs to remove

    def _due(self) -> Iterator[str]:
        """Ids of jobs to remove, the oldest first."""
        rules = self._rules
        surplus = self._count() - rules.job_count if rules.job_count is not None else 0
        too_large = self._excess_bytes()
        before = self._clock.now() - rules.job_seconds if rules.job_seconds is not None else float("-inf")
        for record in self._ended():
            if retention.is_kept(record):
                continue
            ended_at = record.job.ended_at
            is_old = ended_at is not None and ended_at < before
            if not is_old and surplus <= 0 and too_large <= 0:
                if record.job.created_at >= before:
                    return  # no job that was created later can have ended earlier
                continue
            if too_large > 0:
                too_large -= self._measured(self._places(record)).bytes
            surplus -= 1
            yield record.job.id

    def _ended(self) -> Iterator[JobRecord]:
        last: str | None = None
        while not self._worker.is_stopping:
            with self._store.read() as tables:
                found = tables.jobs.ended(last, _PAGE)
            yield from found
            if len(found) < _PAGE:
                return
            last = found[-1].job.id
            self._pause(_PAUSE_SECONDS)

    def _count(self) -> int:
        with self._store.read() as tables:
            return tables.jobs.count_ended()

    def _excess_bytes(self) -> int:
        """Bytes on the disk of all ended jobs beyond the limit. Measured seldom, because it takes long."""
        now = time.monotonic()
        if self._rules.job_bytes is None or now < self._measure_at:
            return 0
        self._measure_at = now + MEASURE_SECONDS
        used = sum(self._measured(self._places(record)).bytes for record in self._ended())
        return used - self._rules.job_bytes

    def _places(self, record: JobRecord) -> list[str]:
        job = record.job
        attempts = [attempt_id(job.id, number) for number in range(1, job.attempt + 1)]
        engines = [engine for engine in self._engines.values() if isinstance(engine, OnThisDisk)]
        kept = [engine.kept_directory(attempt) for engine in engines for attempt in attempts]
        return [str(self._workspace.home(job.id)), *kept]

    def _measured(self, places: Sequence[str]) -> DiskUse:
        steps = measure_steps(places)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                use: DiskUse = end.value
                return use
            except OSError as error:
                log.warning("what is in %s cannot be measured: %s", places[0], error)
                return DiskUse(bytes=0, files=0)
            self._pause(_PAUSE_SECONDS)

    # -------------------------------------------------------------------------------------------- helpers

    def _prune_events(self) -> None:
        if self._rules.event_seconds is None:
            return
        before = self._clock.now() - self._rules.event_seconds
        while not self._worker.is_stopping and self._ask(retention.prune_events, before, EVENT_BATCH) == EVENT_BATCH:
            self._pause(_PAUSE_SECONDS)

    def _ask(self, use_case: Callable[..., Result], *args: Any) -> Result:
        return self._controller.execute(use_case, *args).result(_ASK_SECONDS)


def _batches(items: Iterator[str], size: int) -> Iterator[list[str]]:
    batch: list[str] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
