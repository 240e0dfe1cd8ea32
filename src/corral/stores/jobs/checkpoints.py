"""The checkpoints of jobs in their directories, read with the same library that writes them."""

from __future__ import annotations

import logging
import stat
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future

from corral.checkpoint import catalog
from corral.checkpoint.layout import REQUEST, parse_name
from corral.checkpoint.progress import PROGRESS, parse_progress
from corral.control.ports import SavedWork, StepReport
from corral.files import NotPlain, Place
from corral.files.descriptors import scan
from corral.stores.jobs.job_directories import CHECKPOINTS, DirectoryWorkspace
from corral.stores.storage.fair_pool import DeadlinePassed, FairPool, Task, TaskCancelled

log = logging.getLogger("corral.stores.jobs.checkpoints")

#: Large checkpoints that are read at the same time; one more would only make all of them slower.
_READERS = 4
_READERS_PER_USER = 2
_LOOKUPS_PER_USER = 1_000_000
#: Maximum number of entries that are checked in a directory of another format.
_LOOKS = 1000
#: Maximum number of names that are checked for a checkpoint to resume from.
_NAMES = 100_000
#: More than a record of progress has: a longer file is none.
_PROGRESS_BYTES = 128
#: The directory does not exist, or the job has replaced it.
_MISSING = (FileNotFoundError, NotADirectoryError, NotPlain)


class DirectoryCheckpoints:
    """Implements `corral.control.ports.Checkpoints`."""

    def __init__(self, workspace: DirectoryWorkspace, *, verify_seconds: float = 900.0) -> None:
        self._workspace = workspace
        self._verify_seconds = verify_seconds
        # A server that stops does not wait for gigabytes to be read; reconciliation finds the launch again.
        self._pool = FairPool(
            "checkpoints", threads=_READERS, per_user=_READERS_PER_USER, waiting_per_user=_LOOKUPS_PER_USER
        )

    def mark(self, job_id: str) -> int | None:
        try:
            with self._opened(job_id) as directory:
                return directory.stat().st_mtime_ns
        except _MISSING:
            return None

    def has_any(self, job_id: str) -> bool:
        try:
            with self._opened(job_id) as directory:
                return any(parse_name(name) for name in directory.names(_NAMES))
        except _MISSING:
            return False

    def list(self, job_id: str) -> Sequence[SavedWork]:
        try:
            with self._opened(job_id) as directory:
                found = catalog.list_checkpoints(directory.path)
        except _MISSING:
            return []
        return [self._saved_work(job_id, checkpoint) for checkpoint in found]

    def last_saved_at(self, job_id: str) -> float | None:
        saved = self.list(job_id)
        if saved:
            return next((work.at for work in saved if work.is_good), None)
        return self._newest_entry_at(job_id)

    def progress(self, job_id: str) -> StepReport | None:
        try:
            with self._opened(job_id) as directory:
                found = parse_progress(directory.read(PROGRESS, _PROGRESS_BYTES))
        except _MISSING:
            return None
        if found is None:
            return None
        return StepReport(step=found.step, attempt=found.attempt, at=min(found.at, time.time()))

    def look_up(self, job_id: str, user: str, found: Callable[[SavedWork | None], None]) -> Task[SavedWork | None]:
        task = self._pool.submit(user, self.latest_good(job_id), deadline_seconds=self._verify_seconds)
        task.future.add_done_callback(lambda done: self._answer(job_id, done, found))
        return task

    def latest_good(self, job_id: str) -> Generator[None, None, SavedWork | None]:
        """The newest checkpoint whose every byte is valid; a generator that yields between reads."""
        try:
            with self._opened(job_id) as directory:
                found = yield from catalog.latest_good_steps(directory.path, thorough=True)
        except _MISSING:
            return None
        return None if found is None else self._saved_work(job_id, found)

    def _answer(self, job_id: str, done: Future[SavedWork | None], found: Callable[[SavedWork | None], None]) -> None:
        error = done.exception()
        if isinstance(error, TaskCancelled):
            return
        if isinstance(error, DeadlinePassed):
            found(self._unverified(job_id))
        elif error is not None:
            # The attempt is launched anyway: its program can search for a checkpoint itself.
            log.warning("the checkpoints of %s cannot be read: %s", job_id, error)
            found(None)
        else:
            if done.result() is None:
                log.warning("no checkpoint of %s is valid: its next attempt starts from the beginning", job_id)
            found(done.result())

    def _unverified(self, job_id: str) -> SavedWork | None:
        """The newest checkpoint whose files have the right lengths."""
        try:
            found = next((saved for saved in self.list(job_id) if saved.is_good), None)
        except OSError as error:
            log.warning("the checkpoints of %s cannot be read: %s", job_id, error)
            return None
        log.warning(
            "reading the checkpoints of %s takes longer than %g s: its next attempt resumes from %s, which was not "
            "verified",
            job_id,
            self._verify_seconds,
            found.name if found is not None else "nothing",
        )
        return found

    def request(self, job_id: str) -> None:
        with self._opened(job_id) as directory:
            directory.write(REQUEST, b"")

    def _newest_entry_at(self, job_id: str) -> float | None:
        """The time of the newest entry. Programs with their own format rename a complete checkpoint, which is detected
        here.
        """
        newest: float | None = None
        try:
            with self._opened(job_id) as directory, scan(directory.descriptor) as entries:
                for _, entry in zip(range(_LOOKS), entries, strict=False):
                    if entry.name.startswith("."):
                        continue
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
                        newest = max(newest or 0.0, found.st_mtime)
        except _MISSING:
            pass  # removed meanwhile
        return None if newest is None else min(newest, time.time())

    def _opened(self, job_id: str) -> Place:
        """Refuses a link that a job has created: it could lead the server into another user's directory."""
        return self._workspace.opened(job_id, CHECKPOINTS)

    def _saved_work(self, job_id: str, checkpoint: catalog.Checkpoint) -> SavedWork:
        return SavedWork(
            name=checkpoint.path.name,
            # It was read through a descriptor; the job uses its path.
            path=str(self._workspace.checkpoint_dir(job_id) / checkpoint.path.name),
            step=checkpoint.step,
            # The clock of another node may be ahead, and a manifest may contain any time.
            at=min(checkpoint.at, time.time()) if checkpoint.at else None,
            size_bytes=checkpoint.bytes,
            attempt=checkpoint.attempt,
            parts=checkpoint.world,
            problem=checkpoint.problem,
        )
