"""A bucket's files through the cache of a node: against a real S3-compatible server and an emulator of GCS."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from corral.objects.access import NotReachable, ObjectAccess, open_filesystem
from corral.objects.bucket import Bucket, Replaced
from corral.objects.cache import BlockCache
from corral.objects.prefetch import TooLarge, fetch_tree, prefetch

pytest_plugins = ("tests.servers.fixtures",)

BLOCK = 1 << 16
FILES = {
    "train/0001.bin": os.urandom(5 * BLOCK + 17),
    "train/with blank.txt": b"two words",
    "train/deep/ünïcode-名.txt": b"names are names",
    "empty": b"",
    "README": b"read me",
}


@pytest.fixture(scope="module", params=("s3", "gcs"))
def access(request: pytest.FixtureRequest) -> ObjectAccess:
    server = request.getfixturevalue(f"{request.param}_server")
    reached: ObjectAccess = server.access("tree", "set")
    files = open_filesystem(reached)
    for name, data in FILES.items():
        files.pipe_file(f"{reached.root}/{name}", data)
    files.pipe_file("tree/outside", b"not below the prefix")
    return reached


@pytest.fixture
def bucket(access: ObjectAccess, tmp_path: Path) -> Bucket:
    return Bucket(access, BlockCache(str(tmp_path / "cache"), 100 * BLOCK, block_bytes=BLOCK))


def test_bucket_is_shown_as_a_tree_of_files(bucket: Bucket) -> None:
    assert {name: entry.is_directory for name, entry in bucket.listing("/").items()} == {
        "README": False,
        "empty": False,
        "train": True,
    }
    assert sorted(bucket.listing("/train")) == ["0001.bin", "deep", "with blank.txt"]
    assert {path: entry.size for path, entry in bucket.files()} == {name: len(data) for name, data in FILES.items()}
    assert bucket.find("/train/deep").is_directory
    listed, asked = bucket.find("/train/0001.bin"), bucket.current("/train/0001.bin")
    assert (listed.version, listed.size) == (asked.version, asked.size)
    for missing in ("/nothing", "/train/nothing/deeper"):
        with pytest.raises(FileNotFoundError):
            bucket.find(missing)


def test_every_part_of_a_file_is_read_right_and_fetched_once(bucket: Bucket) -> None:
    name = "train/0001.bin"
    entry, data = bucket.current(name), FILES[name]
    for offset, length in ((0, 10), (BLOCK - 5, 10), (2 * BLOCK, 3 * BLOCK), (len(data) - 3, 100), (len(data), 5)):
        assert bucket.read(name, entry, offset, length) == data[offset : offset + length]
    assert bucket.cache.used_bytes() == len(data)
    assert bucket.read("empty", bucket.current("empty"), 0, 10) == b""


def test_a_file_that_is_replaced_while_it_is_read_is_an_error_and_never_a_mixture(bucket: Bucket) -> None:
    files, key = bucket.filesystem, f"{bucket.access.root}/changing"
    files.pipe_file(key, b"a" * 2 * BLOCK)
    entry = bucket.current("changing")
    assert bucket.read("changing", entry, 0, 10) == b"a" * 10
    files.pipe_file(key, b"b" * 2 * BLOCK)
    with pytest.raises(Replaced, match="changing was replaced while it was read"):
        bucket.read("changing", entry, BLOCK, 10)
    assert bucket.read("changing", bucket.current("changing"), BLOCK, 10) == b"b" * 10
    files.rm_file(key)


def test_all_of_it_is_fetched_with_progress_or_refused_with_numbers(bucket: Bucket, tmp_path: Path) -> None:
    reported: list[str] = []
    assert prefetch(bucket, reported.append) == sum(map(len, FILES.values()))
    assert reported[-1].endswith(f"in {len(FILES)} files (100 %)")
    assert bucket.cache.used_bytes() == sum(map(len, FILES.values()))
    small = Bucket(bucket.access, BlockCache(str(tmp_path / "small"), BLOCK, block_bytes=BLOCK))
    with pytest.raises(TooLarge, match=f"0.00 GiB in {len(FILES)} files .* room for 0.00 GiB"):
        prefetch(small, reported.append)
    assert small.cache.used_bytes() == 0


def test_bucket_becomes_a_directory_where_mounts_are_impossible(bucket: Bucket, tmp_path: Path) -> None:
    target = tmp_path / "tree"
    for _ in range(2):  # as after a crash: once more is no harm
        fetch_tree(bucket, str(target), lambda words: None)
        found = {str(path.relative_to(target)): path.read_bytes() for path in target.rglob("*") if path.is_file()}
        assert found == FILES
    assert (target / "README").stat().st_mode & 0o777 == 0o444


def test_a_download_that_is_killed_in_the_middle_is_finished_by_the_next(access: ObjectAccess, tmp_path: Path) -> None:
    code = (
        "import json, sys\n"
        "from corral.objects.access import ObjectAccess; from corral.objects.bucket import Bucket\n"
        "from corral.objects.cache import BlockCache; from corral.objects.prefetch import prefetch\n"
        f"cache = BlockCache(sys.argv[1], {100 * BLOCK}, block_bytes={BLOCK})\n"
        "bucket = Bucket(ObjectAccess.from_dict(json.load(sys.stdin)), cache)\n"
        "prefetch(bucket, lambda words: print(words, flush=True))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "cache")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(access.to_dict()).encode())
        process.stdin.close()
        assert process.stdout.readline().startswith(b"fetching: ")
        process.kill()
    bucket = Bucket(access, BlockCache(str(tmp_path / "cache"), 100 * BLOCK, block_bytes=BLOCK))
    assert prefetch(bucket, lambda words: None) == sum(map(len, FILES.values()))
    for name, data in FILES.items():
        assert bucket.read(name, bucket.current(name), 0, len(data) + 1) == data
    assert not list((tmp_path / "cache").rglob("*.part"))


def test_a_bucket_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    nowhere = ObjectAccess(kind="s3", bucket="b", endpoint="http://127.0.0.1:9", access_key="k", secret="s3cret")
    with pytest.raises(NotReachable, match="bucket b cannot be reached"):
        Bucket(nowhere, BlockCache(str(tmp_path), 1 << 20)).listing("/")
