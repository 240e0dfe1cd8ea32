"""The routes of queues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import OrderView, QueueView


class Queues:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[QueueView]:
        """All queues with settings, limits and counts of jobs."""
        return self._transport.pages("/queues")

    def get(self, name: str) -> QueueView:
        """One queue with settings, limits and counts of jobs."""
        return cast("QueueView", self._transport.get(f"/queues/{segment(name)}"))

    def create(self, body: Mapping[str, Any]) -> QueueView:
        """Create a queue in a pool, with its ordering policy, limits and guarantees."""
        return cast("QueueView", self._transport.post("/queues", dict(body)))

    def edit(self, name: str, changes: Mapping[str, Any]) -> QueueView:
        """Change the given fields."""
        return cast("QueueView", self._transport.patch(f"/queues/{segment(name)}", dict(changes)))

    def delete_many(self, names: Sequence[str]) -> None:
        """All of them or none."""
        self._transport.post("/queues:delete", {"names": [*names]})

    def order(self, name: str) -> OrderView:
        """The order of waiting jobs, for each waiting line of the queue."""
        return cast("OrderView", self._transport.get(f"/queues/{segment(name)}/order"))
