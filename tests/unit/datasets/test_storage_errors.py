"""A storage that cannot be reached, or only at times: reported as such, and never taken for a missing object."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from corral.datasets import DatasetError, DirectoryBlobs, FilesystemBlobs, LeaseLost, ObjectMissing, Repository
from corral.datasets.history.leases import LEASE_SECONDS, Lease
from tests.unit.datasets.trees_of_files import repository_in, write_files


class Unreachable(Exception):
    """An error like those of bucket libraries: a type of their own."""


class BrokenFilesystem(MemoryFileSystem):
    cachable = False

    def cat_file(self, *_: Any, **__: Any) -> bytes:
        raise Unreachable("no route to host")

    pipe_file = find = rm_file = cat_file


CALLS: dict[str, Callable[[FilesystemBlobs], object]] = {
    "put": lambda blobs: blobs.put("leases/x", [b"1"]),
    "get": lambda blobs: blobs.get("packs/x", 1, 2),
    "objects": lambda blobs: list(blobs.objects("index/")),
    "remove": lambda blobs: blobs.remove("packs/x"),
}


@pytest.mark.parametrize("call", CALLS)
def test_unreachable_objects_do_not_count_as_missing(call: str) -> None:
    with pytest.raises(DatasetError, match="memory://bucket/data: no route to host") as failed:
        CALLS[call](FilesystemBlobs(BrokenFilesystem(), "bucket/data"))
    assert not isinstance(failed.value, ObjectMissing)


def test_a_lease_that_could_not_be_renewed_ends_the_commit(tmp_path: Path) -> None:
    now = [1e9]
    with Lease(DirectoryBlobs(tmp_path), lambda: now[0]) as lease:
        now[0] += LEASE_SECONDS / 2 + 1
        with pytest.raises(LeaseLost, match="run it again"):
            lease.check()
        lease.saw([])
        # That it is renewed again does not help: others may have taken it for dead in between.
        with pytest.raises(LeaseLost):
            lease.check()


def test_a_full_or_read_only_storage_is_reported_and_no_version_appears(tmp_path: Path) -> None:
    work = write_files(tmp_path / "work", {"a": b"1"})
    (tmp_path / "blobs").write_bytes(b"not a directory")
    repository: Repository = repository_in(tmp_path)
    with pytest.raises(DatasetError, match="could not be written"):
        repository.commit("faces", work, message="m", author="ada")
    assert repository.metadata.datasets() == []
