"""The checkpoints of jobs in their directories, read with the same library that writes them."""

from __future__ import annotations

import stat
import time
from collections.abc import Sequence

from corral.checkpoint import catalog
from corral.checkpoint.layout import REQUEST, parse_name
from corral.control.ports import SavedWork
from corral.files import NotPlain, Place
from corral.files.opening import scan
from corral.stores.workspace import CHECKPOINTS, DirectoryWorkspace

#: So many entries of formats that are not ours are looked at: more says nothing new.
_LOOKS = 1000
#: Of a directory with more names, the others are not looked at for something to resume from.
_NAMES = 100_000
#: There is no such directory, or the job has put something else in its place.
_MISSING = (FileNotFoundError, NotADirectoryError, NotPlain)


class DirectoryCheckpoints:
    """Implements `corral.control.ports.Checkpoints`."""

    def __init__(self, workspace: DirectoryWorkspace) -> None:
        self._workspace = workspace

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

    def latest_good(self, job_id: str) -> SavedWork | None:
        try:
            with self._opened(job_id) as directory:
                found = catalog.latest_good(directory.path, thorough=True)
        except _MISSING:
            return None
        return None if found is None else self._saved_work(job_id, found)

    def request(self, job_id: str) -> None:
        with self._opened(job_id) as directory:
            directory.write(REQUEST, b"")

    def _newest_entry_at(self, job_id: str) -> float | None:
        """Of a program with a format of its own: it renames what is complete, which is when the entry is seen here."""
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
            pass  # removed while we looked
        return None if newest is None else min(newest, time.time())

    def _opened(self, job_id: str) -> Place:
        """Not a link that a job has put in its place: it would lead the server into another's directory."""
        return self._workspace.opened(job_id, CHECKPOINTS)

    def _saved_work(self, job_id: str, checkpoint: catalog.Checkpoint) -> SavedWork:
        return SavedWork(
            name=checkpoint.path.name,
            # It was read through a descriptor; the job sees it by its name.
            path=str(self._workspace.checkpoint_dir(job_id) / checkpoint.path.name),
            step=checkpoint.step,
            # The clock of another node may be ahead, and a manifest may say anything.
            at=min(checkpoint.at, time.time()) if checkpoint.at else None,
            size_bytes=checkpoint.bytes,
            attempt=checkpoint.attempt,
            parts=checkpoint.world,
            problem=checkpoint.problem,
        )
