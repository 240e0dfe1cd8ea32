"""Decides when ended attempts are folded, that is, when files that are no longer needed are removed. Each engine has
one such thread.

On some file systems, removing files makes creating files slow for a minute. So the worker waits until no attempt has
been launched for a while, or until an hour has passed. Each engine folds in its own way. Every step can be repeated,
and the mark that an attempt is to be folded is removed last: a crash loses nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

log = logging.getLogger("corral.engines")

LOOK_SECONDS = 5.0
#: No attempt was launched for this long: removing files delays no launch.
QUIET_SECONDS = 30.0
#: … or the last folding was this long ago.
LONGEST_SECONDS = 3600.0
#: After this many attempts the worker pauses, so that other processes can use the disk.
_BATCH = 50
_PAUSE_SECONDS = 0.05


class Folds(Protocol):
    """The files of an engine's attempts."""

    def unfolded(self) -> Sequence[str]:
        """Attempts that are ended and forgotten but not folded."""

    def fold(self, attempt_id: str) -> None:
        """Raises OSError."""

    def note_folded(self, attempt_id: str) -> None:
        """Marks the attempt as folded."""


class FoldWorker:
    def __init__(self, files: Folds, *, quiet_seconds: float = QUIET_SECONDS) -> None:
        self._files = files
        self._quiet_seconds = quiet_seconds
        #: called with the jobs whose attempts were folded
        self.fold_homes: Callable[[Sequence[str]], None] = lambda job_ids: None
        self._launched_at = self._last = time.monotonic()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fold", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)

    def note_launch(self) -> None:
        self._launched_at = time.monotonic()

    def fold_all(self) -> None:
        """Fold all such attempts, some at a time."""
        names = sorted(self._files.unfolded())
        for start in range(0, len(names), _BATCH):
            if self._stopping.wait(_PAUSE_SECONDS if start else 0.0):
                return
            self._fold_some(names[start : start + _BATCH])

    def _fold_some(self, attempt_ids: Sequence[str]) -> None:
        for attempt_id in attempt_ids:
            try:
                self._files.fold(attempt_id)
            except OSError as error:
                log.warning("the files of attempt %s cannot be folded: %s", attempt_id, error)
        self.fold_homes(sorted({attempt_id.rpartition(".")[0] for attempt_id in attempt_ids}))
        for attempt_id in attempt_ids:
            self._files.note_folded(attempt_id)

    def _run(self) -> None:
        pause = min(LOOK_SECONDS, max(0.05, self._quiet_seconds))
        while not self._stopping.wait(pause):
            now = time.monotonic()
            is_quiet = now - self._launched_at >= self._quiet_seconds
            if not is_quiet and now - self._last < LONGEST_SECONDS:
                continue
            try:
                self.fold_all()
            except Exception:
                # Only superfluous files stay: log it, and go on.
                log.exception("ended attempts could not be folded")
            self._last = now
