"""Folds ended attempts of the local engine: removes the files that only mattered while they ran.

<root>/ended/<attempt>                        ended and forgotten, to be folded
<root>/runs/<shard>/<attempt>/<rank>.log.*    the log, after that
<root>/runs/<shard>/<attempt>/over            in place of a log, where there is none
<root>/runs/<shard>/<attempt>/<rank>/work/    only if the job left something in it
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from corral.engines.attempts.claims import CLAIM
from corral.engines.attempts.log_segments import PREFIX
from corral.engines.local.rundir import (
    AUTH,
    ENVIRONMENT,
    EXIT,
    LOST,
    ORDER,
    OVER,
    STOP,
    TMP,
    WORK,
    Layout,
    folded_prefix,
    is_folded,
    is_safe_id,
)
from corral.engines.storage.preparation import PROGRESS

#: If this file exists, every ended attempt has a mark in `ended`, or is folded.
_FOUND = "folded"
_OF_INSTANCES = (PROGRESS, ENVIRONMENT, AUTH, EXIT, CLAIM)
_OF_ATTEMPTS = (STOP, LOST)


class LocalFolds:
    """Implements `corral.engines.attempts.fold_worker.Folds`."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def forget(self, attempt_id: str) -> None:
        """The end of the attempt is recorded: it is folded later."""
        with contextlib.suppress(FileNotFoundError):
            os.rename(self._layout.marker(attempt_id), self._layout.ended(attempt_id))

    def unfolded(self) -> list[str]:
        self._find_unfolded()
        return list(filter(is_safe_id, os.listdir(self._layout.ended_dir)))

    def fold(self, attempt_id: str) -> None:
        """Keep the logs of an attempt and the files that its job wrote into its working directories; remove the
        rest."""
        directory = self._layout.attempt_dir(attempt_id)
        try:
            names = os.listdir(directory)
        except FileNotFoundError:
            return
        # First of all: without a claim an attempt looks as if it had never been launched.
        with contextlib.suppress(FileNotFoundError):
            os.rename(os.path.join(directory, ORDER), os.path.join(directory, OVER))
        for rank in filter(str.isdigit, names):
            _fold_instance(directory, rank)
        _unlink(directory, _OF_ATTEMPTS)
        if is_folded(name for name in os.listdir(directory) if name != OVER):
            _unlink(directory, (OVER,))

    def note_folded(self, attempt_id: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._layout.ended(attempt_id))

    def _find_unfolded(self) -> None:
        """Once: mark the attempts of an earlier version, which kept all their files."""
        done = os.path.join(self._layout.root, _FOUND)
        if os.path.exists(done):
            return
        for shard in os.listdir(self._layout.runs_dir):
            for attempt_id in os.listdir(os.path.join(self._layout.runs_dir, shard)):
                if os.path.exists(self._layout.marker(attempt_id)):
                    continue
                order = os.path.join(self._layout.attempt_dir(attempt_id), ORDER)
                with contextlib.suppress(FileNotFoundError, FileExistsError):
                    os.link(order, self._layout.ended(attempt_id))
        os.close(os.open(done, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _fold_instance(directory: str, rank: str) -> None:
    inner = os.path.join(directory, rank)
    for name in os.listdir(inner):
        if name.startswith(PREFIX):
            kept = folded_prefix(rank) + name.removeprefix(PREFIX)
            os.rename(os.path.join(inner, name), os.path.join(directory, kept))
    _unlink(inner, _OF_INSTANCES)
    for path in (os.path.join(inner, TMP), os.path.join(inner, WORK), inner):
        # Files that the job left there stay.
        with contextlib.suppress(OSError):
            os.rmdir(path)


def _unlink(directory: str, names: Iterable[str]) -> None:
    for name in names:
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            os.unlink(os.path.join(directory, name))
