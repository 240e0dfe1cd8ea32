"""What was measured: of GPUs, nodes, jobs, and of the whole installation over time."""

from __future__ import annotations

from corral.server.routing import resource_router

router = resource_router("", "measurements")
