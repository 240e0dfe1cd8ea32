"""The routes of reservations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import ReservationView


class Reservations:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self, pool: str | None = None, since: str | None = None, until: str | None = None
    ) -> Iterator[ReservationView]:
        """Reservations of a pool, and those whose window overlaps `since` to `until`."""
        given = {"pool": pool, "since": since, "until": until}
        return self._transport.pages("/reservations", {key: value for key, value in given.items() if value is not None})

    def get(self, name: str) -> ReservationView:
        """One reservation with its GPUs by node, and how many owners and others hold."""
        return cast("ReservationView", self._transport.get(f"/reservations/{segment(name)}"))

    def create(self, body: Mapping[str, Any]) -> ReservationView:
        """Reserve a number of GPUs, or named ones, for users and groups."""
        return cast("ReservationView", self._transport.post("/reservations", dict(body)))

    def edit(self, name: str, changes: Mapping[str, Any]) -> ReservationView:
        """Change a reservation."""
        return cast("ReservationView", self._transport.patch(f"/reservations/{segment(name)}", dict(changes)))

    def delete(self, name: str) -> None:
        """Delete a reservation."""
        self._transport.delete(f"/reservations/{segment(name)}")
