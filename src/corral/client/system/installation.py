"""The routes of the installation: its version and parts, its licence and the search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import AboutView, FoundView, LicenceView, PartStatusView, ServersView


class Installation:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def search(self, text: str, *, limit: int | None = None) -> Sequence[FoundView]:
        """Objects that the caller may see, by a part of their id or name."""
        found = self._transport.get("/search", {"q": text, "limit": limit})
        return cast("Sequence[FoundView]", found["items"])

    def about(self) -> AboutView:
        """The server's version, the health of its parts, and the licensee."""
        return cast("AboutView", self._transport.get("/about"))

    def parts(self) -> Sequence[PartStatusView]:
        """Each part of the platform (operators)."""
        return cast("Sequence[PartStatusView]", self._transport.get("/parts")["items"])

    def part_log(self, name: str) -> str:
        """The last lines that a part has logged (operators)."""
        return self._transport.get_text(f"/parts/{segment(name)}/log")

    def servers(self) -> ServersView:
        """The leader, and those that stand by (operators)."""
        return cast("ServersView", self._transport.get("/servers"))

    def step_down(self) -> None:
        """Let another server lead (operators)."""
        self._transport.post("/servers:step-down")

    def set_licence(self, token: str) -> LicenceView:
        """Store a licence token, if its signature is valid and it has not expired."""
        return cast("LicenceView", self._transport.put("/about/licence", {"token": token}))

    def remove_licence(self) -> None:
        """Remove the stored licence token."""
        self._transport.delete("/about/licence")
