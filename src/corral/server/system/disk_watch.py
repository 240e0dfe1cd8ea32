"""What running jobs have on the disk, measured again and again; one that has too much is stopped.

Users share the measuring fairly (`stores/fair_pool`): one with millions of files delays only their own. A directory
that takes long to measure is measured less often.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial

from corral.control.jobs.disk_quota import OverDisk, Writer, stop_over, writers
from corral.control.live.controller import Controller
from corral.control.live.worker import Worker, log_failure
from corral.control.ports import Engine, OnThisDisk
from corral.core.quantities import format_bytes
from corral.files.usage import DiskUse, TooDeep, measure_steps
from corral.server.settings.disk_limits import DiskLimits
from corral.stores.storage.fair_pool import FairPool, TaskCancelled

log = logging.getLogger("corral.server.disk")

LOOK_SECONDS = 1.0
#: How often a job is measured, and at most which part of the time.
MEASURE_SECONDS = 5.0
_MEASURE_PART = 0.1
_THREADS = 2
_PER_USER = 1
_TASKS_PER_USER = 100_000
_ASK_SECONDS = 10.0


class DiskWatch:
    def __init__(
        self,
        *,
        controller: Controller,
        engines: Mapping[str, Engine],
        home_of: Callable[[str], str],
        limits: DiskLimits,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`home_of` says where a job's directory is."""
        self._controller = controller
        self._engines = engines
        self._home_of = home_of
        self._limits = limits
        self._monotonic = monotonic
        self._pool = FairPool("disk", threads=_THREADS, per_user=_PER_USER, waiting_per_user=_TASKS_PER_USER)
        self._lock = threading.Lock()
        #: by attempt: when it is measured next; infinite while it is
        self._due: dict[str, float] = {}
        self._worker = Worker("disk-watch", self.look, every_seconds=LOOK_SECONDS, first_after=LOOK_SECONDS)

    def start(self) -> None:
        if self._limits.job_bytes is not None or self._limits.job_files is not None:
            self._worker.start()

    def stop(self) -> None:
        self._worker.ask_to_stop()
        self._pool.close()
        self._worker.stop()

    def look(self) -> None:
        """Begin to measure those that are due."""
        found = self._controller.inspect(writers).result(_ASK_SECONDS)
        now = self._monotonic()
        with self._lock:
            running = {writer.attempt_id for writer in found}
            self._due = {attempt_id: at for attempt_id, at in self._due.items() if attempt_id in running}
            due = [writer for writer in found if self._due.get(writer.attempt_id, 0.0) <= now]
            self._due |= {writer.attempt_id: float("inf") for writer in due}
        for writer in due:
            task = self._pool.submit(writer.user, measure_steps(self._places(writer)))
            task.future.add_done_callback(partial(self._measured, writer, now))

    def _places(self, writer: Writer) -> list[str]:
        engine = self._engines.get(writer.cluster)
        own = engine.directories(writer.attempt_id) if isinstance(engine, OnThisDisk) else ()
        return [self._home_of(writer.job_id), *own]

    def _measured(self, writer: Writer, began: float, done: Future[DiskUse]) -> None:
        error = done.exception()
        if isinstance(error, TaskCancelled):
            return
        now = self._monotonic()
        with self._lock:
            if writer.attempt_id in self._due:
                self._due[writer.attempt_id] = now + max(MEASURE_SECONDS, (now - began) / _MEASURE_PART)
        over: OverDisk | None = None
        if isinstance(error, TooDeep):
            message = f"stopped because its files cannot be counted: {error}"
            over = OverDisk(job_id=writer.job_id, attempt=writer.attempt, message=message)
        elif error is not None:
            log.warning("what %s has on the disk cannot be measured: %s", writer.job_id, error)
        else:
            over = self._judged(writer, done.result())
        if over is not None:
            self._controller.execute(stop_over, [over]).add_done_callback(
                log_failure(log, "a job could not be stopped for its use of the disk", with_traceback=True)
            )

    def _judged(self, writer: Writer, use: DiskUse) -> OverDisk | None:
        """None if the job has no more than it may."""
        limits = self._limits
        if limits.job_bytes is not None and use.bytes > limits.job_bytes + writer.local_bytes:
            message = (
                f"stopped because it has {format_bytes(use.bytes)} on the disk, and a job may have "
                f"{format_bytes(limits.job_bytes + writer.local_bytes)}: keep fewer checkpoints and files, or write to "
                "a volume"
            )
            excess = use.bytes - limits.job_bytes
            return OverDisk(job_id=writer.job_id, attempt=writer.attempt, message=message, excess_bytes=excess)
        if limits.job_files is not None and use.files > limits.job_files:
            message = f"stopped because it has {use.files} files on the disk, and a job may have {limits.job_files}"
            return OverDisk(job_id=writer.job_id, attempt=writer.attempt, message=message)
        return None
