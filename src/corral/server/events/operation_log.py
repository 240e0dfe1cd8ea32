"""Operations in the server's own log: what users changed, and what failed.

The audit log has every event with its details; these lines stand beside the server's errors. Operations that differ in
their subject only share a line, so that a burst of submissions is cheap. Its own thread writes them: the controller
waits for no disk and no terminal.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence

from corral.control.live.unit_of_work import PLATFORM
from corral.control.live.worker import Worker
from corral.control.records import EventRecord

log = logging.getLogger("corral.operations")

#: So many subjects are named in a line.
_NAMED = 5
_FAILED = ".failed"
#: What cannot be written for so long is dropped, the oldest first: the audit log has it.
_MOST_WAITING = 10_000
_REST_SECONDS = 3600.0


class OperationLog:
    def __init__(self) -> None:
        self._waiting: deque[EventRecord] = deque(maxlen=_MOST_WAITING)
        self._worker = Worker(
            "operation log", self.write, every_seconds=_REST_SECONDS, first_after=_REST_SECONDS, at_end=self.write
        )

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def note(self, events: Sequence[EventRecord]) -> None:
        """Take committed events, from any thread. Never blocks."""
        found = [event for event in events if event.actor != PLATFORM or event.action.endswith(_FAILED)]
        if found and log.isEnabledFor(logging.INFO):
            self._waiting.extend(found)
            self._worker.wake()

    def write(self) -> None:
        together: dict[tuple[str, str], list[str]] = {}
        while self._waiting:
            event = self._waiting.popleft()
            together.setdefault((event.actor, event.action), []).append(event.subject)
        for (actor, action), subjects in together.items():
            more = f" and {len(subjects) - _NAMED} more" if len(subjects) > _NAMED else ""
            log.info("%s: %s %s%s", actor, action, ", ".join(subjects[:_NAMED]), more)
