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
        """All groups with their pools and users."""
        return self._transport.pages("/groups")

    def get(self, name: str) -> GroupView:
        """One group with its pool and its users."""
        return cast("GroupView", self._transport.get(f"/groups/{segment(name)}"))

    def create(self, body: Mapping[str, Any]) -> GroupView:
        """Create a group of users who are in no group, with a pool that no group has."""
        return cast("GroupView", self._transport.post("/groups", dict(body)))

    def edit(self, name: str, changes: Mapping[str, Any]) -> GroupView:
        """Change a group; all changes are made or none."""
        return cast("GroupView", self._transport.patch(f"/groups/{segment(name)}", dict(changes)))

    def delete(self, name: str) -> None:
        """Delete a group without users and without a pool."""
        self._transport.delete(f"/groups/{segment(name)}")
