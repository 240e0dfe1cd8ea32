"""Events as they are sent to followers: each is encoded once for all followers.

Followers with the same rights get the same bytes. `visibility` decides who may see which event.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from corral.control.live.unit_of_work import Caller
from corral.control.records import EventRecord, Function
from corral.server.events.stream import sse
from corral.server.events.visibility import may_see_event
from corral.server.schemas.fleet.nodes import event_view

_KEPT_EVENTS = 4096
_KEPT_BATCHES = 256

#: callers with the same view: operators; otherwise a name, and whether others' jobs are visible
_Audience = tuple[str, bool]


class EventTexts:
    """Used on the event loop only."""

    def __init__(self) -> None:
        self._events: OrderedDict[int, bytes] = OrderedDict()
        self._batches: OrderedDict[tuple[int, int, _Audience], bytes] = OrderedDict()
        #: how many events were encoded so far
        self.encoded = 0

    def of(self, events: Sequence[EventRecord], caller: Caller) -> bytes:
        """The events that the caller may see, as concatenated server-sent events."""
        if not events:
            return b""
        audience = ("", True) if caller.is_operator else (caller.name, caller.may(Function.SEE_OTHERS_JOBS))
        # Ids are consecutive: the first and the last one identify the batch.
        key = (events[0].id, events[-1].id, audience)
        text = self._batches.get(key)
        if text is None:
            text = b"".join(self._text(event) for event in events if may_see_event(event, caller))
            self._batches[key] = text
            if len(self._batches) > _KEPT_BATCHES:
                self._batches.popitem(last=False)
        return text

    def _text(self, event: EventRecord) -> bytes:
        text = self._events.get(event.id)
        if text is None:
            text = sse(event.action, event_view(event).model_dump(), event.id).encode("utf-8", "backslashreplace")
            self.encoded += 1
            self._events[event.id] = text
            if len(self._events) > _KEPT_EVENTS:
                self._events.popitem(last=False)
        return text
