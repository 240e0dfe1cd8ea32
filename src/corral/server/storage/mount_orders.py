"""Storage at the edge: what an order mounts when it is launched, with the secrets of buckets unlocked."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace

from corral.control.ports import LaunchOrder, LaunchRefused, StorageKind, StorageOrder, Store, Transaction
from corral.control.records import ObjectStoreRecord, VolumeRecord, VolumeState
from corral.control.storage import mounts, object_stores
from corral.objects.access import NotReachable, ObjectAccess, open_filesystem
from corral.server.auth.secret_box import SecretBox, SecretUnreadable

log = logging.getLogger("corral.server.storage")

#: The longest time that a test of a bucket takes.
LOOK_SECONDS = 20.0


def access_to(store: ObjectStoreRecord, prefix: str, box: SecretBox) -> ObjectAccess:
    """How a part of a bucket is reached. Raises SecretUnreadable."""
    return ObjectAccess(
        kind=store.kind.value,
        bucket=store.bucket,
        prefix=object_stores.whole_prefix(store, prefix),
        endpoint=store.endpoint,
        region=store.region,
        access_key=store.access_key,
        secret=box.decrypt(store.secret) if store.secret else "",
    )


def access_to_volume(tables: Transaction, volume: VolumeRecord, box: SecretBox) -> ObjectAccess:
    """The same for an object volume. Raises NotReachable."""
    store = tables.volumes.object_store(volume.object_store or "")
    if store is None:
        raise NotReachable(f"volume {volume.name} has no object store {volume.object_store!r}")
    try:
        return access_to(store, volume.prefix, box)
    except SecretUnreadable as error:
        log.error("the secret of object store %s cannot be read: %s", store.name, error)
        raise NotReachable(
            f"the secret of object store {store.name} cannot be read any more: an operator has to give it again"
        ) from None


class MountOrders:
    def __init__(self, *, store: Store, box: SecretBox) -> None:
        self._store = store
        self._box = box

    def prepare(self, cluster: str, order: LaunchOrder) -> LaunchOrder:
        """Launch step: check the access to volumes, and add the decrypted access to buckets. Raises LaunchRefused if
        the order's user may not mount one of them any more."""
        if not order.storage:
            return order
        with self._store.read() as tables:
            return replace(order, storage=tuple(self._completed(tables, order.user, item) for item in order.storage))

    def _completed(self, tables: Transaction, user: str, item: StorageOrder) -> StorageOrder:
        if item.kind not in (StorageKind.VOLUME, StorageKind.OBJECT):
            return item
        volume = tables.volumes.get(item.id)
        if volume is None or volume.state is VolumeState.DELETING:
            raise LaunchRefused(f"volume {item.name} at {item.path} does not exist any more")
        refusal = mounts.access_refusal(tables, user, volume, writes=not item.read_only)
        if refusal is not None:
            raise LaunchRefused(refusal)
        if item.kind is not StorageKind.OBJECT:
            return item
        try:
            return replace(item, access=access_to_volume(tables, volume, self._box).to_dict())
        except NotReachable as error:
            raise LaunchRefused(str(error)) from None

    def renewed(self) -> dict[str, tuple[str, str]]:
        """Secrets that an older key has locked: as they are, and under the newest key."""
        with self._store.read() as tables:
            stores = tables.volumes.object_stores()
        found = {}
        for store in stores:
            try:
                if store.secret and not self._box.is_current(store.secret):
                    found[store.name] = (store.secret, self._box.encrypt(self._box.decrypt(store.secret)))
            except SecretUnreadable as error:
                log.error("the secret of object store %s cannot be read: %s", store.name, error)
        return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """The result of looking into a bucket."""

    ok: bool
    detail: str
    objects_seen: int = 0


async def look_into(store: ObjectStoreRecord, box: SecretBox) -> Look:
    """Lists the bucket to test the access. Never raises: an error is part of the result."""
    try:
        access = access_to(store, "", box)
        async with asyncio.timeout(LOOK_SECONDS):
            seen = await asyncio.to_thread(_listed, access)
    except TimeoutError:
        return Look(ok=False, detail=f"no answer from {_place(store)} within {LOOK_SECONDS:g} s")
    except FileNotFoundError:
        return Look(ok=False, detail=f"{_place(store)} answers, and there is no bucket {store.bucket!r}, or not for us")
    except PermissionError:
        return Look(ok=False, detail=f"{_place(store)} does not let these keys read bucket {store.bucket!r}")
    except (SecretUnreadable, NotReachable) as error:
        return Look(ok=False, detail=str(error))
    except Exception as error:  # noqa: BLE001 - every provider has its own; the person who tests has to see it
        return Look(ok=False, detail=f"{_place(store)}: {type(error).__name__}: {error}"[:500])
    where = f"{store.bucket}/{store.prefix}" if store.prefix else store.bucket
    return Look(ok=True, detail=f"{where} can be read", objects_seen=seen)


def _listed(access: ObjectAccess) -> int:
    files = open_filesystem(access)
    try:
        return len(files.ls(access.root, detail=False))
    except FileNotFoundError:
        # Below a prefix nothing may be yet; the bucket itself must be there.
        if not access.prefix:
            raise
        files.ls(access.bucket, detail=False)
        return 0


def _place(store: ObjectStoreRecord) -> str:
    return store.endpoint or ("Google Cloud Storage" if store.kind.value == "gcs" else "S3")
