"""The routes of queues, nodes, GPUs and what the whole installation shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import (
        AboutView,
        ClusterView,
        DrainPreviewView,
        FoundView,
        GpuView,
        LicenceView,
        NodeView,
        OrderView,
        OverviewView,
        PanelView,
        QueueView,
        ScorePointView,
        ScoreView,
    )

#: A self-test never hangs, but a GPU that does is given its time.
SELF_TEST_SECONDS = 180.0


class Queues:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[QueueView]:
        return self._transport.pages("/queues")

    def get(self, name: str) -> QueueView:
        return cast("QueueView", self._transport.get(f"/queues/{segment(name)}"))

    def create(self, body: Mapping[str, Any]) -> QueueView:
        return cast("QueueView", self._transport.post("/queues", dict(body)))

    def edit(self, name: str, changes: Mapping[str, Any]) -> QueueView:
        return cast("QueueView", self._transport.patch(f"/queues/{segment(name)}", dict(changes)))

    def delete(self, name: str) -> None:
        self._transport.delete(f"/queues/{segment(name)}")

    def delete_many(self, names: Sequence[str]) -> None:
        """All of them, or none."""
        self._transport.post("/queues:delete", {"names": [*names]})

    def order(self, name: str) -> OrderView:
        """Who goes first, line by line."""
        return cast("OrderView", self._transport.get(f"/queues/{segment(name)}/order"))


class Fleet:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def nodes(self) -> Iterator[NodeView]:
        return self._transport.pages("/nodes")

    def change_node(self, node: str, action: str) -> NodeView:
        """`action` is cordon, uncordon or drain."""
        return cast("NodeView", self._transport.post(f"/nodes/{segment(node)}/{action}"))

    def preview_drain(self, node: str, at: str | None = None) -> DrainPreviewView:
        """What draining it at that time would displace; nothing is changed."""
        return cast("DrainPreviewView", self._transport.get(f"/nodes/{segment(node)}/drain-preview", {"at": at}))

    def remove_node(self, node: str) -> None:
        """One that is gone for good."""
        self._transport.delete(f"/nodes/{segment(node)}")

    def search(self, text: str, *, limit: int | None = None) -> Sequence[FoundView]:
        """Anything that the caller may see, by a part of its id or name."""
        found = self._transport.get("/search", {"q": text, "limit": limit})
        return cast("Sequence[FoundView]", found["items"])

    def gpus(self) -> Iterator[GpuView]:
        return self._transport.pages("/gpus")

    def gpu(self, gpu: str) -> GpuView:
        return cast("GpuView", self._transport.get(f"/gpus/{segment(gpu)}"))

    def mark_gpu(self, gpu: str, health: str, reason: str) -> GpuView:
        """`health` is suspect or failed."""
        body = {"health": health, "reason": reason}
        return cast("GpuView", self._transport.post(f"/gpus/{segment(gpu)}/mark", body))

    def self_test_gpu(self, gpu: str) -> GpuView:
        """Can take a minute."""
        path = f"/gpus/{segment(gpu)}/self-test"
        return cast("GpuView", self._transport.post(path, timeout_seconds=SELF_TEST_SECONDS))

    def reset_gpu_health(self, gpu: str) -> GpuView:
        return cast("GpuView", self._transport.post(f"/gpus/{segment(gpu)}/reset-health"))

    def clusters(self) -> Iterator[ClusterView]:
        return self._transport.pages("/clusters")

    def overview(self) -> OverviewView:
        return cast("OverviewView", self._transport.get("/overview"))

    def panel(
        self, user: str | None = None, *, kind: str | None = None, model: str | None = None
    ) -> Iterator[PanelView]:
        return self._transport.pages("/panel", {"user": user, "kind": kind, "model": model})

    def scores(self) -> Iterator[ScoreView]:
        return self._transport.pages("/scores")

    def score_history(
        self, user: str, *, model: str | None = None, since: str | None = None, points: int | None = None
    ) -> Iterator[ScorePointView]:
        """Oldest first, model by model."""
        params = {"model": model, "since": since, "points": points}
        answer = self._transport.get(f"/scores/{segment(user)}", params)
        return iter(cast("Sequence[ScorePointView]", answer["items"]))

    def about(self) -> AboutView:
        return cast("AboutView", self._transport.get("/about"))

    def set_licence(self, token: str) -> LicenceView:
        return cast("LicenceView", self._transport.put("/about/licence", {"token": token}))

    def remove_licence(self) -> None:
        self._transport.delete("/about/licence")
