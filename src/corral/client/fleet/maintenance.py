"""The routes of maintenance windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import MaintenanceView


class Maintenance:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[MaintenanceView]:
        """All windows; a repeated one once, with its next time."""
        return self._transport.pages("/maintenance-windows")

    def get(self, name: str) -> MaintenanceView:
        """One maintenance window with its state, and the nodes that still have jobs."""
        return cast("MaintenanceView", self._transport.get(f"/maintenance-windows/{segment(name)}"))

    def create(self, body: Mapping[str, Any]) -> MaintenanceView:
        """Plan maintenance: the nodes are drained before it, and take jobs again after it."""
        return cast("MaintenanceView", self._transport.post("/maintenance-windows", dict(body)))

    def edit(self, name: str, changes: Mapping[str, Any]) -> MaintenanceView:
        """Change the given fields of a maintenance window."""
        path = f"/maintenance-windows/{segment(name)}"
        return cast("MaintenanceView", self._transport.patch(path, dict(changes)))

    def delete(self, name: str) -> None:
        """Nodes that are drained for it take jobs again at once."""
        self._transport.delete(f"/maintenance-windows/{segment(name)}")
