"""Volumes: who makes, sees, shares and deletes them, within which quota, and what becomes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from corral.control.errors import (
    Forbidden,
    InsufficientQuota,
    InUse,
    Invalid,
    NotFound,
    NotPermitted,
    Refusal,
    Taken,
)
from corral.control.jobs import job_clone, job_edit
from corral.control.jobs.jobs import JobChange, start, stop
from corral.control.launch.orders import launch_order
from corral.control.live.unit_of_work import Caller
from corral.control.people import groups, quotas
from corral.control.people.user_accounts import create_user, delete_user
from corral.control.ports import StorageKind, Store, VolumeUse
from corral.control.records import (
    MountKind,
    ObjectStoreKind,
    ObjectStoreRecord,
    Share,
    ShareKind,
    ShareMode,
    VolumeRecord,
    VolumeState,
)
from corral.control.storage import mounts, object_stores, volumes
from corral.control.storage.mount_text import parse_mount
from corral.control.storage.volumes import VolumeDraft
from corral.core.model import CLUSTER_LABEL, Job
from corral.core.storage.volumes import VolumeMount, VolumeType
from tests.unit.control.copied_desks import once
from tests.unit.control.world import ANN, BOB, ROOT, Desk, draft

GIB = 1 << 30
DATA = VolumeDraft(name="data", type=VolumeType.BLOCK, size_bytes=10 * GIB)
BUCKET = ObjectStoreRecord(name="lab", kind=ObjectStoreKind.S3, bucket="lab-data", prefix="/public/")
WITH_BOB = Share(kind=ShareKind.USER, name="bob")


@once
def with_people(store: Store) -> Desk:
    desk = Desk(store)
    for name in ("root", "ann", "bob"):
        desk.do(create_user, ROOT, name, password_hash="hash")
    return desk


@pytest.fixture
def staffed(store: Store) -> Desk:
    return with_people(store)


@pytest.fixture
@once
def stored(store: Store) -> Desk:
    """ann has a block volume that is ready, and there is a bucket."""
    desk = with_people(store)
    made = desk.do(volumes.create, ANN, DATA)
    desk.do(volumes.note_made, made.id)
    desk.do(object_stores.create, ROOT, BUCKET)
    return desk


def found(desk: Desk, caller: Caller, word: str) -> VolumeRecord:
    with desk.store.read() as tx:
        return volumes.find_volume(tx, caller, word)


def mounting(desk: Desk, *words: str, caller: Caller = ANN, name: str | None = None) -> Job:
    [job] = desk.submit(draft(name, mounts=tuple(parse_mount(word) for word in words)), caller=caller)
    return job


# ------------------------------------------------------------------------------------------------ volumes


def test_a_volume_is_made_becomes_ready_and_goes_when_its_files_are_gone(staffed: Desk) -> None:
    made = staffed.do(volumes.create, ANN, DATA)
    assert (made.id, made.owner, made.cluster, made.state) == ("v-1", "ann", "local", VolumeState.CREATING)
    assert staffed.state.snapshot.volumes["v-1"].not_ready == "is being made"
    staffed.do(volumes.note_failed, "v-1", "no space left")
    assert found(staffed, ANN, "data").message == "no space left"
    staffed.do(volumes.note_made, "v-1")
    staffed.do(volumes.note_made, "v-1")
    assert (found(staffed, ANN, "v-1").state, found(staffed, ANN, "ann/data").message) == (VolumeState.READY, "")
    assert staffed.state.snapshot.volumes["v-1"].not_ready == ""
    assert staffed.loaded().snapshot.volumes == staffed.state.snapshot.volumes
    staffed.do(volumes.delete, ANN, "data")
    with pytest.raises(Taken, match="is being deleted"):
        staffed.do(volumes.create, ANN, DATA)
    staffed.do(volumes.note_gone, "v-1")
    assert staffed.state.snapshot.volumes == {}
    assert staffed.do(volumes.create, ANN, DATA).id == "v-2"
    assert staffed.actions("v-1") == [
        "volume.created", "volume.failed", "volume.ready", "volume.deleted", "volume.gone",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "x"}, "name"),
        ({"name": "v-12"}, "name"),
        ({"name": "a/b"}, "name"),
        ({"type": VolumeType.LOCAL}, "type"),
        ({"size_bytes": 5}, "size"),
        ({"cluster": "moon"}, "cluster"),
        ({"object_store": "lab"}, "object_store"),
        ({"prefix": "x"}, "prefix"),
        ({"type": VolumeType.OBJECT}, "size"),
        ({"type": VolumeType.OBJECT, "size_bytes": 0}, "object_store"),
        ({"type": VolumeType.OBJECT, "size_bytes": 0, "object_store": "nothing"}, "object_store"),
        ({"type": VolumeType.OBJECT, "size_bytes": 0, "object_store": "lab", "prefix": "../x"}, "prefix"),
    ],
)
def test_invalid_volume_is_refused_by_its_field(stored: Desk, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refusal:
        stored.do(volumes.create, ANN, replace(DATA, **{"name": "other", **changes}))
    assert refusal.value.field == field


def test_the_quota_of_a_type_holds_for_new_and_larger_volumes_with_the_numbers(stored: Desk) -> None:
    stored.do(quotas.set_quota, ROOT, "ann", {}, {VolumeType.BLOCK: 15 * GIB})
    with pytest.raises(InsufficientQuota) as refusal:
        stored.do(volumes.create, ANN, replace(DATA, name="more"))
    assert refusal.value.numbers == {
        "resource": "volume_bytes", "asked": 10 * GIB, "held": 10 * GIB, "limit": 15 * GIB,
    }  # fmt: skip
    with pytest.raises(InsufficientQuota, match="asked 10GiB, held 10GiB, limit 15GiB"):
        stored.do(volumes.resize, ANN, "data", 20 * GIB)
    assert stored.do(volumes.resize, ANN, "data", 15 * GIB).size_bytes == 15 * GIB
    with pytest.raises(Invalid, match="only grows: data has 15GiB, asked 10GiB"):
        stored.do(volumes.resize, ANN, "data", 10 * GIB)
    # Another type has its own limit, and another user too.
    stored.do(volumes.create, ANN, replace(DATA, name="more", type=VolumeType.FILESYSTEM))
    stored.do(volumes.create, BOB, DATA)
    with stored.store.read() as tx:
        known = quotas.volume_quotas_of(tx)
    [usage] = quotas.usage_of(stored.state, ["ann"], known)
    assert {kind.value: (one.held_bytes, one.max_bytes) for kind, one in usage.volumes.items()} == {
        "block": (15 * GIB, 15 * GIB), "filesystem": (10 * GIB, None), "local": (0, None), "object": (0, None),
    }  # fmt: skip


def test_shared_volume_is_seen_read_and_written_by_its_mode(stored: Desk) -> None:
    with pytest.raises(NotFound):
        found(stored, BOB, "ann/data")
    stored.do(volumes.share, ANN, "data", [WITH_BOB])
    volume = found(stored, BOB, "data")
    with stored.store.read() as tx:
        assert (volumes.may_read(tx, BOB, volume), volumes.may_write(tx, BOB, volume)) == (True, False)
        assert volumes.may_write(tx, ROOT, volume)
    with pytest.raises(Forbidden):
        stored.do(volumes.resize, BOB, "ann/data", 20 * GIB)
    own = stored.do(volumes.create, BOB, DATA)
    assert found(stored, BOB, "data").id == own.id, "one's own goes first"
    assert found(stored, BOB, "ann/data").id == volume.id
    with pytest.raises(Invalid, match="could be any of ann/data, bob/data"):
        found(stored, ROOT, "data")
    by_group = Share(kind=ShareKind.GROUP, name="default", mode=ShareMode.WRITE)
    volume = stored.do(volumes.share, ANN, "data", [by_group])
    with stored.store.read() as tx:
        assert volumes.may_write(tx, BOB, volume)
    for wrong in ([Share(kind=ShareKind.USER, name="ann")], [replace(WITH_BOB, name="nobody")], [WITH_BOB, WITH_BOB]):
        with pytest.raises(Invalid):
            stored.do(volumes.share, ANN, "data", wrong)


def test_deleting_a_user_keeps_data_and_removes_shares(stored: Desk) -> None:
    stored.do(groups.create, ROOT, "vision")
    stored.do(volumes.share, ANN, "data", [WITH_BOB, Share(kind=ShareKind.GROUP, name="vision")])
    with pytest.raises(InUse, match="user ann has 1 volume: data"):
        stored.do(delete_user, ROOT, "ann")
    stored.do(delete_user, ROOT, "bob")
    stored.do(groups.delete, ROOT, "vision")
    assert found(stored, ANN, "data").shared == ()


def test_a_permission_group_without_the_function_cannot_create_volumes(staffed: Desk) -> None:
    with pytest.raises(NotPermitted):
        staffed.do(volumes.create, Caller(name="ann", functions=frozenset()), DATA)


def test_a_volume_that_fills_up_is_reported_once_and_holds_writers(stored: Desk) -> None:
    for used in (1, 95, 96, 100, 101, 50):
        stored.do(
            volumes.note_measured, {"v-1": VolumeUse(used_bytes=used * GIB // 10), "v-9": VolumeUse(used_bytes=1)}
        )
    assert stored.actions("v-1")[2:] == ["volume.nearly-full", "volume.full"]
    assert not stored.state.snapshot.volumes["v-1"].is_full
    stored.do(volumes.note_measured, {"v-1": VolumeUse(used_bytes=10 * GIB)})
    writer, reader = mounting(stored, "data:/data"), mounting(stored, "data:/data:ro")
    assert stored.cycle() == [reader.id]
    stored.do(volumes.resize, ANN, "data", 20 * GIB)
    assert not stored.state.snapshot.volumes["v-1"].is_full
    stored.do(stop, ANN, writer.id)


# ------------------------------------------------------------------------------------------------ mounts


def test_a_mount_is_remembered_by_what_it_was_and_where_it_is(stored: Desk) -> None:
    job = mounting(stored, "data:/data:ro", "local:5GiB:/scratch")
    assert job.mounts == (VolumeMount(volume="v-1"),)
    assert (job.local_bytes, job.request.labels) == (5 * GIB, ((CLUSTER_LABEL, "local"),))
    record = stored.record(job.id)
    assert [(one.kind, one.source, one.path, one.read_only) for one in record.spec.mounts] == [
        (MountKind.VOLUME, "data", "/data", True),
        (MountKind.LOCAL, "", "/scratch", False),
    ]
    stored.cycle()
    [local, data] = sorted(
        launch_order(stored.job(job.id), record.spec, {}, {}, stored.state.snapshot.volumes).storage,
        key=lambda order: order.kind,
    )
    assert (local.kind, local.name, local.size_bytes, local.path) == (StorageKind.LOCAL, "local", 5 * GIB, "/scratch")
    assert (data.kind, data.name, data.id, data.read_only) == (StorageKind.VOLUME, "data", "v-1", True)


def test_two_writers_of_one_volume_run_one_after_the_other_and_the_volume_stays(stored: Desk) -> None:
    first, second = mounting(stored, "data:/data", name="first"), mounting(stored, "data:/data", name="second")
    assert stored.cycle() == [first.id]
    with pytest.raises(InUse) as refusal:
        stored.do(volumes.delete, ANN, "data")
    assert refusal.value.numbers["jobs"] == [first.id, second.id]
    stored.do(stop, ANN, second.id)
    assert stored.do(volumes.resize, ANN, "data", 11 * GIB).size_bytes == 11 * GIB


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (["nothing:/data"], "there is no volume 'nothing'"),
        (["data:/data", "data:/data:ro"], "two mounts are at /data"),
        (["data:/a", "local:1GiB:/a/b"], "the mount at /a/b is within that at /a"),
        (["data:/data:ro,prefetch"], "only files of a bucket are fetched"),
        (["local:1GiB:/x:ro"], "there is nothing to read"),
        (["local:0:/x"], "say how much"),
        (["dataset:mnist@v1:/x"], "dataset"),
        (["data:/" + "x" * 300], "255 characters at most"),
    ],
)
def test_mounts_that_cannot_be_are_refused_in_words(stored: Desk, words: list[str], reported: str) -> None:
    with pytest.raises(Refusal, match=reported) as refusal:
        mounting(stored, *words)
    assert refusal.value.field == "mounts"


@pytest.mark.parametrize(
    "word", ["data", "data:", ":/x", "data:x", "data:/x:wo", "data:/x:ro,rw", "data:/", "data:/proc/1", "data:/tmp",
             "data:/a//b", "data:/a/", "data:/a/../b", "tape:x:/y", "data:/a\nb"],
)  # fmt: skip
def test_words_that_are_no_mount_are_refused(word: str) -> None:
    with pytest.raises(Invalid) as refusal:
        parse_mount(word)
    assert refusal.value.field == "mounts"


def test_a_reader_mounts_read_only(stored: Desk) -> None:
    with pytest.raises(Refusal, match="there is no volume 'ann/data'"):
        mounting(stored, "ann/data:/data", caller=BOB)
    stored.do(volumes.share, ANN, "data", [WITH_BOB])
    with pytest.raises(Forbidden, match="shared with bob to read only"):
        mounting(stored, "data:/data:rw", caller=BOB)
    job = mounting(stored, "data:/data", caller=BOB)
    assert job.mounts == (VolumeMount(volume="v-1"),), "without a word it is read"
    stored.do(stop, BOB, job.id)
    stored.do(volumes.share, ANN, "data", [])
    with pytest.raises(Forbidden, match="not shared with bob"):
        stored.do(start, BOB, job.id)


def test_a_bucket_is_read_unless_operators_allow_more(stored: Desk) -> None:
    bucket = VolumeDraft(name="images", type=VolumeType.OBJECT, object_store="lab", prefix="/train/")
    made = stored.do(volumes.create, ANN, bucket)
    assert (made.state, made.read_only, made.prefix) == (VolumeState.READY, True, "train")
    with pytest.raises(Forbidden, match="does not allow writing"):
        mounting(stored, "images:/images:rw")
    job = mounting(stored, "images:/images:prefetch")
    assert (job.mounts, job.request.labels) == ((VolumeMount(volume=made.id),), ()), "it can be read from everywhere"
    assert stored.record(job.id).spec.mounts[0].prefetch
    with pytest.raises(InUse, match="1 volume is a part of object store lab: ann/images"):
        stored.do(object_stores.delete, ROOT, "lab")
    stored.do(object_stores.edit, ROOT, "lab", {"allow_write": True})
    assert mounting(stored, "images:/images:rw").mounts[0].writes
    assert mounting(stored, "images:/images").mounts[0].writes is False
    for caller, use_case in ((ANN, object_stores.create), (BOB, object_stores.create)):
        with pytest.raises(Forbidden):
            stored.do(use_case, caller, BUCKET)
    stored.do(object_stores.edit, ROOT, "lab", {"access_key": "AK", "secret": "locked"})
    with pytest.raises(Invalid, match="give the secret again"):
        stored.do(object_stores.edit, ROOT, "lab", {"endpoint": "https://elsewhere.example.org"})


def test_local_disk_counts_against_its_quota_while_jobs_live(stored: Desk) -> None:
    stored.do(quotas.set_quota, ROOT, "ann", {}, {VolumeType.LOCAL: 10 * GIB})
    job = mounting(stored, "local:6GiB:/scratch")
    with pytest.raises(InsufficientQuota) as refusal:
        mounting(stored, "local:6GiB:/scratch")
    assert refusal.value.numbers["held"] == 6 * GIB
    assert mounts.local_held(stored.state, "ann") == 6 * GIB
    stored.do(stop, ANN, job.id)
    mounting(stored, "local:6GiB:/scratch")
    with pytest.raises(InsufficientQuota):
        stored.do(start, ANN, job.id)


def test_a_clone_has_the_same_volumes_as_long_as_they_are_shared_and_an_edit_keeps_their_cluster(stored: Desk) -> None:
    stored.do(volumes.share, ANN, "data", [WITH_BOB])
    job = mounting(stored, "data:/data", "local:1GiB:/x", caller=BOB, name="reader")
    stored.do(volumes.create, BOB, DATA)
    same = JobChange(given=frozenset(), draft=draft())
    clone = stored.do(job_clone.clone, BOB, job.id, same)
    assert (clone.job.mounts, clone.job.local_bytes) == (job.mounts, job.local_bytes), "the name means bob's own by now"
    assert clone.job.request.labels == ((CLUSTER_LABEL, "local"),)
    change = JobChange(given=frozenset({"gpus"}), draft=draft(gpus=2))
    edited = stored.do(job_edit.edit, BOB, clone.job.id, change=change)
    assert (edited.request.gpus, edited.request.labels, edited.mounts) == (2, clone.job.request.labels, job.mounts)
    without = JobChange(given=frozenset({"mounts"}), draft=draft())
    assert stored.do(job_clone.clone, BOB, job.id, without).job.mounts == ()
    stored.do(volumes.share, ANN, "data", [])
    with pytest.raises(Refusal):
        stored.do(job_clone.clone, BOB, job.id, same)


def test_a_description_is_changed_by_the_owner_and_operators_with_the_size_or_alone(stored: Desk) -> None:
    described = stored.do(volumes.edit, ANN, "data", description="Images of the lab")
    assert (described.description, described.size_bytes) == ("Images of the lab", DATA.size_bytes)
    both = stored.do(volumes.edit, ROOT, "ann/data", size_bytes=DATA.size_bytes + GIB, description="Larger")
    assert found(stored, ANN, "data") == both
    assert (both.description, both.size_bytes) == ("Larger", DATA.size_bytes + GIB)
    with pytest.raises((NotFound, Forbidden)):
        stored.do(volumes.edit, BOB, "ann/data", description="Mine")
    with pytest.raises(Invalid, match="only grows"):
        stored.do(volumes.edit, ANN, "data", size_bytes=GIB, description="Smaller")
    assert found(stored, ANN, "data").description == "Larger", "refused as a whole"
    [edited, _] = [event.detail for event in stored.events() if event.action == "volume.edited"]
    assert edited == {"was": "", "description": "Images of the lab"}
