"""Decides when ended attempts are folded, that is, when files that are no longer needed are removed. Each engine has
one such thread.

On some file systems, removing files makes creating files slow for a minute. So the worker waits until no attempt has
been launched for a while, or until an hour has passed. Each engine folds in its own way. Every step can be repeated,
and the mark that an attempt is to be folded is removed last: a crash loses nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from corral.control.live.worker import Worker

log = logging.getLogger("corral.engines")

POLL_SECONDS = 5.0
#: Attempts are folded once nothing was launched for so long: removing files then delays no launch …
QUIET_SECONDS = 30.0
#: … or once they have waited for so long.
LONGEST_SECONDS = 3600.0
#: After so many attempts the worker pauses, so that other processes can use the disk.
_BATCH = 50
_PAUSE_SECONDS = 0.05
_STOP_SECONDS = 5.0


class Folds(Protocol):
    """The files of an engine's attempts."""

    def unfolded(self) -> Sequence[str]:
        """Attempts that are ended and forgotten but not folded."""

    def fold(self, attempt_id: str) -> None:
        """Raises OSError."""

    def note_folded(self, attempt_id: str) -> None:
        """Marks the attempt as folded."""


#: Called with the jobs whose attempts were folded: their directories may be empty. If it raises, it is called again.
FoldHomes = Callable[[Sequence[str]], None]


def keep_homes(job_ids: Sequence[str]) -> None:
    """Keeps the directories of the jobs."""


class FoldWorker:
    def __init__(
        self, files: Folds, *, quiet_seconds: float = QUIET_SECONDS, fold_homes: FoldHomes = keep_homes
    ) -> None:
        self._files = files
        self._quiet_seconds = quiet_seconds
        self._fold_homes = fold_homes
        self._launched_at = self._last = time.monotonic()
        pause = min(POLL_SECONDS, max(0.05, quiet_seconds))
        self._worker = Worker("fold", self._fold_if_due, every_seconds=pause, first_after=pause)

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop(_STOP_SECONDS)

    def note_launch(self) -> None:
        self._launched_at = time.monotonic()

    def fold_all(self) -> None:
        """Fold all such attempts, some at a time."""
        names = sorted(self._files.unfolded())
        for start in range(0, len(names), _BATCH):
            if self._worker.pause(_PAUSE_SECONDS if start else 0.0):
                return
            self._fold_some(names[start : start + _BATCH])

    def _fold_some(self, attempt_ids: Sequence[str]) -> None:
        for attempt_id in attempt_ids:
            try:
                self._files.fold(attempt_id)
            except OSError as error:
                log.warning("the files of attempt %s cannot be folded: %s", attempt_id, error)
        self._fold_homes(sorted({attempt_id.rpartition(".")[0] for attempt_id in attempt_ids}))
        for attempt_id in attempt_ids:
            self._files.note_folded(attempt_id)

    def _fold_if_due(self) -> None:
        now = time.monotonic()
        is_quiet = now - self._launched_at >= self._quiet_seconds
        if is_quiet or now - self._last >= LONGEST_SECONDS:
            self.fold_all()
            self._last = now
