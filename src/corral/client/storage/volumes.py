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
        """Volumes of the caller and those that are shared with the caller; operators see all."""
        return self._transport.pages("/volumes", filters)

    def get(self, volume: str) -> VolumeView:
        """One volume: its size, the users that it is shared with, and the jobs that mount it."""
        return cast("VolumeView", self._transport.get(path_of(volume)))

    def create(self, body: Mapping[str, Any]) -> VolumeView:
        """Create a volume."""
        return cast("VolumeView", self._transport.post("/volumes", dict(body)))

    def resize(self, volume: str, size: int | str) -> VolumeView:
        """Change the size of a volume."""
        return cast("VolumeView", self._transport.patch(path_of(volume), {"size": size}))

    def describe(self, volume: str, description: str) -> VolumeView:
        """Change the description of a volume."""
        return cast("VolumeView", self._transport.patch(path_of(volume), {"description": description}))

    def share(self, volume: str, shares: Sequence[VolumeShareView]) -> VolumeView:
        """Replaces all shares of the volume."""
        return cast("VolumeView", self._transport.put(path_of(volume, "/shares"), {"shares": [*shares]}))

    def delete(self, volume: str) -> None:
        """Delete a volume with its files."""
        self._transport.delete(path_of(volume))


class ObjectStores:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[ObjectStoreView]:
        """All object stores; addresses are shown to operators only."""
        return self._transport.pages("/object-stores")

    def get(self, name: str) -> ObjectStoreView:
        """One object store, without its credentials."""
        return cast("ObjectStoreView", self._transport.get(f"/object-stores/{segment(name)}"))

    def create(self, body: Mapping[str, Any]) -> ObjectStoreView:
        """Register a bucket with its credentials, which are stored encrypted and never shown again."""
        return cast("ObjectStoreView", self._transport.post("/object-stores", dict(body)))

    def edit(self, name: str, changes: Mapping[str, Any]) -> ObjectStoreView:
        """Change the access to the same bucket."""
        return cast("ObjectStoreView", self._transport.patch(f"/object-stores/{segment(name)}", dict(changes)))

    def test(self, name: str) -> ObjectStoreTestView:
        """Test whether the bucket can be reached and read; an error has a hint."""
        return cast("ObjectStoreTestView", self._transport.post(f"/object-stores/{segment(name)}/test"))

    def delete(self, name: str) -> None:
        """Remove an object store; the bucket is not changed."""
        self._transport.delete(f"/object-stores/{segment(name)}")


def path_of(volume: str, below: str = "") -> str:
    """The path of a volume; `ann/data` is the volume `data` of the user ann."""
    owner, slash, name = volume.rpartition("/")
    return f"/volumes/{segment(name)}{below}" + (f"?owner={segment(owner)}" if slash else "")
