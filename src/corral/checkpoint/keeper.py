"""One program's checkpoints: when to save, from which to resume, and when to stop.

Implements the functions of `corral.checkpoint`. `writer` writes checkpoints, `catalog` decides which are good.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from corral.checkpoint import payload
from corral.checkpoint.catalog import Checkpoint, find, inspect, list_checkpoints
from corral.checkpoint.environment import Surroundings
from corral.checkpoint.layout import FILES, MANIFEST, REQUEST, STATE, SealedFile
from corral.checkpoint.progress import Progress, write_progress
from corral.checkpoint.warning import WARNING
from corral.checkpoint.writer import clean, prune, publish, write_files, write_state

#: The exit code of a program that stopped on a warning, as if the signal had ended it: the work is not complete.
EXIT_STOPPED = 143

#: The directory may be on a network: it is checked for a request at most this often.
_LOOK_SECONDS = 1.0
#: Progress is written at most this often: a step may take a millisecond.
_PROGRESS_SECONDS = 1.0
#: How often a listing is repeated if checkpoints were replaced while they were read.
_LISTINGS = 10

_GO_ON, _SAVE, _STOP = 0, 1, 2


class RestoreError(Exception):
    """A checkpoint is undamaged, but this program cannot load it. Beginning again would lose its work."""


class Keeper:
    def __init__(self, surroundings: Surroundings, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.surroundings = surroundings
        self._monotonic = monotonic
        self._saved_at = monotonic()
        self._looked_at = float("-inf")
        self._progress_at = float("-inf")
        self._answered = self._answered_before()
        self._answers_warning = False
        self._asked = False
        self._last: Checkpoint | None = None
        self._steps_done = 0
        self._distrusted: set[str] = set()
        self._printed: set[str] = set()

    # When

    def due(self) -> bool:
        """The interval has passed, the platform asks for it, or there was no save since a warning."""
        if self.surroundings.directory is None:
            return False
        if WARNING.is_received and not self._answers_warning:
            return True
        now = self._monotonic()
        interval = self.surroundings.interval_seconds
        if interval is not None and now - self._saved_at >= interval:
            return True
        if not self._asked and now - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = now
            request = self._request()
            self._asked = request is not None and request != self._answered
        return self._asked

    def should_stop(self) -> bool:
        WARNING.watch()
        return WARNING.is_received

    def steps(
        self,
        total: int,
        capture: Callable[[], Any],
        *,
        shard: bool = False,
        agree: Callable[[int], int] | None = None,
    ) -> Iterator[int]:
        WARNING.watch()
        for step in range(self._steps_done, total):
            yield step
            # Checked once, so that a warning between two checks cannot end the program without a save.
            want = _STOP if self.should_stop() else _SAVE if self.due() else _GO_ON
            if agree is not None:
                want = agree(want)
            done = step + 1
            self.progress(done)
            if want != _GO_ON or done == total:
                self.save(capture(), step=done, shard=shard)
            if want == _STOP and done < total:
                sys.exit(EXIT_STOPPED)

    def progress(self, step: int) -> None:
        """Report the number of steps done. In a gang rank 0 reports for all."""
        if isinstance(step, bool) or not isinstance(step, int) or step < 0:
            raise ValueError(f"step must be a whole number from 0, the steps that are done, not {step!r}")
        here, now = self.surroundings, self._monotonic()
        if here.directory is None or here.rank != 0 or now - self._progress_at < _PROGRESS_SECONDS:
            return
        self._progress_at = now
        try:
            here.directory.mkdir(parents=True, exist_ok=True)
            write_progress(here.directory, Progress(step=step, attempt=here.attempt, at=time.time()))
        except OSError as error:
            # A report that is missing is no reason to end a training.
            self._print_once(f"progress is not reported: {error.strerror or error}")

    # Saving

    def save(self, state: Any, *, step: int, shard: bool = False) -> Path | None:
        kind = payload.choose_kind()
        return self._save(
            kind, step, shard, lambda folder: write_state(folder, lambda stream: payload.dump(state, stream, kind))
        )

    def save_files(self, write: Callable[[Path], None], *, step: int, shard: bool = False) -> Path | None:
        return self._save("files", step, shard, lambda folder: write_files(folder, write))

    def _save(self, kind: str, step: int, shard: bool, write: Callable[[Path], list[SealedFile]]) -> Path | None:
        if isinstance(step, bool) or not isinstance(step, int) or step < 0:
            raise ValueError(f"step must be a whole number from 0, the steps that are done, not {step!r}")
        here = self.surroundings
        # Read before the state is written: a later request is not answered by this save.
        warned, request, at = WARNING.is_received, self._request(), time.time()
        path = None
        if here.directory is None:
            self._print_once("CORRAL_CHECKPOINT_DIR is not set: nothing is saved")
        elif shard or here.rank == 0:
            clean(here.directory, here.attempt)
            path = publish(
                here.directory,
                kind=kind,
                step=step,
                at=at,
                attempt=here.attempt,
                rank=here.rank if shard else 0,
                world=here.world if shard else 1,
                write=write,
            )
            self._last = find(path)
        self._saved_at = self._monotonic()
        self._steps_done = step
        self._answers_warning = self._answers_warning or warned
        self._answered, self._asked = request, False
        if path is not None and here.directory is not None and here.rank == 0:
            self._make_room(here.directory)
        return path

    def _make_room(self, directory: Path) -> None:
        try:
            prune(directory, self.surroundings.keep, self._distrusted)
        except OSError as error:
            # The new checkpoint is safe; an old one that stays is no reason to end a training.
            _say(f"an old checkpoint in {directory} was not removed: {error.strerror or error}")

    # Resuming

    def restore(self, *, map_location: Any = "cpu") -> Any:
        directory = self.surroundings.directory
        listed: list[Path] | None = None
        for _ in range(_LISTINGS):
            candidates = self._candidates()
            paths = [candidate.path for candidate in candidates]
            if paths == listed:
                break
            listed = paths
            # A checkpoint that was replaced during reading is no reason to begin again: then the listing is another
            # one.
            for candidate in candidates:
                candidate = inspect(candidate)
                if not candidate.good:
                    self._distrust(candidate)
                    continue
                try:
                    return self._load(candidate, map_location)
                except RestoreError:
                    if candidate.path.exists():
                        raise
        if listed:
            _say(f"no checkpoint in {directory or 'CORRAL_RESUME_FROM'} is good: this run begins anew")
        return None

    def _candidates(self) -> list[Checkpoint]:
        """The checkpoints in the order in which they are tried: those of this attempt, the one that the platform chose,
        the rest.
        """
        here = self.surroundings
        found = list_checkpoints(here.directory) if here.directory else []
        if here.resume_from is None:
            return found
        chosen = find(here.resume_from)
        if chosen is None:
            self._print_once(f"{here.resume_from}, which CORRAL_RESUME_FROM names, is not there")
            return found
        # The platform's choice is older than the saves of this attempt, if its processes were started again.
        own = [
            each
            for each in found
            if each.sequence > chosen.sequence and (each.attempt == here.attempt > 0 or each == self._last)
        ]
        rest = [each for each in found if each not in own and each.path != chosen.path]
        return [*own, chosen, *rest]

    def _load(self, checkpoint: Checkpoint, map_location: Any) -> Any:
        here = self.surroundings
        if checkpoint.world not in (1, here.world):
            raise RestoreError(
                f"{checkpoint.path} was saved in parts by {checkpoint.world} ranks, and this run has {here.world}:"
                " put the parts together with corral.checkpoint.load(part) for each of its parts"
            )
        part = checkpoint.parts[here.rank if checkpoint.world > 1 else 0]
        state = load_part(part, checkpoint.kind, map_location)
        self._last = checkpoint
        self._steps_done = checkpoint.step
        self._saved_at = self._monotonic()
        return state

    def _distrust(self, checkpoint: Checkpoint) -> None:
        # Missing parts are often still being written, and a step that was saved again is no damage.
        if checkpoint.path.exists() and checkpoint.path.name not in self._distrusted:
            self._distrusted.add(checkpoint.path.name)
            _say(f"checkpoint {checkpoint.path} is passed over: {checkpoint.problem}")

    # Loading

    def last(self) -> Checkpoint | None:
        return self._last

    def steps_done(self) -> int:
        return self._steps_done

    def _request(self) -> tuple[int, int] | None:
        """Identifies a request; another time or another file is another request."""
        if self.surroundings.directory is None:
            return None
        try:
            found = os.lstat(self.surroundings.directory / REQUEST)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino

    def _answered_before(self) -> tuple[int, int] | None:
        """The request that an earlier process has answered; both times are of the same file system's clock."""
        request = self._request()
        if request is None or self.surroundings.directory is None:
            return None
        for checkpoint in list_checkpoints(self.surroundings.directory):
            if checkpoint.good:
                saved = os.lstat(checkpoint.path / MANIFEST).st_mtime_ns
                return request if saved >= request[0] else None
        return None

    def _print_once(self, text: str) -> None:
        if text not in self._printed:
            self._printed.add(text)
            _say(text)


def load_part(folder: Path, kind: str, map_location: Any) -> Any:
    try:
        return payload.load(folder / (FILES if kind == "files" else STATE), kind, map_location)
    except Exception as error:
        # Errors of a program's own classes: trying an older checkpoint would only hide them.
        raise RestoreError(f"{folder} is undamaged, and cannot be loaded: {type(error).__name__}: {error}") from error


def _say(text: str) -> None:
    sys.stderr.write(f"corral: {text}\n")
    sys.stderr.flush()
