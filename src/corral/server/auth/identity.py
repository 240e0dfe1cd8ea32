"""The user of a token or session, without a database read for every request.

Identities are cached for a few seconds. Every change made through this server (a user disabled, a token revoked, a
permission group changed) drops them at once; the short lifetime only covers changes made directly in the store.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from corral.control.live.unit_of_work import Caller
from corral.control.people.permissions import functions_of
from corral.control.ports import Store
from corral.control.records import CredentialKind, CredentialRecord, Function, Role, Scope, UserRecord
from corral.server.auth.secrets import secret_hash

log = logging.getLogger("corral.server.auth")

LIFETIME_SECONDS = 10.0
TOUCH_SECONDS = 60.0
WATCH_SECONDS = 60.0
_MAX_REMEMBERED = 10_000
_THREADS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """A user behind a valid credential."""

    user: str
    role: Role
    must_change_password: bool
    credential_id: str
    kind: CredentialKind
    csrf: str
    expires_at: float | None
    secret_hash: str
    #: what the user's permission group allows
    functions: frozenset[Function]
    #: scope of the credential
    scopes: frozenset[Scope]

    def caller(self, source: str = "") -> Caller:
        """The caller for use cases."""
        is_operator = self.role is Role.OPERATOR
        return Caller(name=self.user, is_operator=is_operator, source=source, functions=self.functions)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Remembered:
    identity: Identity
    until: float


class Identities:
    """`touch` is called for a used credential, from the event loop and at most once a minute per credential."""

    def __init__(
        self,
        store: Store,
        *,
        touch: Callable[[str, float], None],
        now: Callable[[], float],
        lifetime: float = LIFETIME_SECONDS,
    ) -> None:
        self._store = store
        self._touch = touch
        self._now = now
        self._lifetime = lifetime
        self._remembered: dict[str, _Remembered] = {}
        #: incremented with every `forget`, so that a lookup that began before is not cached
        self._generation = 0
        #: threads for look-ups only, so that no slow call delays the sign-in of a request
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="identity")
        self._forgot_all = 0
        self._forgot: dict[str, int] = {}

    def record_use(self, touch: Callable[[str, float], None]) -> None:
        """Records uses of credentials with this function from now on, because this server leads."""
        self._touch = touch

    async def of_secret(self, secret: str, kind: CredentialKind) -> Identity | None:
        """The identity behind a token or session id, or None if it is unknown, expired or its user disabled."""
        return await self.of_hash(secret_hash(secret), kind)

    async def current(self, identity: Identity) -> Identity | None:
        """The caller with the present rights, or None if access was lost; for long answers."""
        return await self.of_hash(identity.secret_hash, identity.kind)

    def watched(self, identity: Identity) -> WatchedIdentity:
        """A view of the caller that is checked again during answers of hours, such as event streams."""
        return WatchedIdentity(self, identity, now=self._now)

    def changes_of(self, user: str) -> tuple[int, int]:
        """Changes as soon as the user's rights may have changed."""
        return self._forgot_all, self._forgot.get(user, 0)

    def forget(self, user: str) -> None:
        """The user or a credential of the user has changed: read the store again."""
        self._generation += 1
        self._forgot[user] = self._generation
        self._remembered = {key: entry for key, entry in self._remembered.items() if entry.identity.user != user}

    def forget_all(self) -> None:
        """Rights of many users have changed, for example of a permission group."""
        self._generation += 1
        self._forgot_all = self._generation
        self._forgot = {}
        self._remembered = {}

    async def of_hash(self, hashed: str, kind: CredentialKind) -> Identity | None:
        """Like `of_secret`, for the hash of a secret."""
        now = self._now()
        entry = self._remembered.get(hashed)
        if entry is not None and now < entry.until and entry.identity.kind is kind:
            return entry.identity
        generation = self._generation
        found = await asyncio.get_running_loop().run_in_executor(self._threads, self._look_up, hashed)
        if found is None:
            self._remembered.pop(hashed, None)
            return None
        credential, user, functions = found
        if credential.kind is not kind or user.disabled or (credential.expires_at or now + 1) <= now:
            self._remembered.pop(hashed, None)
            return None
        identity = _identity(credential, user, functions)
        if generation == self._generation:
            self._remember(hashed, identity, now)
        if credential.last_used_at is None or now - credential.last_used_at >= TOUCH_SECONDS:
            self._touch(credential.id, now)
        return identity

    def _remember(self, hashed: str, identity: Identity, now: float) -> None:
        if len(self._remembered) >= _MAX_REMEMBERED:
            self._remembered.clear()
        until = min(now + self._lifetime, identity.expires_at or now + self._lifetime)
        self._remembered[hashed] = _Remembered(identity=identity, until=until)

    def _look_up(self, hashed: str) -> tuple[CredentialRecord, UserRecord, frozenset[Function]] | None:
        with self._store.read() as tables:
            credential = tables.credentials.by_hash(hashed)
            user = tables.people.user(credential.user) if credential is not None else None
            if credential is None or user is None:
                return None
            return credential, user, functions_of(tables, user)


class WatchedIdentity:
    """The identity of a long answer: read again when the user has changed, when the credential expires, and once a
    minute. Hundreds of streams must not read the store for every event."""

    def __init__(self, identities: Identities, identity: Identity, *, now: Callable[[], float]) -> None:
        self._identities = identities
        self._identity = identity
        self._now = now
        self._changes = identities.changes_of(identity.user)
        self._looked_at = now()

    async def current(self) -> Identity | None:
        """The caller with the present rights, or None if access was lost."""
        now, changes = self._now(), self._identities.changes_of(self._identity.user)
        is_over = self._identity.expires_at is not None and self._identity.expires_at <= now
        if changes == self._changes and not is_over and 0 <= now - self._looked_at < WATCH_SECONDS:
            return self._identity
        found = await self._identities.current(self._identity)
        if found is not None:
            self._identity, self._changes, self._looked_at = found, changes, now
        return found


def _identity(credential: CredentialRecord, user: UserRecord, functions: frozenset[Function]) -> Identity:
    is_token = credential.kind is CredentialKind.TOKEN
    return Identity(
        user=user.name,
        role=user.role,
        must_change_password=user.must_change_password,
        credential_id=credential.id,
        kind=credential.kind,
        csrf=credential.csrf,
        expires_at=credential.expires_at,
        secret_hash=credential.secret_hash,
        functions=functions,
        scopes=frozenset(credential.scopes if is_token else (Scope.FULL,)),
    )
