"""Retries of idempotent requests: delays, number of tries, and interruption."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from corral.client.http.errors import ApiProblem, ClientError, ServerUnreachable

Result = TypeVar("Result")

#: Delays between tries: about half a minute in all, as long as a restart of the server takes.
DELAYS_SECONDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
_TRANSIENT = frozenset({429, 500, 502, 503, 504})


class Interrupted(ClientError):
    """The user has interrupted the transfer."""


def is_transient(error: ClientError) -> bool:
    """Whether the same request may succeed in a moment."""
    return isinstance(error, ServerUnreachable) or (isinstance(error, ApiProblem) and error.status in _TRANSIENT)


class Persistence:
    """Sends idempotent requests until they are answered, or until `stop` is called, which also ends a delay."""

    def __init__(self, delays: tuple[float, ...] = DELAYS_SECONDS) -> None:
        self._delays = delays
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def check(self) -> None:
        """Raise if `stop` was called. Called between two pieces of work."""
        if self._stopped.is_set():
            raise Interrupted("interrupted")

    def keep_trying(self, request: Callable[[], Result], done: Callable[[], int] = lambda: 0) -> Result:
        """Retry a request. `done` returns how far a long request has come; progress resets the delays."""
        delays, before = iter(self._delays), done()
        while True:
            self.check()
            try:
                return request()
            except ClientError as error:
                if done() > before:
                    delays, before = iter(self._delays), done()
                delay = next(delays, None)
                if delay is None or not is_transient(error):
                    raise
            self._stopped.wait(delay)
