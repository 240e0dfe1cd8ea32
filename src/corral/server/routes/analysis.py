"""What could be better."""

from __future__ import annotations

from corral.server.routing import resource_router

router = resource_router("", "analysis")
