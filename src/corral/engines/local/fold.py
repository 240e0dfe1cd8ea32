"""Attempts that are over take few files: what only mattered while they ran is removed, and their logs are kept.

    <root>/ended/<attempt>                        over and forgotten, to be folded
    <root>/runs/<shard>/<attempt>/<rank>.log.*    the log, after that
    <root>/runs/<shard>/<attempt>/over            in place of a log, where there is none
    <root>/runs/<shard>/<attempt>/<rank>/work/    only if the job left something in it

Removing a file makes new ones expensive for a minute on some file systems, so this waits until nothing is launched, or
until much has been left. Every step can be done again, and the mark in `ended` goes last: a crash costs nothing.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from corral.engines.local.logs import PREFIX
from corral.engines.local.rundir import (
    AUTH,
    CLAIM,
    ENVIRONMENT,
    EXIT,
    LOST,
    ORDER,
    OVER,
    PROGRESS,
    STOP,
    TMP,
    WORK,
    Layout,
    folded_prefix,
    is_folded,
    is_safe_id,
)

log = logging.getLogger("corral.engines.local")

LOOK_SECONDS = 5.0
#: Nothing was launched for so long: removing files holds up nobody.
QUIET_SECONDS = 30.0
#: … or this has waited for so long.
LONGEST_SECONDS = 3600.0
#: After so many attempts the disk is left to others for a moment.
_BATCH = 50
_PAUSE_SECONDS = 0.05
#: Since it is there, attempts that are over have marks in `ended`, or are folded.
_FOUND = "folded"
_OF_INSTANCES = (PROGRESS, ENVIRONMENT, AUTH, EXIT, CLAIM)
_OF_ATTEMPTS = (STOP, LOST)


class Folding:
    """The thread that folds."""

    def __init__(self, layout: Layout, *, launched_at: Callable[[], float], quiet_seconds: float) -> None:
        """`launched_at` says when something was launched last, by the monotonic clock."""
        self._layout = layout
        self._launched_at = launched_at
        self._quiet_seconds = quiet_seconds
        #: is called with jobs of which attempts were folded
        self.fold_homes: Callable[[Sequence[str]], None] = lambda job_ids: None
        self._last = time.monotonic()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="local-fold", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)

    def forget(self, attempt_id: str) -> None:
        """The end of the attempt is recorded: it is folded some time."""
        with contextlib.suppress(FileNotFoundError):
            os.rename(self._layout.marker(attempt_id), self._layout.ended(attempt_id))

    def fold_all(self) -> None:
        """Fold what is there, some attempts at a time."""
        names = sorted(filter(is_safe_id, os.listdir(self._layout.ended_dir)))
        for start in range(0, len(names), _BATCH):
            if self._stopping.wait(_PAUSE_SECONDS if start else 0.0):
                return
            self._fold_some(names[start : start + _BATCH])

    def _fold_some(self, attempt_ids: Sequence[str]) -> None:
        for attempt_id in attempt_ids:
            try:
                fold(self._layout, attempt_id)
            except OSError as error:
                log.warning("the files of %s cannot be put together: %s", attempt_id, error)
        self.fold_homes(sorted({attempt_id.rpartition(".")[0] for attempt_id in attempt_ids}))
        for attempt_id in attempt_ids:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._layout.ended(attempt_id))

    def _find_unfolded(self) -> None:
        """Once: attempts of an earlier version, which left all their files."""
        done = os.path.join(self._layout.root, _FOUND)
        if os.path.exists(done):
            return
        for shard in os.listdir(self._layout.runs_dir):
            if self._stopping.wait(_PAUSE_SECONDS):
                return
            for attempt_id in os.listdir(os.path.join(self._layout.runs_dir, shard)):
                if os.path.exists(self._layout.marker(attempt_id)):
                    continue
                order = os.path.join(self._layout.attempt_dir(attempt_id), ORDER)
                with contextlib.suppress(FileNotFoundError, FileExistsError):
                    os.link(order, self._layout.ended(attempt_id))
        os.close(os.open(done, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def _run(self) -> None:
        pause = min(LOOK_SECONDS, max(0.05, self._quiet_seconds))
        while not self._stopping.wait(pause):
            now = time.monotonic()
            is_quiet = now - self._launched_at() >= self._quiet_seconds
            if not is_quiet and now - self._last < LONGEST_SECONDS:
                continue
            try:
                self._find_unfolded()
                self.fold_all()
            except Exception:
                # Only files stay that could be fewer: say it, and go on.
                log.exception("ended attempts could not be put together")
            self._last = now


def fold(layout: Layout, attempt_id: str) -> None:
    """Leave the logs of an attempt, and what its job wrote into its working directories. Raises OSError."""
    directory = layout.attempt_dir(attempt_id)
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return
    # First of all: without its claim an attempt would look as if it had never been launched.
    with contextlib.suppress(FileNotFoundError):
        os.rename(os.path.join(directory, ORDER), os.path.join(directory, OVER))
    for rank in filter(str.isdigit, names):
        _fold_instance(directory, rank)
    _unlink(directory, _OF_ATTEMPTS)
    if is_folded(name for name in os.listdir(directory) if name != OVER):
        _unlink(directory, (OVER,))


def _fold_instance(directory: str, rank: str) -> None:
    inner = os.path.join(directory, rank)
    for name in os.listdir(inner):
        if name.startswith(PREFIX):
            kept = folded_prefix(rank) + name.removeprefix(PREFIX)
            os.rename(os.path.join(inner, name), os.path.join(directory, kept))
    _unlink(inner, _OF_INSTANCES)
    for path in (os.path.join(inner, TMP), os.path.join(inner, WORK), inner):
        # What a job has left there stays.
        with contextlib.suppress(OSError):
            os.rmdir(path)


def _unlink(directory: str, names: Iterable[str]) -> None:
    for name in names:
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            os.unlink(os.path.join(directory, name))
