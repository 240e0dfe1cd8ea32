"""A bucket as a directory, by a real FUSE mount of a real S3-compatible server, shared by jobs, never left behind."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corral.control.ports import AttemptPhase, StorageKind, StorageOrder
from corral.core.model import EndReason
from corral.engines.storage.storage_specs import StoragePlaces
from corral.objects.access import ObjectAccess, open_filesystem
from corral.objects.bucket_mounts import (
    DIRECTORY_VARIABLE,
    MountOrder,
    directory_of,
    ensure_mounted,
    fuse_problem,
    is_mounted,
)
from tests.contract.engine_harness import LocalHarness, order, process_exists, script, wait_until
from tests.servers.s3_server import SECRET, S3Server

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = pytest.mark.skipif(bool(fuse_problem()), reason=f"FUSE: {fuse_problem()}")

LARGE = os.urandom((17 << 20) + 5)
LINGER_SECONDS = 0.5


@pytest.fixture
def access(s3_server: S3Server, request: pytest.FixtureRequest) -> ObjectAccess:
    """A prefix of its own for every test."""
    reached = s3_server.access("mounted", request.node.name[:40])
    files = open_filesystem(reached)
    files.pipe_file(f"{reached.root}/train/large.bin", LARGE)
    files.pipe_file(f"{reached.root}/README", b"read me")
    return reached


class Node:
    """A node's places for buckets, and one user of them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self._lock: int | None = None

    def order(self, access: ObjectAccess, *, writable: bool) -> MountOrder:
        return MountOrder(
            directory=directory_of(str(self.root), access, writable=writable),
            access=access.to_dict(),
            writable=writable,
            cache=str(self.root / "cache"),
            cache_bytes=1 << 30,
            linger_seconds=LINGER_SECONDS,
        )

    def mounted(self, access: ObjectAccess, *, writable: bool = False) -> Path:
        lock_path = self.root / "lock"
        if self._lock is None:
            self._lock = os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        return Path(ensure_mounted(self.order(access, writable=writable), user="test", lock_path=str(lock_path)))

    def keepers(self) -> list[int]:
        mark = f"{DIRECTORY_VARIABLE}={self.root}".encode()
        return [pid for pid in _processes() if any(line.startswith(mark) for line in _environment(pid))]

    def let_go(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path / "objects")
    yield node
    node.let_go()
    wait_until(lambda: not node.keepers(), "nothing keeps the bucket mounted", 60)


def test_files_of_a_read_only_mount_are_read_and_cannot_be_written(node: Node, access: ObjectAccess) -> None:
    place = node.mounted(access)
    assert sorted(path.name for path in place.iterdir()) == ["README", "train"]
    assert (place / "train" / "large.bin").read_bytes() == LARGE
    with (place / "train" / "large.bin").open("rb") as large:
        large.seek(9 << 20)
        assert large.read(100) == LARGE[9 << 20 : (9 << 20) + 100]
    for refused in (
        lambda: (place / "new").touch(),
        lambda: (place / "README").unlink(),
        lambda: (place / "d").mkdir(),
    ):
        with pytest.raises(OSError, match="Read-only") as reported:
            refused()
        assert reported.value.errno == errno.EROFS
    with pytest.raises(FileNotFoundError):
        (place / "nothing").read_text()
    # One mount for all who use it, and no secret where others could read it.
    assert node.mounted(access) == place
    commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in node.keepers()]
    assert commands
    assert not any(SECRET.encode() in command for command in commands)
    own = [path for path in place.parent.iterdir() if path.is_file()]
    assert not any(SECRET.encode() in path.read_bytes() for path in own)


def test_written_file_is_in_the_bucket_when_it_is_closed(node: Node, access: ObjectAccess) -> None:
    place = node.mounted(access, writable=True)
    files = open_filesystem(access)
    (place / "results" / "deep").mkdir(parents=True)
    (place / "results" / "deep" / "weights").write_bytes(LARGE)
    assert files.cat_file(f"{access.root}/results/deep/weights") == LARGE
    with (place / "README").open("ab") as more:
        more.write(b" and more")
        more.flush()
        os.fsync(more.fileno())
        assert files.cat_file(f"{access.root}/README") == b"read me and more"
    # As careful programs save: another name first.
    (place / "state.tmp").write_text("saved")
    (place / "state.tmp").rename(place / "state")
    (place / "results" / "deep" / "weights").unlink()
    assert sorted(path.name for path in place.iterdir()) == ["README", "results", "state", "train"]
    assert (place / "state").read_text() == "saved"
    assert not files.exists(f"{access.root}/results/deep/weights")


def test_bucket_is_mounted_again_when_its_server_or_its_keeper_dies(node: Node, access: ObjectAccess) -> None:
    place = node.mounted(access)
    assert (place / "README").read_text() == "read me"

    def readable() -> bool:
        try:
            return (place / "README").read_text() == "read me"
        except OSError:
            return False

    (keeper, server) = sorted(node.keepers(), key=_parent_is_one_of(node.keepers()))
    os.kill(server, signal.SIGKILL)
    wait_until(lambda: server not in node.keepers() and readable(), "it is served again", 60)
    assert keeper in node.keepers()
    os.kill(keeper, signal.SIGKILL)
    wait_until(lambda: not node.keepers(), "both are gone", 60)
    assert not is_mounted(str(place))
    assert node.mounted(access) == place
    assert (place / "train" / "large.bin").read_bytes() == LARGE


def _parent_is_one_of(pids: list[int]) -> Callable[[int], int]:
    def depth(pid: int) -> int:
        return int(int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) in pids)

    return depth


def test_bucket_is_unmounted_when_no_job_uses_it(node: Node, access: ObjectAccess) -> None:
    place = node.mounted(access)
    assert is_mounted(str(place))
    node.let_go()
    wait_until(lambda: not node.keepers() and not is_mounted(str(place)), "it is unmounted", 60)


# ------------------------------------------------------------------------------------------------ jobs


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalHarness]:
    places = StoragePlaces.below(str(tmp_path / "storage"))
    harness = LocalHarness(tmp_path / "engine", storage=replace(places, linger_seconds=LINGER_SECONDS))
    yield harness
    harness.clean_up()
    objects = Node.__new__(Node)
    objects.root = tmp_path / "storage" / "objects"
    wait_until(lambda: not objects.keepers(), "no bucket stays mounted", 60)


def bucket(access: ObjectAccess, path: str = "/data/set", **more: Any) -> StorageOrder:
    given = {"read_only": True, **more}
    return StorageOrder(kind=StorageKind.OBJECT, name="set", id="v-1", path=path, access=access.to_dict(), **given)


def test_jobs_read_a_bucket_as_a_directory_and_write_where_they_may(
    local: LocalHarness, access: ObjectAccess, tmp_path: Path
) -> None:
    at = tmp_path / "set"
    at.mkdir()
    text = (
        "ls $CORRAL_MOUNT_SET; wc -c < $CORRAL_MOUNT_SET/train/large.bin; touch $CORRAL_MOUNT_SET/new || echo refused"
    )
    local.launch(order(*script(text), storage=(bucket(access, str(at), prefetch=True),)))
    wait_until(lambda: AttemptPhase.ENDED in local.listener.phases(), "it ends", 150)
    lines = local.output().splitlines()
    assert local.listener.ended().exit_code == 0, lines
    assert lines[:2] == [
        "corral: fetching set before the start",
        f"corral: set is here: {len(LARGE) / (1 << 30):.2f} GiB",
    ]
    assert lines[2:5] == ["README", "train", str(len(LARGE))]
    assert lines[-1] == "refused"
    writing = order(
        *script("echo made > $CORRAL_MOUNT_SET/new"), attempt_id="j-2.1", storage=(bucket(access, read_only=False),)
    )
    local.launch(writing)
    wait_until(lambda: AttemptPhase.ENDED in local.listener.phases("j-2.1"), "it ends", 150)
    assert local.listener.ended("j-2.1").exit_code == 0, local.output("j-2.1")
    assert open_filesystem(access).cat_file(f"{access.root}/new") == b"made\n"


def test_without_fuse_the_files_are_there_before_the_start(tmp_path: Path, access: ObjectAccess) -> None:
    places = replace(StoragePlaces.below(str(tmp_path / "storage")), without_fuse=True)
    local = LocalHarness(tmp_path / "engine", storage=places)
    try:
        local.launch(order(*script("cat $CORRAL_MOUNT_SET/README"), storage=(bucket(access),)))
        wait_until(lambda: AttemptPhase.ENDED in local.listener.phases(), "it ends", 150)
        assert local.output().endswith("read me"), local.output()
        wait_until(lambda: not any((tmp_path / "storage" / "scratch").iterdir()), "what was fetched goes with it")
        local.launch(order("true", attempt_id="j-2.1", storage=(bucket(access, read_only=False),)))
        wait_until(lambda: AttemptPhase.ENDED in local.listener.phases("j-2.1"), "it ends", 150)
        ended = local.listener.ended("j-2.1")
        assert ended.reason is EndReason.LAUNCH_ERROR
        assert ended.message == "object set: it can be written to only through FUSE, and here switched off"
    finally:
        local.clean_up()


def test_a_bucket_that_refuses_ends_the_attempt_with_its_words(local: LocalHarness, access: ObjectAccess) -> None:
    words = {**access.to_dict(), "secret": "wrong-secret-7"}
    storage = StorageOrder(
        kind=StorageKind.OBJECT, name="set", id="v-1", path="/data/set", access=words, read_only=True
    )
    local.launch(order("true", storage=(storage,)))
    wait_until(lambda: AttemptPhase.ENDED in local.listener.phases(), "it ends", 150)
    ended = local.listener.ended()
    assert ended.reason is EndReason.LAUNCH_ERROR
    assert ended.message.startswith("object set: bucket mounted refuses the key: ")
    assert "wrong-secret-7" not in ended.message
    assert "wrong-secret-7" not in Path(local.layout.spawner_log).read_text()


def _phase(local: LocalHarness) -> AttemptPhase | None:
    found = local.status()
    return found.phase if found is not None else None


def test_a_stop_while_storage_is_prepared_ends_the_attempt_at_once(local: LocalHarness) -> None:
    """A server listens at the address and never answers."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        access = ObjectAccess(kind="s3", bucket="b", endpoint=endpoint, access_key="k", secret="s")
        local.launch(order("true", storage=(bucket(access),)))
        wait_until(
            lambda: (found := local.status()) is not None and found.phase is AttemptPhase.STARTING, "it prepares"
        )
        supervisor = local.supervisor_pid()
        local.engine.stop("j-1.1", 30.0)
        ended = local.listener.ended()
        assert (ended.reason, ended.message) == (EndReason.EXIT_CODE, "stopped before it started")
        wait_until(lambda: not process_exists(supervisor), "nothing of it is left")
