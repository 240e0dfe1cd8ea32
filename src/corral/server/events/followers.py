"""Wakes the followers of the event stream: not all at once, and not for every single event.

Hundreds of browsers may follow. Each takes some of the loop's time for every update, so updates are collected for a
time that grows with the number of followers, and followers are woken in small groups, between which the loop answers
requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

#: Followers that are woken before the loop does other work.
PORTION = 20
#: Between two rounds, for each follower: a few followers receive each event at once, 500 of them wait up to 0.25 s.
PACE_SECONDS_EACH = 0.0005
#: How often followers without updates are checked for a due keep-alive.
_TICK_SECONDS = 1.0


class Follower:
    """One follower; used on the event loop."""

    def __init__(self, ping_seconds: float) -> None:
        self.ping_seconds = ping_seconds
        self.sent_at = asyncio.get_running_loop().time()
        self._waiter: asyncio.Future[None] | None = None

    async def wait(self) -> None:
        """Wait until there may be updates, or a keep-alive is due."""
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Followers:
    def __init__(self) -> None:
        self._followers: dict[Follower, None] = {}
        #: in the loop's time
        self._last_round = float("-inf")
        self._next_round: asyncio.TimerHandle | None = None
        self._next_tick: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._followers)

    def add(self, follower: Follower) -> None:
        self._followers[follower] = None
        if self._next_tick is None:
            self._tick_later(follower.ping_seconds)

    def remove(self, follower: Follower) -> None:
        self._followers.pop(follower, None)

    def wake_soon(self) -> None:
        """There are updates: wake followers at once if the last round is long enough ago, otherwise with later
        updates."""
        if self._next_round is not None or not self._followers:
            return
        loop = asyncio.get_running_loop()
        pace = PACE_SECONDS_EACH * len(self._followers)
        delay = max(0.0, self._last_round + pace - loop.time())
        self._next_round = loop.call_later(delay, self._begin_round)

    def wake_all(self) -> None:
        for follower in self._followers:
            follower.wake()

    def _begin_round(self) -> None:
        self._last_round = asyncio.get_running_loop().time()
        self._next_round = None
        self._wake(list(self._followers), 0)

    def _wake(self, followers: Sequence[Follower], start: int) -> None:
        for follower in followers[start : start + PORTION]:
            follower.wake()
        if start + PORTION < len(followers):
            asyncio.get_running_loop().call_soon(self._wake, followers, start + PORTION)

    def _tick_later(self, ping_seconds: float) -> None:
        delay = min(_TICK_SECONDS, ping_seconds)
        self._next_tick = asyncio.get_running_loop().call_later(delay, self._tick)

    def _tick(self) -> None:
        """Wake followers with a due keep-alive; their connections may be dead without notice."""
        self._next_tick = None
        now = asyncio.get_running_loop().time()
        for follower in self._followers:
            if now - follower.sent_at >= follower.ping_seconds:
                follower.wake()
        if self._followers:
            self._tick_later(min(follower.ping_seconds for follower in self._followers))
