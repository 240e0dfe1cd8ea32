"""Whether a cluster answers, and since when."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterHealth:
    healthy: bool
    #: the engine's error message if it is not
    detail: str
    at: float
    #: when it was first seen to be so, as far as this server has seen
    since: float

    @classmethod
    def seen(cls, before: ClusterHealth | None, healthy: bool, detail: str, at: float) -> ClusterHealth:
        """The health after this observation; `before` is the health until now."""
        since = before.since if before is not None and before.healthy == healthy else at
        return cls(healthy=healthy, detail=detail, at=at, since=since)
