"""Connections that stay open for hours: WebSockets, and logs that are followed. Each user has a limited number of them.

The limit per address (`connections.py`) ends when a connection becomes a WebSocket, and a whole institute may share an
address; so a user's connections are counted here, wherever they come from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from corral.server.http.problems import Problem

_RETRY_SECONDS = 30


class HeldConnections:
    def __init__(self, per_user: int) -> None:
        self._per_user = per_user
        self._counts: Counter[str] = Counter()

    @contextmanager
    def held(self, user: str) -> Iterator[None]:
        """Count a connection of the user. Raises a 429 problem beyond the limit."""
        if self._counts[user] >= self._per_user:
            raise Problem(
                429,
                "Too many connections",
                f"You have {self._per_user} tunnels, shells, pages of apps and followed logs open: close some. The "
                "limit is server.max_connections_per_user.",
                slug="too-many-connections",
                numbers={"limit": self._per_user},
                headers={"Retry-After": str(_RETRY_SECONDS)},
            )
        self._counts[user] += 1
        try:
            yield
        finally:
            self._counts[user] -= 1
            if not self._counts[user]:
                del self._counts[user]


class HeldStream(StreamingResponse):
    """A stream of events that counts as a connection of the user while it is sent."""

    def __init__(self, content: AsyncIterator[str], held: HeldConnections, user: str) -> None:
        super().__init__(content, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        self._held = held
        self._user = user

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with self._held.held(self._user):
                await super().__call__(scope, receive, send)
        except Problem as problem:
            await problem.response()(scope, receive, send)
