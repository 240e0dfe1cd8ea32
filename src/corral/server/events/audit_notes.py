"""Notes for the audit log about what may happen thousands of times a minute: failed sign-ins, reads, deletions.

The first of its kind is written at once. Repeats by the same caller on the same subject are counted for a while, and
written as one line. A request never waits for its note.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from corral.control.live.controller import Controller
from corral.control.live.unit_of_work import Caller
from corral.control.live.worker import log_failure
from corral.control.people import audit

log = logging.getLogger("corral.server.events.audit_notes")

WINDOW_SECONDS = 300.0
#: Windows that are open at a time; beyond, repeats of an action are counted together for all callers.
_MAX_WINDOWS = 1000
_MAX_ITEMS = 50

#: writes one line: caller, action, subject, owner, detail
Write = Callable[[Caller, str, str, str, Mapping[str, Any]], None]
_Key = tuple[str, str, str, str]


@dataclass(kw_only=True, slots=True)
class _Window:
    caller: Caller
    owner: str
    times: int = 0
    items: list[str] = field(default_factory=list)


class AuditNotes:
    """Used on the event loop only."""

    def __init__(self, write: Write, *, window_seconds: float = WINDOW_SECONDS) -> None:
        self._write = write
        self._window_seconds = window_seconds
        self._windows: dict[_Key, _Window] = {}

    def note(
        self,
        caller: Caller,
        action: str,
        subject: str,
        *,
        owner: str = "",
        item: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """`item` is what differs between repeats, such as the path of a file: the first ones are kept."""
        key = (caller.name, caller.source, action, subject)
        window = self._windows.get(key)
        if window is None and len(self._windows) >= _MAX_WINDOWS:
            caller, owner = Caller(name=caller.name), ""
            key = (caller.name, "", action, "many")
            window = self._windows.get(key)
        if window is not None:
            window.times += 1
            if item is not None and len(window.items) < _MAX_ITEMS and item not in window.items:
                window.items.append(item)
            return
        self._windows[key] = _Window(caller=caller, owner=owner)
        asyncio.get_running_loop().call_later(self._window_seconds, self._end, key)
        self._write(caller, action, key[3], owner, {**(detail or {}), **({} if item is None else {"items": [item]})})

    def read(self, caller: Caller, action: str, subject: str, *, owner: str, item: str | None = None) -> None:
        """An operator has read something of another user's. What is shared, or one's own, is nobody's business."""
        if caller.is_operator and owner not in ("", caller.name):
            self.note(caller, action, subject, owner=owner, item=item)

    def close(self) -> None:
        """Write what was counted so far."""
        for key in list(self._windows):
            self._end(key)

    def _end(self, key: _Key) -> None:
        window = self._windows.pop(key, None)
        if window is None or not window.times:
            return
        detail: dict[str, Any] = {"times": window.times}
        if window.items:
            detail["items"] = window.items
        self._write(window.caller, key[2], key[3], window.owner, detail)


def written_by(controller: Controller) -> Write:
    def write(caller: Caller, action: str, subject: str, owner: str, detail: Mapping[str, Any]) -> None:
        try:
            answer = controller.execute(audit.note, caller, action, subject, owner, detail)
        except RuntimeError as error:
            log.error("%s of %s by %s is not in the audit log: %s", action, subject, caller.name, error)
        else:
            answer.add_done_callback(log_failure(log, "an entry of the audit log could not be written", ignored=()))

    return write
