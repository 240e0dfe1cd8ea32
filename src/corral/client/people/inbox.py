"""The routes of the inbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import InboxChannelsView, InboxChannelView, InboxStateView, InboxView


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

    def channels(self) -> InboxChannelsView:
        """Where the inbox is also sent."""
        return cast("InboxChannelsView", self._transport.get("/me/inbox/channels"))

    def create_channel(self, body: dict[str, Any]) -> InboxChannelView:
        """Send new items of the caller's inbox to an address."""
        return cast("InboxChannelView", self._transport.post("/me/inbox/channels", body))

    def edit_channel(self, name: str, changes: dict[str, Any]) -> InboxChannelView:
        """Choose the kinds of items that are sent to a channel, or switch it on or off."""
        return cast("InboxChannelView", self._transport.patch(f"/me/inbox/channels/{segment(name)}", changes))

    def delete_channel(self, name: str) -> None:
        """Send nothing to this address any more, and forget it."""
        self._transport.delete(f"/me/inbox/channels/{segment(name)}")

    def renew_code(self, name: str) -> InboxChannelView:
        """Mail another code to the address."""
        return cast("InboxChannelView", self._transport.post(f"/me/inbox/channels/{segment(name)}/code"))

    def confirm_channel(self, name: str, code: str) -> InboxChannelView:
        """Confirm a mail address with the code that was mailed there."""
        body = {"code": code}
        return cast("InboxChannelView", self._transport.post(f"/me/inbox/channels/{segment(name)}/confirm", body))

    def test_channel(self, name: str) -> InboxChannelView:
        """Send a test message; the error of the result says whether it was accepted."""
        return cast("InboxChannelView", self._transport.post(f"/me/inbox/channels/{segment(name)}/test"))
