"""Event streams that continue over broken connections and restarts of the server.

This module decides how long to retry, and resumes a stream without gaps or repetitions.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from corral.client.http.errors import ClientError
from corral.client.http.retries import is_transient
from corral.client.http.sse import ServerEvent
from corral.client.http.transport import Transport

#: Long enough for a restart or an upgrade of the server, which jobs survive.
PATIENCE_SECONDS = 300.0
FIRST_DELAY_SECONDS = 0.2
LONGEST_DELAY_SECONDS = 3.0


@dataclass(frozen=True, kw_only=True, slots=True)
class LogText:
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LogEnd:
    """The job has ended and its whole log was read."""

    state: str
    exit_code: int | None


class Patience:
    """The back-off of retries while no server answers, and the time after which they end. A server that answers with
    503, such as during a change of the leader or a restart of the database, counts as one that does not answer."""

    def __init__(
        self,
        *,
        seconds: float = PATIENCE_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        on_lost: Callable[[ClientError], None] | None = None,
    ) -> None:
        self._seconds = seconds
        self._sleep = sleep
        self._clock = clock
        self._on_lost = on_lost
        self._lost_at: float | None = None
        #: whether the server was ever reached
        self.was_reached = False
        self._delay = FIRST_DELAY_SECONDS

    def answered(self) -> None:
        """A server has answered: a later loss has the whole time again."""
        self.was_reached = True
        self._lost_at = None

    def reached(self) -> None:
        """A server has answered with something new: the next pause is short."""
        self.answered()
        self._delay = FIRST_DELAY_SECONDS

    def lost(self, error: ClientError) -> None:
        """Wait before the next try. Raises the error after the time limit, and at once if no server was ever reached or
        another try cannot help."""
        if not self.was_reached or not is_transient(error):
            raise error
        now = self._clock()
        if self._lost_at is None:
            self._lost_at = now
            if self._on_lost is not None:
                self._on_lost(error)
        if now - self._lost_at >= self._seconds:
            raise error
        self.pause()

    def pause(self) -> None:
        self._sleep(self._delay)
        self._delay = min(self._delay * 2, LONGEST_DELAY_SECONDS)


def follow_events(
    transport: Transport,
    path: str,
    params: dict[str, Any] | None = None,
    *,
    patience: Patience,
    last_event_id: str = "",
) -> Iterator[ServerEvent]:
    """Yields events without end; a new connection continues after the last event. The first connection must succeed."""
    last_id = last_event_id
    while True:
        try:
            for event in transport.events(path, params, last_event_id=last_id, on_open=patience.reached):
                last_id = event.id or last_id
                yield event
            # the server closed the stream, as it does when it stops
            patience.pause()
        except ClientError as error:
            patience.lost(error)


def follow_log(
    transport: Transport, path: str, params: dict[str, Any], *, patience: Patience
) -> Iterator[LogText | LogEnd]:
    """Yields the text of a log as it is written, then its end. Event ids are offsets in the log, so a new connection
    continues after the last event."""
    for event in follow_events(transport, path, params, patience=patience):
        if event.event == "log":
            yield LogText(text=str(json.loads(event.data)["text"]))
        elif event.event == "end":
            end = json.loads(event.data)
            yield LogEnd(state=str(end["state"]), exit_code=end.get("exit_code"))
            return
