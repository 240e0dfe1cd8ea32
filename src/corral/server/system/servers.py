"""The servers over one store: which leads since when, how far the others are behind, and how the leader steps down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from corral.control.errors import Refusal
from corral.control.ports import LeaseRecord, ServerRecord, ServerRegistry
from corral.core.alerts.facts import ServerFact

#: A server that was not seen for longer is not alive.
ALIVE_SECONDS = 5.0


class ServerRole(StrEnum):
    LEADER = "leader"
    STANDBY = "standby"


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerStatus:
    record: ServerRecord
    role: ServerRole
    is_alive: bool
    #: events that it has not followed yet
    behind_events: int
    #: None for a standby
    leads_since: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ServersSeen:
    servers: Sequence[ServerStatus]
    #: how often the leader has changed, and when it changed last
    leader_changes: int
    changed_at: float | None

    @property
    def standbys(self) -> list[str]:
        """Servers that could lead."""
        waiting = [server for server in self.servers if server.role is ServerRole.STANDBY and server.is_alive]
        return [server.record.name for server in waiting if server.record.may_lead]


class NoStandby(Refusal):
    """No other server could lead."""

    slug = "no-standby"
    status = 409


class Servers:
    """The servers over one store. Without a registry there is one server only, which leads."""

    def __init__(
        self,
        own: ServerRecord,
        *,
        last_event: Callable[[], int],
        registry: ServerRegistry | None = None,
        step_down: Callable[[], None] = lambda: None,
    ) -> None:
        self.own = own
        self._last_event = last_event
        self._registry = registry
        self._step_down = step_down

    @property
    def are_several(self) -> bool:
        return self._registry is not None

    def seen(self) -> ServersSeen:
        """Reads the store."""
        if self._registry is None:
            alone = ServerStatus(
                record=self.own,
                role=ServerRole.LEADER,
                is_alive=True,
                behind_events=0,
                leads_since=self.own.started_at,
            )
            return ServersSeen(servers=[alone], leader_changes=0, changed_at=None)
        return shown_servers(self._registry.all(), self._registry.lease(), self._last_event())

    def facts(self) -> Sequence[ServerFact]:
        """The leader as a fact for alerts, if there are several servers."""
        if self._registry is None:
            return ()
        seen = self.seen()
        leaders = [server for server in seen.servers if server.role is ServerRole.LEADER]
        return [ServerFact(id=server.record.name, standbys=len(seen.standbys)) for server in leaders]

    def check_standby(self) -> None:
        """Reads the store. Raises NoStandby."""
        if not self.seen().standbys:
            raise NoStandby("no other server is alive that could lead: start a standby first")

    def step_down(self) -> None:
        """Ends this server's leadership, so that another server can lead."""
        self._step_down()


def shown_servers(records: Sequence[ServerRecord], lease: LeaseRecord, last_event: int) -> ServersSeen:
    servers = []
    for record in records:
        leads = bool(lease.token) and record.name == lease.server
        servers.append(
            ServerStatus(
                record=record,
                role=ServerRole.LEADER if leads else ServerRole.STANDBY,
                is_alive=record.unseen_seconds < ALIVE_SECONDS,
                # The leader writes the events.
                behind_events=0 if leads else max(0, last_event - record.place),
                leads_since=lease.since if leads else None,
            )
        )
    return ServersSeen(servers=servers, leader_changes=lease.changes, changed_at=lease.since or None)
