"""The cluster that a request is narrowed to."""

from __future__ import annotations

from corral.server.http.context import ServerContext
from corral.server.http.problems import invalid_field


def check_cluster(context: ServerContext, name: str | None) -> None:
    """Refuse a cluster that the settings do not have; None means all clusters."""
    known = [cluster.name for cluster in context.settings.cluster]
    if name is not None and name not in known:
        raise invalid_field("cluster", f"there is no {name[:80]!r}; there are {', '.join(known)}")
