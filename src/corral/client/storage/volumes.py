"""The routes of volumes and of the object stores behind some of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import ObjectStoreTestView, ObjectStoreView, VolumeShareView, VolumeView


class Volumes:
    """A volume is named by its id, by its name, or as `owner/name`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, **filters: Any) -> Iterator[VolumeView]:
        return self._transport.pages("/volumes", filters)

    def get(self, volume: str) -> VolumeView:
        return cast("VolumeView", self._transport.get(path_of(volume)))

    def create(self, body: Mapping[str, Any]) -> VolumeView:
        return cast("VolumeView", self._transport.post("/volumes", dict(body)))

    def resize(self, volume: str, size: int | str) -> VolumeView:
        return cast("VolumeView", self._transport.patch(path_of(volume), {"size": size}))

    def describe(self, volume: str, description: str) -> VolumeView:
        return cast("VolumeView", self._transport.patch(path_of(volume), {"description": description}))

    def share(self, volume: str, shares: Sequence[VolumeShareView]) -> VolumeView:
        """Replaces all shares of the volume."""
        return cast("VolumeView", self._transport.put(path_of(volume, "/shares"), {"shares": [*shares]}))

    def delete(self, volume: str) -> None:
        self._transport.delete(path_of(volume))


class ObjectStores:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[ObjectStoreView]:
        return self._transport.pages("/object-stores")

    def get(self, name: str) -> ObjectStoreView:
        return cast("ObjectStoreView", self._transport.get(f"/object-stores/{segment(name)}"))

    def create(self, body: Mapping[str, Any]) -> ObjectStoreView:
        return cast("ObjectStoreView", self._transport.post("/object-stores", dict(body)))

    def edit(self, name: str, changes: Mapping[str, Any]) -> ObjectStoreView:
        return cast("ObjectStoreView", self._transport.patch(f"/object-stores/{segment(name)}", dict(changes)))

    def test(self, name: str) -> ObjectStoreTestView:
        return cast("ObjectStoreTestView", self._transport.post(f"/object-stores/{segment(name)}/test"))

    def delete(self, name: str) -> None:
        self._transport.delete(f"/object-stores/{segment(name)}")


def path_of(volume: str, below: str = "") -> str:
    """The path of a volume; `ann/data` is the volume `data` of the user ann."""
    owner, slash, name = volume.rpartition("/")
    return f"/volumes/{segment(name)}{below}" + (f"?owner={segment(owner)}" if slash else "")
