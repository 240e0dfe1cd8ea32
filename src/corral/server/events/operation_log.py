"""Operations in the server's own log: what users changed, and what failed.

The audit log has every event with its details; these lines stand beside the server's errors, in the order in which they
happened. Events of one commit that differ in their subject only share a line, so that a burst of submissions is cheap.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from corral.control.live.unit_of_work import PLATFORM
from corral.control.records import EventRecord

log = logging.getLogger("corral.operations")

#: So many subjects are named in a line.
_NAMED = 5
_FAILED = ".failed"


def log_operations(events: Sequence[EventRecord]) -> None:
    if not log.isEnabledFor(logging.INFO):
        return
    together: dict[tuple[str, str], list[str]] = {}
    for event in events:
        if event.actor != PLATFORM or event.action.endswith(_FAILED):
            together.setdefault((event.actor, event.action), []).append(event.subject)
    for (actor, action), subjects in together.items():
        more = f" and {len(subjects) - _NAMED} more" if len(subjects) > _NAMED else ""
        log.info("%s: %s %s%s", actor, action, ", ".join(subjects[:_NAMED]), more)
