"""API schemas: the servers over one store."""

from __future__ import annotations

from pydantic import Field

from corral.server.schemas.base import View, rfc3339, rfc3339_or_none
from corral.server.system.servers import ServerRole, ServersSeen, ServerStatus


class ServerView(View):
    """One server over the store."""

    name: str
    url: str = Field(description="At which the other servers reach it.")
    host: str
    pid: int
    version: str
    role: ServerRole
    alive: bool = Field(description="Whether the server was seen within the last seconds, by the clock of the store.")
    may_lead: bool
    detail: str = Field(description="Why it may not lead.")
    started_at: str
    leads_since: str | None = Field(description="Null for a standby.")
    seen_seconds_ago: float
    behind_events: int = Field(description="Events that a standby has not followed yet.")


class ServersView(View):
    """All servers over the store: the one that leads, and those that stand by."""

    items: list[ServerView]
    leader_changes: int
    leader_changed_at: str | None
    has_standby: bool = Field(description="Another server is alive that could lead.")


def servers_view(seen: ServersSeen) -> ServersView:
    return ServersView(
        items=[_server_view(server) for server in seen.servers],
        leader_changes=seen.leader_changes,
        leader_changed_at=rfc3339_or_none(seen.changed_at),
        has_standby=bool(seen.standbys),
    )


def _server_view(status: ServerStatus) -> ServerView:
    record = status.record
    return ServerView(
        name=record.name,
        url=record.url,
        host=record.host,
        pid=record.pid,
        version=record.version,
        role=status.role,
        alive=status.is_alive,
        may_lead=record.may_lead,
        detail=record.detail,
        started_at=rfc3339(record.started_at),
        leads_since=rfc3339_or_none(status.leads_since),
        seen_seconds_ago=round(max(0.0, record.unseen_seconds), 3),
        behind_events=status.behind_events,
    )
