"""The routes of pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import PoolDetailView, PoolView


class Pools:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[PoolView]:
        """All pools with their GPUs, groups and what is free."""
        return self._transport.pages("/pools")

    def get(self, name: str) -> PoolDetailView:
        """A pool with its GPUs and the jobs on them."""
        return cast("PoolDetailView", self._transport.get(f"/pools/{segment(name)}"))

    def create(self, body: Mapping[str, Any]) -> PoolDetailView:
        """Create a pool, with a queue of the same name."""
        return cast("PoolDetailView", self._transport.post("/pools", dict(body)))

    def edit(self, name: str, changes: Mapping[str, Any]) -> PoolDetailView:
        """Change the description, or replace the list of GPUs."""
        return cast("PoolDetailView", self._transport.patch(f"/pools/{segment(name)}", dict(changes)))

    def move_gpus(self, name: str, gpus: Sequence[str], *, when_free: bool = False) -> PoolDetailView:
        """Move GPUs from their pools into this one: all of them or none. With `when_free`, GPUs with running jobs
        follow when these have ended. A GPU that is in the pool, and was to leave it, stays."""
        body = {"gpus": [*gpus], "when_free": when_free}
        return cast("PoolDetailView", self._transport.post(f"/pools/{segment(name)}/gpus", body))

    def delete(self, name: str) -> None:
        """Delete a pool."""
        self._transport.delete(f"/pools/{segment(name)}")
