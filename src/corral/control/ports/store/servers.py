"""Several servers over one store: which there are, and the lease of the one that leads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerRecord:
    """A server, as it describes itself."""

    #: unique
    name: str
    #: at which the other servers reach it
    url: str
    host: str
    pid: int
    version: str
    #: the name of its sessions in the database, and its key for forwarded requests: both random
    session: str
    key: str
    may_lead: bool
    #: why it may not lead
    detail: str = ""
    #: the last event that it has followed
    place: int = 0
    #: by the clock of the database
    started_at: float = 0.0
    #: how long ago it was last seen, by the clock of the database
    unseen_seconds: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseRecord:
    #: the server that leads, and the random token of its leadership; empty: none
    server: str = ""
    token: str = ""
    #: counted up by the leader
    renewals: int = 0
    #: since when, by the clock of the database
    since: float = 0.0
    #: how often the leader has changed
    changes: int = 0
    #: whether the database still has the session that renews the lease
    has_session: bool = True


class ServerRegistry(Protocol):
    """Each call is a transaction of its own, beside the writers. All raise StoreUnavailable."""

    def announce(self, server: ServerRecord) -> None:
        """Add this server, or replace what an earlier process of the same name has said."""

    def seen(self, name: str, place: int) -> bool:
        """The server is alive, and has followed the events up to `place`. False if the store has no such server."""

    def leave(self, name: str, session: str) -> None:
        """Remove a server that ends, unless a newer process has its name."""

    def all(self) -> list[ServerRecord]: ...

    def lease(self) -> LeaseRecord: ...

    def acquire(self, observed: LeaseRecord, server: ServerRecord, token: str) -> bool:
        """Take the lease if it is as it was observed. Ends the sessions of the former leader and raises the epoch: its
        writes fail from now on."""

    def renew(self, token: str) -> bool:
        """False if another server has the lease."""

    def release(self, token: str) -> None: ...

    def wait_for_commit(self, timeout_seconds: float) -> None:
        """Returns after the next commit of the leader, or after the timeout."""

    def close(self) -> None: ...
