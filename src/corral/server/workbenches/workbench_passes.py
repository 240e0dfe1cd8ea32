"""Access of a browser that is signed in at the console to a workbench, whose pages have an origin of their own.

The console issues a ticket: for one user and one workbench, valid once and for some seconds. The workbench's origin
exchanges it for a cookie that gives this browser access to that workbench only: the cookie names the session and
expires with it, but is not a session. The workbench never sees the session itself.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from cryptography.fernet import Fernet, InvalidToken

from corral.server.auth.secret_box import SecretBox
from corral.server.auth.secrets import secret_hash

#: Lifetime of a ticket.
TICKET_SECONDS = 30.0
#: Lifetime of a cookie, and its age at which a used cookie is renewed.
COOKIE_SECONDS = 4 * 3600
RENEW_SECONDS = 600
_MAX_TICKETS = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Pass:
    """A browser's access to one workbench."""

    job_id: str
    #: the hash of the session at the console
    session_hash: str
    #: the console's own origin, where this browser is signed in
    console: str
    #: the hash of the link to an app that this browser came by; "" for the owner and members of groups
    link: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """The content of a ticket: a pass, and the first path."""

    granted: Pass
    path: str


class WorkbenchPasses:
    def __init__(
        self, box: SecretBox, *, now: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._box = box
        self._now = now
        self._monotonic = monotonic
        self._made: Fernet | None = None
        #: by the hash of the ticket, with its expiry; the oldest first
        self._tickets: dict[str, tuple[float, Entry]] = {}

    def issue(self, entry: Entry) -> str:
        now = self._monotonic()
        while self._tickets and (len(self._tickets) >= _MAX_TICKETS or next(iter(self._tickets.values()))[0] <= now):
            del self._tickets[next(iter(self._tickets))]
        ticket = secrets.token_urlsafe(32)
        self._tickets[secret_hash(ticket)] = (now + TICKET_SECONDS, entry)
        return ticket

    def redeem(self, ticket: str, job_id: str) -> Entry | None:
        """Uses up a ticket. None if it is unknown, used, expired, or for another workbench."""
        until, entry = self._tickets.pop(secret_hash(ticket), (0.0, None))
        if entry is None or until <= self._monotonic() or entry.granted.job_id != job_id:
            return None
        return entry

    def sealed(self, granted: Pass) -> str:
        """The value of the cookie. Raises SecretUnreadable."""
        return self._seal.encrypt_at_time(json.dumps(asdict(granted)).encode(), int(self._now())).decode("ascii")

    def opened(self, cookie: str, job_id: str) -> tuple[Pass, float] | None:
        """The pass and its age in seconds, if it is valid for this workbench; it may have expired."""
        data = cookie.encode("ascii", "replace")
        try:
            content = self._seal.decrypt(data)
            age = self._now() - self._seal.extract_timestamp(data)
        except InvalidToken:
            return None
        granted = Pass(**json.loads(content))
        return (granted, max(0.0, age)) if granted.job_id == job_id else None

    @property
    def _seal(self) -> Fernet:
        # Read once: every request needs it, and it is in a file.
        if self._made is None:
            self._made = Fernet(self._box.key_for("workbench cookies"))
        return self._made
