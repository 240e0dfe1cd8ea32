"""Where news go, and what became of them."""

from __future__ import annotations

from corral.server.routing import resource_router

router = resource_router("", "channels")
