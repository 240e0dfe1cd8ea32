"""Volumes and object stores, on every database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.ports import Store, StoreConflict
from corral.control.records import (
    JobRecord,
    JobSpec,
    MountKind,
    MountSpec,
    ObjectStoreKind,
    ObjectStoreRecord,
    Share,
    ShareKind,
    ShareMode,
    VolumeRecord,
    VolumeState,
)
from corral.core.model import Job
from corral.core.storage.volumes import VolumeMount, VolumeType

pytest_plugins = ("tests.servers.fixtures",)

DATA = VolumeRecord(
    id="v-1",
    name="data",
    owner="ann",
    type=VolumeType.BLOCK,
    cluster="east",
    size_bytes=1 << 50,
    used_bytes=12345678901234,
    measured_at=1000.25,
    state=VolumeState.FAILED,
    message='no "space" 三 left',
    shared=(
        Share(kind=ShareKind.GROUP, name="vision", mode=ShareMode.WRITE),
        Share(kind=ShareKind.USER, name="bob"),
    ),
    created_at=999.5,
)
BUCKET = replace(
    DATA, id="v-2", name="images", type=VolumeType.OBJECT, object_store="lab", prefix="a/b", read_only=True,
    used_bytes=None, measured_at=None, size_bytes=0, shared=(),
)  # fmt: skip
LAB = ObjectStoreRecord(
    name="lab",
    kind=ObjectStoreKind.GCS,
    bucket="lab-data",
    endpoint="http://127.0.0.1:9000",
    region="eu",
    prefix="public",
    access_key="AK",
    secret="locked",
    allow_write=True,
    created_at=5.5,
)


def test_volumes_come_back_as_they_were_the_oldest_first(store: Store) -> None:
    with store.write() as tx:
        assert [tx.volumes.next_id() for _ in range(3)] == ["v-1", "v-2", "v-3"]
        others = replace(DATA, id="v-10", owner="bob")
        for volume in (others, BUCKET, DATA):
            tx.volumes.save(volume)
        ready = replace(DATA, state=VolumeState.READY, message="", used_bytes=0)
        tx.volumes.save(ready)
    with store.read() as tx:
        assert tx.volumes.all() == [ready, BUCKET, others]
        assert tx.volumes.get("v-2") == BUCKET
        assert tx.volumes.named("data") == [ready, others]
        assert tx.volumes.of_owner("ann") == [ready, BUCKET]
    with store.write() as tx:
        tx.volumes.delete("v-2")
        assert [volume.id for volume in tx.volumes.all()] == ["v-1", "v-10"]


@pytest.mark.parametrize("no_id", ["", "v-", "v-0", "v-01", "v-x", "j-1", "v-99999999999999999999", "V-1", "data"])
def test_invalid_volume_id_is_not_found(store: Store, no_id: str) -> None:
    with store.write() as tx:
        tx.volumes.save(DATA)
        assert tx.volumes.get(no_id) is None
        tx.volumes.delete(no_id)
        assert tx.volumes.get("v-1") == DATA


def test_a_user_has_one_volume_of_a_name(store: Store) -> None:
    with store.write() as tx:
        tx.volumes.save(DATA)
    with pytest.raises(StoreConflict), store.write() as tx:
        tx.volumes.save(replace(BUCKET, name="data"))
    with store.read() as tx:
        assert tx.volumes.all() == [DATA]


def test_object_stores_come_back_as_they_were_by_name(store: Store) -> None:
    plain = ObjectStoreRecord(name="archive", kind=ObjectStoreKind.S3, bucket="b-b")
    with store.write() as tx:
        for one in (LAB, plain, replace(LAB, region="us")):
            tx.volumes.save_object_store(one)
    with store.read() as tx:
        assert tx.volumes.object_stores() == [plain, replace(LAB, region="us")]
        assert tx.volumes.object_store("lab") == replace(LAB, region="us")
        assert tx.volumes.object_store("nothing") is None
        assert "locked" not in repr(tx.volumes.object_store("lab"))
    with store.write() as tx:
        tx.volumes.delete_object_store("lab")
        assert tx.volumes.object_stores() == [plain]


def test_jobs_keep_what_they_mount(store: Store) -> None:
    mounts = (VolumeMount(volume="v-1", writes=True), VolumeMount(volume="v-2"))
    job = Job(id="j-1", name="train", user="ann", created_at=1.0, mounts=mounts, local_bytes=5 << 40)
    spec = JobSpec(
        command=("true",),
        mounts=(
            MountSpec(kind=MountKind.VOLUME, source="ann/data", path="/data", read_only=True, volume_id="v-1"),
            MountSpec(kind=MountKind.LOCAL, source="", path="/scratch", size_bytes=5 << 40),
            MountSpec(
                kind=MountKind.DATASET, source="mnist@v1", path="/m", read_only=True, dataset_id="d-1", version="ab12"
            ),
        ),
    )
    with store.write() as tx:
        tx.jobs.add([JobRecord(job=job, spec=spec)])
    with store.read() as tx:
        assert tx.jobs.get("j-1") == JobRecord(job=job, spec=spec)
