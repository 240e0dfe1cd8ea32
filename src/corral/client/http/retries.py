"""Requests that may be sent again: when, how often, and when to give up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from corral.client.http.errors import ApiProblem, ClientError, ServerUnreachable

Result = TypeVar("Result")

#: The waits between tries: about half a minute in all, as long as a server takes to start again.
DELAYS_SECONDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
_PASSING = frozenset({429, 500, 502, 503, 504})


class Interrupted(ClientError):
    """Somebody wants it to stop."""


def is_passing(error: ClientError) -> bool:
    """Whether the same request may succeed in a moment."""
    return isinstance(error, ServerUnreachable) or (isinstance(error, ApiProblem) and error.status in _PASSING)


class Persistence:
    """Sends idempotent requests until they are answered, or somebody says stop, which no wait outlasts."""

    def __init__(self, delays: tuple[float, ...] = DELAYS_SECONDS) -> None:
        self._delays = delays
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def check(self) -> None:
        """Between two pieces of work."""
        if self._stopped.is_set():
            raise Interrupted("interrupted")

    def keep_trying(self, request: Callable[[], Result], done: Callable[[], int] = lambda: 0) -> Result:
        """`done` says how far a long request has come: one that comes further each time is not given up."""
        delays, before = iter(self._delays), done()
        while True:
            self.check()
            try:
                return request()
            except ClientError as error:
                if done() > before:
                    delays, before = iter(self._delays), done()
                delay = next(delays, None)
                if delay is None or not is_passing(error):
                    raise
            self._stopped.wait(delay)
