"""The routes of groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import GroupView


class Groups:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[GroupView]:
        return self._transport.pages("/groups")

    def get(self, name: str) -> GroupView:
        return cast("GroupView", self._transport.get(f"/groups/{segment(name)}"))

    def create(self, body: Mapping[str, Any]) -> GroupView:
        return cast("GroupView", self._transport.post("/groups", dict(body)))

    def edit(self, name: str, changes: Mapping[str, Any]) -> GroupView:
        return cast("GroupView", self._transport.patch(f"/groups/{segment(name)}", dict(changes)))

    def delete(self, name: str) -> None:
        self._transport.delete(f"/groups/{segment(name)}")
