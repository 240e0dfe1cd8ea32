"""The ticket that a browser keeps during a sign-in with a provider: encrypted, short-lived, for one use.

The key exists as long as the process. After a restart, users start their sign-in again.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from cryptography.fernet import Fernet, InvalidToken

#: Lifetime of a ticket.
TICKET_SECONDS = 600
_MAX_USED = 100_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Ticket:
    """One sign-in in progress."""

    provider: str
    state: str
    nonce: str
    #: PKCE's secret; the provider got its hash
    verifier: str
    redirect_uri: str
    #: path of this server to open afterwards
    next: str


class TicketOffice:
    def __init__(self, *, now: Callable[[], float] = time.time) -> None:
        self._seal = Fernet(Fernet.generate_key())
        self._now = now
        #: states that were used, until their tickets expire
        self._used: dict[str, float] = {}

    def issue(self, *, provider: str, redirect_uri: str, next: str) -> Ticket:
        return Ticket(
            provider=provider,
            state=secrets.token_urlsafe(32),
            nonce=secrets.token_urlsafe(32),
            verifier=secrets.token_urlsafe(48),
            redirect_uri=redirect_uri,
            next=next,
        )

    def sealed(self, ticket: Ticket) -> str:
        return self._seal.encrypt_at_time(json.dumps(asdict(ticket)).encode(), int(self._now())).decode("ascii")

    def opened(self, cookie: str) -> Ticket | None:
        """Decrypts a ticket. None if it is not valid, was changed, or has expired."""
        try:
            content = self._seal.decrypt_at_time(cookie.encode("utf-8", "replace"), TICKET_SECONDS, int(self._now()))
        except InvalidToken:
            return None
        return Ticket(**json.loads(content))

    def use(self, ticket: Ticket) -> bool:
        """Whether the ticket is used for the first time."""
        now = self._now()
        if len(self._used) >= _MAX_USED:
            self._used = {state: until for state, until in self._used.items() if until > now}
        if self._used.get(ticket.state, 0.0) > now:
            return False
        self._used[ticket.state] = now + TICKET_SECONDS
        return True


def safe_next(path: str | None) -> str | None:
    """The path if it is on this server, otherwise None. Browsers read // and /\\ as the start of another host."""
    if path is None or len(path) > 2000 or not path.startswith("/") or path[1:2] in ("/", "\\"):
        return None
    if "\\" in path or any(ord(char) < 0x21 or ord(char) == 0x7F for char in path):
        return None
    return path
