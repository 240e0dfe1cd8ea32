"""Files of volumes, whatever they are kept in: a directory, a bucket of S3, a bucket of Google's."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from corral.control.ports.volume_files import FileKind, FileMissing, FileRefused, FilesUnavailable, VolumeFiles
from corral.core.storage.checksums import checksum_of
from corral.stores.storage.uploads import UploadOrder, Uploads
from corral.stores.storage.volume_bucket import CHUNK_BYTES, BucketFiles
from corral.stores.storage.volume_directory import DirectoryFiles
from tests.servers.gcs_server import GcsServer
from tests.servers.s3_server import S3Server

pytest_plugins = ("tests.servers.fixtures",)

KINDS = ("directory", "s3", "gcs")
_numbers = itertools.count()


class Volume:
    def __init__(self, files: VolumeFiles, staging: Path) -> None:
        self.files = files
        self.uploads = Uploads(str(staging))

    def put(self, path: str, content: bytes) -> None:
        order = UploadOrder(
            path=path,
            size_bytes=len(content),
            part_bytes=CHUNK_BYTES,
            checksum=checksum_of([content]),
            modified_ms=1_700_000_000_000,
            user="ann",
        )
        self.uploads.put(order, content, lambda staged, _: self.files.publish(staged, path.split("/")))

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        opened = self.files.open(path.split("/"))
        try:
            return b"".join(opened.pieces(start, opened.size_bytes if length is None else length))
        finally:
            opened.close()

    def paths(self, path: str = "", *, recursive: bool = True, page: int = 1000) -> list[str]:
        found, after = [], None
        while True:
            names = path.split("/") if path else []
            entries, after = self.files.listed(names, recursive=recursive, after=after, limit=page)
            found += [entry.path + "/" * (entry.kind is FileKind.DIRECTORY) for entry in entries]
            if after is None:
                return found


@pytest.fixture(params=KINDS)
def volume(request: pytest.FixtureRequest, tmp_path: Path) -> Volume:
    bucket = f"files-{os.getpid()}-{next(_numbers)}"
    if request.param == "directory":
        root = tmp_path / "volume"
        root.mkdir()
        return Volume(DirectoryFiles(str(root)), root)
    server: S3Server | GcsServer = request.getfixturevalue(f"{request.param}_server")
    # A neighbour below a prefix that begins in the same way must never be seen.
    outside = Volume(BucketFiles(server.access(bucket, "da")), tmp_path)
    outside.put("neighbour", b"not yours")
    return Volume(BucketFiles(server.access(bucket, "data")), tmp_path)


def test_stored_file_is_found_read_and_deleted(volume: Volume) -> None:
    volume.put("a b/ü *?.txt", b"hello")
    volume.put("a b/second", b"")
    volume.put("top", b"0123456789")
    assert volume.read("a b/ü *?.txt") == b"hello"
    assert volume.read("top", 3, 4) == b"3456"
    assert volume.read("a b/second") == b""
    assert volume.paths(recursive=False) == ["a b/", "top"]
    assert [path for path in volume.paths() if not path.endswith("/")] == ["a b/second", "a b/ü *?.txt", "top"]
    assert [path for path in volume.paths(page=1) if not path.endswith("/")] == [
        "a b/second",
        "a b/ü *?.txt",
        "top",
    ]
    assert volume.files.stat(["top"]).size_bytes == 10
    assert volume.files.stat(["a b"]).kind is FileKind.DIRECTORY
    volume.files.delete(["a b", "ü *?.txt"], recursive=False)
    assert volume.paths("a b") == ["a b/second"]
    with pytest.raises(FileRefused):
        volume.files.delete(["a b"], recursive=False)
    volume.files.delete(["a b"], recursive=True)
    assert volume.paths() == ["top"]


def test_a_file_that_is_replaced_has_another_tag(volume: Volume) -> None:
    volume.put("x", b"one")
    first = volume.files.open(["x"])
    first.close()
    volume.put("x", b"two, which is longer")
    second = volume.files.open(["x"])
    second.close()
    assert first.tag != second.tag
    assert volume.read("x") == b"two, which is longer"


def test_missing_file_is_reported_as_missing(volume: Volume) -> None:
    assert volume.paths() == []
    volume.put("x", b"1")
    calls: list[Callable[[], object]] = [
        lambda: volume.files.stat(["nothing"]),
        lambda: volume.files.open(["nothing", "here"]),
        lambda: volume.files.delete(["nothing"], recursive=True),
        lambda: volume.files.listed(["nothing"], recursive=True, after=None, limit=5),
    ]
    for call in calls:
        with pytest.raises(FileMissing):
            call()


def test_a_file_of_several_chunks_is_whole(volume: Volume) -> None:
    content = os.urandom(CHUNK_BYTES) * 2 + b"the end"
    volume.put("large", content)
    assert volume.read("large") == content


def test_a_bucket_that_cannot_be_reached_says_so(s3_server: S3Server, tmp_path: Path) -> None:
    files = BucketFiles(s3_server.access(f"gone-{os.getpid()}"))
    other = S3Server(directory=tmp_path, program="")
    unreachable = BucketFiles(other.access("nobody"))
    assert files.listed([], recursive=True, after=None, limit=5) == ([], None)
    with pytest.raises(FilesUnavailable, match="nobody"):
        unreachable.stat(["x"])
