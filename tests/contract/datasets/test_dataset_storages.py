"""The same versions in a directory, in S3 and in GCS: what a storage must do, and a whole story over each."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from corral.datasets import (
    BlobStore,
    Damaged,
    DirectoryBlobs,
    DirectoryVersions,
    FilesystemBlobs,
    ObjectMissing,
    Repository,
)
from corral.objects.access import open_filesystem
from tests.unit.datasets.trees_of_files import noise, read_files, write_files

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["directory", "s3", "gcs"])
def storage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> BlobStore:
    if request.param == "directory":
        return DirectoryBlobs(tmp_path_factory.mktemp("storage") / "blobs")
    access = request.getfixturevalue(f"{request.param}_server").access("dataset-storages", "some/prefix")
    return FilesystemBlobs(open_filesystem(access), access.root)


def test_objects_come_and_go(storage: BlobStore) -> None:
    assert list(storage.objects("test/")) == []
    storage.put("test/ab/one", [b"hello ", memoryview(b"world")])
    storage.put("test/two", [b""])
    storage.put("test/two", [b"again"])
    storage.put("testing/three", [b"not below it"])
    assert storage.get("test/ab/one") == b"hello world"
    assert storage.get("test/ab/one", 6, 3) == b"wor"
    assert storage.get("test/ab/one", 6, 300) == b"world"
    assert storage.get("test/ab/one", 0, 0) == b""
    found = {item.name: item for item in storage.objects("test/")}
    assert {name: item.size for name, item in found.items()} == {"test/ab/one": 11, "test/two": 5}
    assert abs(found["test/two"].modified_at - time.time()) < 3600
    storage.remove("test/two")
    storage.remove("test/two")
    with pytest.raises(ObjectMissing, match="test/two"):
        storage.get("test/two")
    assert [item.name for item in storage.objects("test/")] == ["test/ab/one"]
    assert storage.sweep(time.time() - 3600) == 0
    for name in ("test/ab/one", "testing/three"):
        storage.remove(name)


def test_a_story(storage: BlobStore, tmp_path: Path) -> None:
    repository = Repository(storage, DirectoryVersions(tmp_path / "versions"), cache=tmp_path / "cache")
    files = {f"small/{n:03d}": noise(500 + n, n) for n in range(300)} | {"large": noise(5 << 20, 1000), "none": b""}
    work = write_files(tmp_path / "work", files)
    first = repository.commit("faces", work, message="first", author="ada").commit
    # Few large objects, however many files: that is what makes buckets quick.
    assert len(list(storage.objects("packs/"))) == 2
    large = noise(5 << 20, 1000)
    write_files(work, {"large": large[:100] + b"more" + large[100:], "small/000": b"changed"})
    second = repository.commit("faces", work, message="second", author="ada").commit
    assert second.new_bytes < first.new_bytes / 4
    elsewhere = Repository(storage, DirectoryVersions(tmp_path / "versions"))
    elsewhere.checkout("faces", first.id, tmp_path / "first")
    elsewhere.checkout("faces", second.id, tmp_path / "second", read_only=True)
    assert read_files(tmp_path / "first") == files
    assert read_files(tmp_path / "second") == read_files(work)
    assert [change.path for change in elsewhere.diff("faces", first.id, second.id).changed] == ["large", "small/000"]
    elsewhere.commit("other", tmp_path / "first", message="m", author="bob")
    repository.remove("faces")
    report = repository.collect_garbage(grace_seconds=-3600, dry_run=False)
    assert report.removed_packs > 0
    assert not list(storage.objects("condemned/")) + list(storage.objects("leases/"))
    assert repository.verify().damages == ()
    _damage(storage, repository)
    with pytest.raises(Damaged, match=r"packs/.*version"):
        elsewhere.checkout("other", "latest", tmp_path / "third")
    assert not (tmp_path / "third").exists()


def _damage(storage: BlobStore, repository: Repository) -> None:
    repository.pieces.refresh()
    name = next(
        item.name
        for item in storage.objects("packs/")
        for pack in repository.pieces.packs()
        if item.name.endswith(pack.id) and pack.kind == "data" and item.size > 1 << 20
    )
    data = bytearray(storage.get(name))
    data[len(data) // 2] ^= 1
    storage.put(name, [bytes(data)])
