"""Passwords: hashed with Argon2, slowly and on threads of their own, never on the event loop.

Decides how passwords are stored and compared, not who may sign in. `core/people/password_rules` decides which passwords
are accepted.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from corral.server.http.problems import stopping

Result = TypeVar("Result")


class Passwords:
    """Two threads, because each hash takes 64 MiB while it is computed: more threads could exhaust the memory."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="passwords")
        self._is_closed = False

    def hash_now(self, password: str) -> str:
        """Hashes at start-up, when there is no event loop yet."""
        return self._hasher.hash(password)

    async def hash(self, password: str) -> str:
        return await self._computed(self._hasher.hash, password)

    async def matches(self, password_hash: str | None, password: str) -> bool:
        """Takes as long for a user that does not exist (None) as for one that exists."""
        return await self._computed(self._matches, password_hash, password)

    def close(self) -> None:
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _computed(self, function: Callable[..., Result], *args: str | None) -> Result:
        """Raises a 503 problem when the server stops."""
        try:
            computing = self._threads.submit(function, *args)
        except RuntimeError:
            raise stopping() from None
        try:
            return await asyncio.wrap_future(computing)
        except asyncio.CancelledError:
            if not self._is_closed:
                raise
            raise stopping() from None

    @cached_property
    def _nobodys_hash(self) -> str:
        return self._hasher.hash(secrets.token_urlsafe(16))

    def _matches(self, password_hash: str | None, password: str) -> bool:
        try:
            self._hasher.verify(password_hash or self._nobodys_hash, password)
        except (VerificationError, InvalidHashError):
            return False
        return password_hash is not None


def one_time_password() -> str:
    """Random, and without letters that look alike, because a person types it."""
    alphabet = "abcdefghijkmnpqrstuvwxyz23456789"
    return "-".join("".join(secrets.choice(alphabet) for _ in range(5)) for _ in range(4))
