"""The routes of nodes, GPUs, clusters and the overview of the fleet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import (
        ClusterView,
        DrainPreviewView,
        GpuView,
        HealthChecksStarted,
        HealthCheckView,
        NodeView,
        OverviewView,
        RepairTicketView,
    )

#: The server ends a self-test of a hanging GPU; the client waits for that.
SELF_TEST_SECONDS = 180.0


class Fleet:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def nodes(self) -> Iterator[NodeView]:
        """Nodes with state, capacity, free resources and labels."""
        return self._transport.pages("/nodes")

    def node(self, node: str) -> NodeView:
        """One node with its GPUs, jobs and state."""
        return cast("NodeView", self._transport.get(f"/nodes/{segment(node)}"))

    def change_node(self, node: str, action: str) -> NodeView:
        """`action` is cordon or uncordon."""
        return cast("NodeView", self._transport.post(f"/nodes/{segment(node)}/{action}"))

    def drain_node(self, node: str, empty_by: str | None = None) -> NodeView:
        """`empty_by`: jobs that are left at this time are asked to save and continue elsewhere."""
        return cast("NodeView", self._transport.post(f"/nodes/{segment(node)}/drain", {"empty_by": empty_by}))

    def preview_drain(self, node: str, at: str | None = None) -> DrainPreviewView:
        """The jobs that a drain at that time would displace; nothing is changed."""
        return cast("DrainPreviewView", self._transport.get(f"/nodes/{segment(node)}/drain-preview", {"at": at}))

    def preview_drains(self, nodes: Sequence[str], at: str | None = None) -> DrainPreviewView:
        """The jobs that draining these nodes together at that time would displace; nothing is changed."""
        return cast("DrainPreviewView", self._transport.get("/drain-preview", {"node": list(nodes), "at": at}))

    def remove_node(self, node: str) -> None:
        """Remove a node that will not return."""
        self._transport.delete(f"/nodes/{segment(node)}")

    def gpus(self, pool: str | None = None) -> Iterator[GpuView]:
        """All GPUs, or those of a pool, with health, jobs and latest readings."""
        return self._transport.pages("/gpus", {"pool": pool})

    def gpu(self, gpu: str) -> GpuView:
        """One GPU with its health, the evidence behind it, its jobs and its latest readings."""
        return cast("GpuView", self._transport.get(f"/gpus/{segment(gpu)}"))

    def mark_gpu(self, gpu: str, health: str, reason: str) -> GpuView:
        """`health` is suspect or failed."""
        body = {"health": health, "reason": reason}
        return cast("GpuView", self._transport.post(f"/gpus/{segment(gpu)}/mark", body))

    def self_test_gpu(self, gpu: str) -> GpuView:
        """Run a self-test, which can take a minute."""
        path = f"/gpus/{segment(gpu)}/self-test"
        return cast("GpuView", self._transport.post(path, timeout_seconds=SELF_TEST_SECONDS))

    def reset_gpu_health(self, gpu: str) -> GpuView:
        """Declare a GPU healthy: it can be used again."""
        return cast("GpuView", self._transport.post(f"/gpus/{segment(gpu)}/reset-health"))

    def run_health_checks(self, target: str, checks: Sequence[str] | None = None) -> HealthChecksStarted:
        """Check a GPU, or every GPU of a node, by jobs of the lowest priority."""
        body = {"target": target, "checks": None if checks is None else list(checks)}
        return cast("HealthChecksStarted", self._transport.post("/health-checks", body))

    def health_checks(self, *, gpu: str | None = None, node: str | None = None) -> Iterator[HealthCheckView]:
        """The newest first."""
        return self._transport.pages("/health-checks", {"gpu": gpu, "node": node})

    def repair_ticket(self, gpu: str) -> RepairTicketView:
        """The text of a repair ticket for a GPU: its place, the evidence and its latest checks."""
        return cast("RepairTicketView", self._transport.get("/health-checks/ticket", {"gpu": gpu}))

    def clusters(self) -> Iterator[ClusterView]:
        """The clusters of the installation, with engine, health and capacity."""
        return self._transport.pages("/clusters")

    def overview(self) -> OverviewView:
        """Numbers of the whole installation: nodes, GPUs, jobs by state, usage."""
        return cast("OverviewView", self._transport.get("/overview"))
