"""The routes of volumes and of the object stores behind some of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypedDict, cast

from corral.client.http.transport import Transport, segment


class ShareView(TypedDict):
    kind: str
    name: str
    mode: str


class VolumeJobView(TypedDict):
    id: str
    name: str
    user: str
    state: str
    mode: str
    path: str


class VolumeView(TypedDict):
    id: str
    name: str
    owner: str
    type: str
    cluster: str
    size_bytes: int
    used_bytes: int | None
    measured_at: str | None
    full: bool
    state: str
    message: str
    read_only: bool
    object_store: str | None
    prefix: str
    shares: list[ShareView]
    may_write: bool
    mine: bool
    created_at: str
    jobs: list[VolumeJobView]


class ObjectStoreView(TypedDict):
    name: str
    kind: str
    bucket: str
    allow_write: bool
    endpoint: str | None
    region: str
    prefix: str
    access_key: str
    has_secret: bool
    volumes: int
    created_at: str


class ObjectStoreTestView(TypedDict):
    ok: bool
    detail: str
    objects_seen: int


class Volumes:
    """A volume is named by its id, by its name, or as `owner/name`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, **filters: Any) -> Iterator[VolumeView]:
        return self._transport.pages("/volumes", filters)

    def get(self, volume: str) -> VolumeView:
        return cast(VolumeView, self._transport.get(path_of(volume)))

    def create(self, body: Mapping[str, Any]) -> VolumeView:
        return cast(VolumeView, self._transport.post("/volumes", dict(body)))

    def resize(self, volume: str, size: int | str) -> VolumeView:
        return cast(VolumeView, self._transport.patch(path_of(volume), {"size": size}))

    def share(self, volume: str, shares: Sequence[ShareView]) -> VolumeView:
        """With all of these and nobody else."""
        return cast(VolumeView, self._transport.put(path_of(volume, "/shares"), {"shares": [*shares]}))

    def delete(self, volume: str) -> None:
        self._transport.delete(path_of(volume))


class ObjectStores:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[ObjectStoreView]:
        return self._transport.pages("/object-stores")

    def get(self, name: str) -> ObjectStoreView:
        return cast(ObjectStoreView, self._transport.get(f"/object-stores/{segment(name)}"))

    def create(self, body: Mapping[str, Any]) -> ObjectStoreView:
        return cast(ObjectStoreView, self._transport.post("/object-stores", dict(body)))

    def edit(self, name: str, changes: Mapping[str, Any]) -> ObjectStoreView:
        return cast(ObjectStoreView, self._transport.patch(f"/object-stores/{segment(name)}", dict(changes)))

    def test(self, name: str) -> ObjectStoreTestView:
        return cast(ObjectStoreTestView, self._transport.post(f"/object-stores/{segment(name)}/test"))

    def delete(self, name: str) -> None:
        self._transport.delete(f"/object-stores/{segment(name)}")


def path_of(volume: str, below: str = "") -> str:
    """Where a volume is found; `ann/data` is somebody's own."""
    owner, slash, name = volume.rpartition("/")
    return f"/volumes/{segment(name)}{below}" + (f"?owner={segment(owner)}" if slash else "")
