"""The mounts of an order at its launch: secrets decrypted at the last moment, and no user gets another
user's storage.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.control.people.user_accounts import create_user
from corral.control.ports import LaunchOrder, LaunchRefused, StorageKind, StorageOrder, Store
from corral.control.records import ObjectStoreKind, ObjectStoreRecord, Share, ShareKind
from corral.control.storage import object_stores, volumes
from corral.control.storage.volumes import VolumeDraft
from corral.core.storage.volumes import VolumeType
from corral.objects.access import ObjectAccess
from corral.server.auth.secret_box import SecretBox
from corral.server.storage.mount_orders import MountOrders
from tests.unit.control.world import ANN, ROOT, Desk

SECRET = "a-great-secret"


@pytest.fixture
def desk(store: Store) -> Desk:
    desk = Desk(store)
    for name in ("root", "ann", "bob"):
        desk.do(create_user, ROOT, name, password_hash="hash")
    return desk


@pytest.fixture
def box(tmp_path: Path) -> SecretBox:
    return SecretBox(tmp_path)


@pytest.fixture
def bucket(desk: Desk, box: SecretBox) -> str:
    """The id of a volume of ann's that is a part of a bucket."""
    store = ObjectStoreRecord(
        name="lab",
        kind=ObjectStoreKind.S3,
        bucket="lab-data",
        prefix="public",
        endpoint="http://127.0.0.1:9",
        access_key="AK",
        secret=box.encrypt(SECRET),
    )
    desk.do(object_stores.create, ROOT, store)
    draft = VolumeDraft(name="images", type=VolumeType.OBJECT, object_store="lab", prefix="train")
    return desk.do(volumes.create, ANN, draft).id


def order(user: str, *storage: StorageOrder) -> LaunchOrder:
    return LaunchOrder(attempt_id="j-1.1", job_id="j-1", user=user, command=("true",), instances=(), storage=storage)


def mount(volume: str, kind: StorageKind = StorageKind.OBJECT, *, read_only: bool = True) -> StorageOrder:
    return StorageOrder(kind=kind, name="images", path="/images", read_only=read_only, id=volume)


def test_a_bucket_is_passed_with_its_secret_and_nothing_shows_it(desk: Desk, box: SecretBox, bucket: str) -> None:
    local = StorageOrder(kind=StorageKind.LOCAL, name="local", path="/scratch", read_only=False, size_bytes=5)
    done = MountOrders(store=desk.store, box=box).prepare("local", order("ann", mount(bucket), local))
    assert done.storage[1] is local
    access = ObjectAccess.from_dict(done.storage[0].access)
    assert (access.bucket, access.prefix, access.secret) == ("lab-data", "public/train", SECRET)
    assert SECRET not in repr(done)
    assert MountOrders(store=desk.store, box=box).renewed() == {}


def test_a_user_without_the_right_is_refused_with_a_message(desk: Desk, box: SecretBox, bucket: str) -> None:
    orders = MountOrders(store=desk.store, box=box)
    with pytest.raises(LaunchRefused, match="not shared with bob"):
        orders.prepare("local", order("bob", mount(bucket)))
    desk.do(volumes.share, ANN, "images", [Share(kind=ShareKind.USER, name="bob")])
    assert orders.prepare("local", order("bob", mount(bucket))).storage[0].access["bucket"] == "lab-data"
    with pytest.raises(LaunchRefused, match="does not allow writing"):
        orders.prepare("local", order("ann", mount(bucket, read_only=False)))
    data = desk.do(volumes.create, ANN, VolumeDraft(name="data", type=VolumeType.BLOCK, size_bytes=1 << 20))
    assert (
        orders.prepare("local", order("ann", mount(data.id, StorageKind.VOLUME, read_only=False))).storage[0].access
        == {}
    )
    desk.do(volumes.delete, ANN, "data")
    with pytest.raises(LaunchRefused, match="does not exist any more"):
        orders.prepare("local", order("ann", mount(data.id, StorageKind.VOLUME)))


def test_a_secret_that_cannot_be_read_any_more_is_reported_to_the_operator(
    desk: Desk, box: SecretBox, bucket: str
) -> None:
    box.path.unlink()
    with pytest.raises(LaunchRefused, match="an operator has to give it again"):
        MountOrders(store=desk.store, box=box).prepare("local", order("ann", mount(bucket)))
