"""How a browser that is signed in at the console comes to a workbench, whose pages have an origin of their own.

The console hands out a ticket: for one user and one workbench, good once and for some seconds. The workbench's origin
takes it and sets a cookie that lets this browser into that workbench and nowhere else: it names the session, and ends
with it, but is no session. Nothing that the workbench serves ever sees the session itself.
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

#: How long a ticket is good.
TICKET_SECONDS = 30.0
#: How long a cookie is good, and when it is replaced by a new one while it is in use.
COOKIE_SECONDS = 4 * 3600
RENEW_SECONDS = 600
_MAX_TICKETS = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Pass:
    """A browser's way into one workbench."""

    job_id: str
    #: of the session at the console
    session_hash: str
    #: the console's own origin, where this browser is signed in
    console: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """What a ticket is good for: a pass, and the path to begin with."""

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
        #: by the hash of the ticket, with the moment when it is over; the oldest first
        self._tickets: dict[str, tuple[float, Entry]] = {}

    def issue(self, entry: Entry) -> str:
        now = self._monotonic()
        while self._tickets and (len(self._tickets) >= _MAX_TICKETS or next(iter(self._tickets.values()))[0] <= now):
            del self._tickets[next(iter(self._tickets))]
        ticket = secrets.token_urlsafe(32)
        self._tickets[secret_hash(ticket)] = (now + TICKET_SECONDS, entry)
        return ticket

    def redeem(self, ticket: str, job_id: str) -> Entry | None:
        """None if it is unknown, used, too old, or for another workbench. Whatever it was, it is used now."""
        until, entry = self._tickets.pop(secret_hash(ticket), (0.0, None))
        if entry is None or until <= self._monotonic() or entry.granted.job_id != job_id:
            return None
        return entry

    def sealed(self, granted: Pass) -> str:
        """The value of the cookie. Raises SecretUnreadable."""
        return self._seal.encrypt_at_time(json.dumps(asdict(granted)).encode(), int(self._now())).decode("ascii")

    def opened(self, cookie: str, job_id: str) -> tuple[Pass, float] | None:
        """The pass and its age in seconds, if it is one of ours for this workbench; it may be too old."""
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
        # Once: it is needed for every request, and reads a file.
        if self._made is None:
            self._made = Fernet(self._box.key_for("workbench cookies"))
        return self._made
