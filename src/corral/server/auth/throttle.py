"""Throttles sign-ins with passwords: pauses grow with every failed attempt.

Failures are counted per user and address, so that wrong passwords from elsewhere never lock a user out. Two further
counts are kept: per address over all users, and per user over all addresses. They apply only if this user has not
signed in from this address before.

Attempts count when they begin and are subtracted when they succeed, so that simultaneous attempts are counted, too.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass

#: An address may be a whole institute behind one router.
ADDRESS_FACTOR = 4
#: Failures for one user from unknown addresses, all addresses together.
USER_FACTOR = 20
FIRST_PAUSE_SECONDS = 1.0
#: Failures are forgotten after so many of the longest pauses without another one.
_FORGOTTEN_AFTER = 10
_MAX_KEYS = 10_000
_ASK_SECONDS = 60.0

Key = tuple[str, str]


@dataclass(slots=True)
class _Failures:
    count: int
    last: float


class LoginThrottle:
    """`attempts` failures are free; then a pause follows each one: 1 s, 2 s, 4 s, up to `longest_seconds`."""

    def __init__(self, *, attempts: int, longest_seconds: float, monotonic: Callable[[], float]) -> None:
        self.attempts = attempts
        self.longest_seconds = longest_seconds
        self._monotonic = monotonic
        self._failed: dict[Key, _Failures] = {}
        #: users and the addresses where they have signed in before
        self._known: set[Key] = set()
        #: when the addresses of a user were last read
        self._asked: dict[str, float] = {}

    def begin(self, user: str, address: str) -> float:
        """Count an attempt and return 0, or return the seconds to wait before the next attempt is allowed."""
        now = self._monotonic()
        if len(self._failed) > _MAX_KEYS:
            self._drop_old(now)
        limits = self._limits(user, network_of(address))
        wait = max(self._wait(key, free, now) for key, free in limits.items())
        if wait > 0:
            return wait
        for key in limits:
            failures = self._failed.setdefault(key, _Failures(0, now))
            failures.count += 1
            failures.last = now
        return 0.0

    def left(self, user: str, address: str) -> int:
        """Attempts from this address that need no pause."""
        counted = [
            free - failures.count
            for key, free in self._limits(user, network_of(address)).items()
            if (failures := self._failed.get(key)) is not None
        ]
        return max(0, min(counted, default=self.attempts))

    def succeeded(self, user: str, address: str) -> None:
        """The attempt succeeded: reset the failures of this pair, and subtract this attempt from the shared counts."""
        place = network_of(address)
        for key in self._limits(user, place):
            failures = self._failed.get(key)
            if failures is not None:
                failures.count -= 1
        self._failed.pop((user, place), None)
        self.know(user, address)

    def withdraw(self, user: str, address: str) -> None:
        """The password could not be checked: the attempt does not count."""
        for key in self._limits(user, network_of(address)):
            failures = self._failed.get(key)
            if failures is not None:
                failures.count -= 1

    def know(self, user: str, address: str) -> None:
        """The user has signed in from this address before: the shared counts do not apply there."""
        if len(self._known) >= _MAX_KEYS:
            self._known.clear()
        self._known.add((user, network_of(address)))

    def needs_known_addresses(self, user: str, address: str) -> bool:
        """Whether the user's known addresses should be read again: at most once a minute per user."""
        now = self._monotonic()
        if (user, network_of(address)) in self._known or now - self._asked.get(user, float("-inf")) < _ASK_SECONDS:
            return False
        if len(self._asked) >= _MAX_KEYS:
            self._asked.clear()
        self._asked[user] = now
        return True

    def _limits(self, user: str, place: str) -> dict[Key, int]:
        """The counts of an attempt, and the failures without pause of each."""
        limits = {(user, place): self.attempts}
        if (user, place) not in self._known:
            # No user name and no address begins like this.
            limits["@address", place] = self.attempts * ADDRESS_FACTOR
            limits["@user", user] = self.attempts * USER_FACTOR
        return limits

    def _wait(self, key: Key, free: int, now: float) -> float:
        failures = self._failed.get(key)
        if failures is None or failures.count < free:
            return 0.0
        if now - failures.last >= self.longest_seconds * _FORGOTTEN_AFTER:
            del self._failed[key]
            return 0.0
        # The exponent is bounded: 2.0 ** 1024 would be an error.
        pause = min(FIRST_PAUSE_SECONDS * 2.0 ** min(failures.count - free, 32), self.longest_seconds)
        return max(failures.last + pause - now, 0.0)

    def _drop_old(self, now: float) -> None:
        kept = {key: item for key, item in self._failed.items() if now - item.last < self.longest_seconds}
        # If there are too many addresses, only the newest half is kept, so that memory is bounded.
        newest = sorted(kept.items(), key=lambda item: item[1].last)[-_MAX_KEYS // 2 :]
        users = {key: item for key, item in kept.items() if key[0] == "@user"}
        self._failed = dict(newest) | (users if len(users) <= _MAX_KEYS // 2 else {})


def network_of(address: str) -> str:
    """The key of an address: its network for IPv6, where one person has many addresses; the address for IPv4."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
