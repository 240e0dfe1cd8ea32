"""Measures the disk use of running jobs regularly; a job above its limit is stopped, one that has nearly used up its
temporary storage is evicted.

The threads are shared fairly by users (`stores/storage/fair_pool.py`): a user with millions of files delays only the
user's own jobs. A directory that takes long to measure is measured less often.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass

from corral.control.jobs.disk_quota import OverDisk, Writer, Writers, stop_over
from corral.control.live.controller import Controller
from corral.control.live.worker import Worker, log_failure
from corral.control.ports import Engine, OnThisDisk
from corral.core.counts import counted
from corral.core.model import EndReason
from corral.core.quantities import format_bytes
from corral.files.usage import TooDeep, measure_steps
from corral.server.settings.disk_limits import DiskLimits
from corral.stores.storage.fair_pool import FairPool

log = logging.getLogger("corral.server.disk")

LOOK_SECONDS = 1.0
#: How often a job is measured, and the maximum share of the time that measuring may take.
MEASURE_SECONDS = 5.0
_MEASURE_PART = 0.1
#: The part of its limit on temporary storage at which a job is evicted.
EVICT_PART = 0.9
_THREADS = 2
_PER_USER = 1
_TASKS_PER_USER = 1000
_ASK_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class JobDisk:
    """The disk use of a running job."""

    #: with the temporary part
    bytes: int
    files: int
    temporary_bytes: int


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
        """`home_of` returns a job's directory."""
        self._controller = controller
        self._engines = engines
        self._home_of = home_of
        self._limits = limits
        self._monotonic = monotonic
        self._pool = FairPool("disk", threads=_THREADS, per_user=_PER_USER, waiting_per_user=_TASKS_PER_USER)
        self._lock = threading.Lock()
        self._writers = Writers()
        #: what the last look found
        self._seen: Mapping[str, Writer] = {}
        #: by attempt: when it is measured next; infinite while it is being measured
        self._due: dict[str, float] = {}
        #: by attempt: what was measured last
        self._found: dict[str, JobDisk] = {}
        self._worker = Worker("disk-watch", self.look, every_seconds=LOOK_SECONDS, first_after=LOOK_SECONDS)

    def start(self) -> None:
        limits = self._limits
        if any(limit is not None for limit in (limits.job_bytes, limits.job_files, limits.temporary_bytes)):
            self._worker.start()

    def stop(self) -> None:
        self._worker.ask_to_stop()
        self._pool.close()
        self._worker.stop()

    @property
    def limits(self) -> DiskLimits:
        return self._limits

    def latest(self, attempt_id: str) -> JobDisk | None:
        """The last measured disk use of a running attempt; None if it was not measured yet."""
        with self._lock:
            return self._found.get(attempt_id)

    def look(self) -> None:
        """Begin to measure the attempts that are due."""
        running = self._controller.inspect(self._writers.now).result(_ASK_SECONDS)
        now = self._monotonic()
        with self._lock:
            if running is not self._seen:
                self._due = {attempt_id: at for attempt_id, at in self._due.items() if attempt_id in running}
                self._found = {attempt_id: disk for attempt_id, disk in self._found.items() if attempt_id in running}
                self._seen = running
            due = [writer for attempt_id, writer in running.items() if self._due.get(attempt_id, 0.0) <= now]
            self._due |= {writer.attempt_id: float("inf") for writer in due}
        by_user: defaultdict[str, list[Writer]] = defaultdict(list)
        for writer in due:
            by_user[writer.user].append(writer)
        for user, mine in by_user.items():
            self._pool.submit(user, self._measure_each(mine, now))

    def _measure_each(self, writers: Sequence[Writer], began: float) -> Generator[None, None, None]:
        """One task for all of a user's small jobs: a task for each costs more than to measure it. A job with many
        files gets a task of its own, which takes turns with the others."""
        for writer in writers:
            steps = self._measure(writer)
            try:
                next(steps)
            except StopIteration as end:
                self._measured(writer, began, end.value)
            except Exception as error:  # noqa: BLE001 - the jobs behind this one are measured all the same
                self._measured(writer, began, error)
            else:
                self._pool.submit(writer.user, self._measure_on(writer, steps, began), is_limited=False)
            yield

    def _measure_on(
        self, writer: Writer, steps: Generator[None, None, JobDisk], began: float
    ) -> Generator[None, None, None]:
        try:
            found: JobDisk | Exception = yield from steps
        except Exception as error:  # noqa: BLE001 - it is judged like a result
            found = error
        self._measured(writer, began, found)

    def _measure(self, writer: Writer) -> Generator[None, None, JobDisk]:
        engine = self._engines.get(writer.cluster)
        own: Sequence[str] = ()
        temporary: Sequence[str] = ()
        if isinstance(engine, OnThisDisk):
            own, temporary = engine.directories(writer.attempt_id), engine.temporary_directories(writer.attempt_id)
        passing = yield from measure_steps(temporary)
        kept = yield from measure_steps([self._home_of(writer.job_id), *own])
        return JobDisk(
            bytes=kept.bytes + passing.bytes, files=kept.files + passing.files, temporary_bytes=passing.bytes
        )

    def _measured(self, writer: Writer, began: float, found: JobDisk | Exception) -> None:
        now = self._monotonic()
        with self._lock:
            if writer.attempt_id in self._due:
                self._due[writer.attempt_id] = now + max(MEASURE_SECONDS, (now - began) / _MEASURE_PART)
        over: OverDisk | None = None
        if isinstance(found, TooDeep):
            message = f"stopped because its files cannot be counted: {found}"
            over = OverDisk(job_id=writer.job_id, attempt=writer.attempt, message=message)
        elif isinstance(found, Exception):
            log.warning("what %s has on the disk cannot be measured: %s", writer.job_id, found)
        else:
            with self._lock:
                self._found[writer.attempt_id] = found
            over = self._judged(writer, found)
        if over is not None:
            self._controller.execute(stop_over, [over]).add_done_callback(
                log_failure(log, "a job could not be stopped for its use of the disk", with_traceback=True)
            )

    def _judged(self, writer: Writer, use: JobDisk) -> OverDisk | None:
        """Returns which limit the job exceeds; None if it is within its limits."""
        limits = self._limits
        if limits.temporary_bytes is not None and use.temporary_bytes > limits.temporary_bytes * EVICT_PART:
            message = (
                f"temporary storage: it has {format_bytes(use.temporary_bytes)} of "
                f"{format_bytes(limits.temporary_bytes)}, and is evicted at {EVICT_PART:.0%}: write to a volume, to "
                "local storage or to its outputs instead"
            )
            return OverDisk(job_id=writer.job_id, attempt=writer.attempt, message=message, reason=EndReason.EVICTED)
        if limits.job_bytes is not None and use.bytes > limits.job_bytes + writer.local_bytes:
            message = (
                f"stopped because it has {format_bytes(use.bytes)} on the disk, and a job may have "
                f"{format_bytes(limits.job_bytes + writer.local_bytes)}: keep fewer checkpoints and files, or write to "
                "a volume"
            )
            excess = use.bytes - limits.job_bytes
            return OverDisk(job_id=writer.job_id, attempt=writer.attempt, message=message, excess_bytes=excess)
        if limits.job_files is not None and use.files > limits.job_files:
            message = (
                f"stopped because it has {counted(use.files, 'file')} "
                f"on the disk, and a job may have {limits.job_files}"
            )
            return OverDisk(job_id=writer.job_id, attempt=writer.attempt, message=message)
        return None
