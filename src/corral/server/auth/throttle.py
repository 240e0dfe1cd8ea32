"""A brake on guessing passwords: so many failed sign-ins per user and per address within a sliding window.

Attempts count when they begin and are taken back when they succeed, so that many at once cannot slip through together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

#: An address may be a whole institute behind one router.
ADDRESS_FACTOR = 4
_MAX_KEYS = 10_000


class LoginThrottle:
    def __init__(self, *, attempts: int, window_seconds: float, monotonic: Callable[[], float]) -> None:
        self._attempts = attempts
        self._window = window_seconds
        self._monotonic = monotonic
        self._seen: dict[tuple[str, str], deque[float]] = {}

    def begin(self, user: str, address: str) -> float:
        """Count an attempt and give 0, or give the seconds to wait before the next one is allowed."""
        now = self._monotonic()
        if len(self._seen) > _MAX_KEYS:
            self._drop_old(now)
        keys = self._keys(user, address)
        wait = max(self._wait(key, limit, now) for key, limit in keys)
        if wait > 0:
            return wait
        for key, _ in keys:
            self._seen.setdefault(key, deque()).append(now)
        return 0.0

    def succeeded(self, user: str, address: str) -> None:
        """The attempt was no guess: what this user failed before is forgiven, the address gets this one back."""
        (user_key, _), (address_key, _) = self._keys(user, address)
        self._seen.pop(user_key, None)
        times = self._seen.get(address_key)
        if times:
            times.pop()

    def _keys(self, user: str, address: str) -> tuple[tuple[tuple[str, str], int], tuple[tuple[str, str], int]]:
        return (("user", user), self._attempts), (("address", address), self._attempts * ADDRESS_FACTOR)

    def _wait(self, key: tuple[str, str], limit: int, now: float) -> float:
        times = self._seen.get(key)
        if times is None:
            return 0.0
        while times and times[0] <= now - self._window:
            times.popleft()
        return times[0] + self._window - now if len(times) >= limit else 0.0

    def _drop_old(self, now: float) -> None:
        self._seen = {key: times for key, times in self._seen.items() if times and times[-1] > now - self._window}
