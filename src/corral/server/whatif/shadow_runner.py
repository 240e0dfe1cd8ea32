"""Runs the shadow policy in parallel to the live one: a worker passes new journal entries to a process, and records the
process's differing decisions.

The controller is not involved. If the process falls behind, entries are applied without planning, and counted.
"""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from corral.control.live.controller import Controller
from corral.control.live.worker import Worker
from corral.control.ports import Store
from corral.control.records import CycleRecord, DifferenceRecord, ShadowRecord
from corral.control.whatif import shadow
from corral.control.whatif.shadow import Counts
from corral.server.whatif.shadow_worker import Begin, Follow

log = logging.getLogger("corral.server.whatif.shadow_runner")

#: Between two polls of the journal.
LOOK_SECONDS = 1.0
#: Entries that are sent at once, and the backlog from which on they are only applied.
PORTION = 20
BEHIND = 200
#: After a process has died.
REST_SECONDS = 5.0
#: Poll interval without a shadow policy, in case that a `wake` was missed.
IDLE_SECONDS = 60.0
_ANSWER_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ShadowProgress:
    counts: Counts = field(default_factory=Counts)
    behind: int = 0
    last: CycleRecord | None = None


class WorkerFailed(Exception):
    """The process has died, or could not apply an entry."""


class ShadowRunner:
    def __init__(
        self,
        *,
        controller: Controller,
        store: Store,
        notify: Callable[[str, str, Mapping[str, Any]], None] = lambda key, name, data: None,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._controller = controller
        self._store = store
        self._notify = notify
        self._look_seconds = look_seconds
        self._changed = threading.Event()
        self._guard = threading.Lock()
        self._progress = ShadowProgress()
        self._process: subprocess.Popen[bytes] | None = None
        self._worker = Worker("shadowing", self._round, every_seconds=REST_SECONDS, interrupt=self._interrupt)

    # ---------------------------------------------------------------- outside

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def wake(self) -> None:
        """The shadow policy was started or stopped."""
        self._changed.set()
        self._worker.wake()

    def _interrupt(self) -> None:
        self._changed.set()
        self._end_process()

    @property
    def progress(self) -> ShadowProgress:
        with self._guard:
            return self._progress

    # ---------------------------------------------------------------- the thread

    def _round(self) -> float:
        """Run the present shadow policy until it is changed."""
        self._changed.clear()
        try:
            with self._store.read() as tx:
                record, counts = shadow.known(tx), shadow.counts_of(tx)
            self._set_progress(ShadowProgress(counts=counts))
            if record is None or record.stopped_at is not None:
                return IDLE_SECONDS
            self._follow(record, counts)
        except WorkerFailed as error:
            if not self._worker.is_stopping:
                log.warning("the shadow policy starts again: %s", error)
                counts = replace(self.progress.counts, failed=self.progress.counts.failed + 1)
                self._controller.execute(shadow.note, [], counts).result(_ANSWER_SECONDS)
                return REST_SECONDS
        finally:
            self._end_process()
        return 0.0

    def _follow(self, record: ShadowRecord, counts: Counts) -> None:
        """Runs until the shadow policy is changed. Raises WorkerFailed."""
        with self._store.read() as tx:
            entries = tx.cycles.since_base()
        self._ask(Begin(changes=record.changes, entries=[entry.changes for entry in entries]))
        last = entries[-1] if entries else None
        del entries
        while not self._changed.is_set():
            place = 0 if last is None else last.id
            with self._store.read() as tx:
                behind = tx.cycles.count_since(place)
                cycles = tx.cycles.since(place, PORTION)
            decides = behind <= BEHIND
            found = self._ask(Follow(cycles=cycles, decides=decides)) if cycles else []
            if self._changed.is_set():
                # Differences of rules that were replaced meanwhile are dropped.
                return
            counts = _counted(counts, found, decides)
            last = cycles[-1] if cycles else last
            if cycles:
                self._note([item for item in found if item is not None], counts)
            # After the commit: counted differences can be read.
            self._set_progress(ShadowProgress(counts=counts, behind=max(0, behind - len(cycles)), last=last))
            if len(cycles) < PORTION:
                self._changed.wait(self._look_seconds)

    def _note(self, differences: Sequence[DifferenceRecord], counts: Counts) -> None:
        self._controller.execute(shadow.note, differences, counts).result(_ANSWER_SECONDS)
        if differences:
            newest = differences[-1]
            self._notify("shadow", "shadow.differed", {"cycle": newest.cycle, "words": list(newest.texts)})

    def _set_progress(self, progress: ShadowProgress) -> None:
        with self._guard:
            self._progress = progress

    # ---------------------------------------------------------------- the process

    def _ask(self, order: Begin | Follow) -> Sequence[DifferenceRecord | None]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "corral.server.whatif.shadow_worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        worker = self._process
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            pickle.dump(order, worker.stdin)
            worker.stdin.flush()
            answer = pickle.load(worker.stdout)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:
            raise WorkerFailed(f"its process has ended: {error}") from error
        if isinstance(answer, str):
            raise WorkerFailed(answer)
        found: Sequence[DifferenceRecord | None] = answer
        return found

    def _end_process(self) -> None:
        worker, self._process = self._process, None
        if worker is not None:
            worker.kill()
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                # A dead process does not read the rest of its input.
                with suppress(BrokenPipeError):
                    if pipe is not None:
                        pipe.close()


def _counted(counts: Counts, found: Sequence[DifferenceRecord | None], decides: bool) -> Counts:
    if not decides:
        return replace(counts, seen=counts.seen + len(found), dropped=counts.dropped + len(found))
    different = sum(item is not None for item in found)
    return replace(
        counts,
        seen=counts.seen + len(found),
        same=counts.same + len(found) - different,
        different=counts.different + different,
    )
