"""The routes of flavors and packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import FlavorView, PackageView


class Catalog:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def flavors(self) -> Iterator[FlavorView]:
        """The flavors of the catalog: named kinds of hardware."""
        return self._transport.pages("/flavors")

    def create_flavor(self, body: Mapping[str, Any]) -> FlavorView:
        """Create a flavor: GPU models, node labels, and defaults for each GPU."""
        return cast("FlavorView", self._transport.post("/flavors", dict(body)))

    def edit_flavor(self, name: str, changes: Mapping[str, Any]) -> FlavorView:
        """Change the given fields."""
        return cast("FlavorView", self._transport.patch(f"/flavors/{segment(name)}", dict(changes)))

    def delete_flavors(self, names: Sequence[str]) -> None:
        """All of them or none."""
        self._transport.post("/flavors:delete", {"names": list(names)})

    def packages(self, *, kind: str | None = None, nodes: int | None = None) -> Iterator[PackageView]:
        """All packages; with a kind only those that are available now, with how many are free and the expected wait."""
        return self._transport.pages("/packages", {"kind": kind, "nodes": nodes})

    def create_package(self, body: Mapping[str, Any]) -> PackageView:
        """Create a package: a size that users choose instead of GPUs, CPUs and memory."""
        return cast("PackageView", self._transport.post("/packages", dict(body)))

    def edit_package(self, name: str, changes: Mapping[str, Any]) -> PackageView:
        """Change the given fields."""
        return cast("PackageView", self._transport.patch(f"/packages/{segment(name)}", dict(changes)))

    def delete_packages(self, names: Sequence[str]) -> None:
        """All of them or none."""
        self._transport.post("/packages:delete", {"names": list(names)})
