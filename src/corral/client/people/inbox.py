"""The routes of the inbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from corral.client.http.transport import Transport

if TYPE_CHECKING:
    from corral.client.views import InboxStateView, InboxView


class Inbox:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self, *, unread: bool = False, limit: int = 50) -> InboxView:
        """The newest items."""
        query = {"unread": "true" if unread else None, "limit": limit}
        return cast("InboxView", self._transport.get("/me/inbox", query))

    def read(self, until: int) -> InboxStateView:
        """Mark items as read, up to this id."""
        return cast("InboxStateView", self._transport.post("/me/inbox/read", {"until": until}))

    def mute(self, kinds: Sequence[str]) -> InboxStateView:
        """The kinds that are not wanted; all others are shown."""
        return cast("InboxStateView", self._transport.put("/me/inbox/settings", {"muted": list(kinds)}))
