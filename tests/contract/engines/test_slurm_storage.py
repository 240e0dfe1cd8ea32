"""Mounts of jobs on a real Slurm, and their accounts there."""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from corral.control.ports import AttemptPhase, LaunchRefused, StorageKind, StorageOrder
from corral.core.model import EndReason
from corral.datasets import DirectoryBlobs, DirectoryVersions, Repository
from corral.engines.attempts.accounts import account_named
from corral.engines.slurm.attempts.submitters import Submitter
from corral.engines.storage.driver import DirectoryVolumes
from corral.engines.storage.storage_specs import StoragePlaces
from tests.contract.engine_harness import order, script, wait_until
from tests.contract.slurm_harness import SlurmHarness
from tests.servers.accounts import temporary_account
from tests.servers.s3_server import S3Server
from tests.servers.slurm import SlurmCluster

pytest_plugins = ("tests.servers.fixtures",)

GIB = 1 << 30
ACCOUNT = "corral-test-ann"


@pytest.fixture
def place() -> Iterator[Path]:
    """Below it nothing but this test's; every account can pass it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def storage(place: Path) -> StoragePlaces:
    return StoragePlaces.below(str(place / "home"))


@pytest.fixture
def volumes(storage: StoragePlaces) -> DirectoryVolumes:
    return DirectoryVolumes(storage.volumes)


@pytest.fixture
def job_dir(place: Path, storage: StoragePlaces) -> Path:
    directory = place / "home" / "jobs" / "j-1"
    (directory / "outputs").mkdir(parents=True)
    return directory


@pytest.fixture
def slurm(slurm_cluster: SlurmCluster, place: Path, storage: StoragePlaces) -> Iterator[SlurmHarness]:
    harness = SlurmHarness(place / "home" / "slurm", slurm_cluster, storage=storage, top=str(place / "home"))
    yield harness
    harness.clean_up()


@pytest.fixture
def ann() -> Iterator[pwd.struct_passwd]:
    with temporary_account(ACCOUNT, 54321) as account:
        yield account


def volume(name: str, number: int, path: str, *, read_only: bool = False) -> StorageOrder:
    return StorageOrder(kind=StorageKind.VOLUME, name=name, id=f"v-{number}", path=path, read_only=read_only)


def dataset(place: Path, name: str, **files: str) -> tuple[StorageOrder, Path]:
    """A version with these files, and the pack that has their bytes."""
    source, blobs = place / name, place / "blobs"
    source.mkdir()
    for file, text in files.items():
        (source / file).write_text(text)
    repository = Repository(DirectoryBlobs(blobs), DirectoryVersions(place / "versions"))
    commit = repository.commit(name, source, message="", author="ann").commit
    words = {"storage": json.dumps({"kind": "directory", "path": str(blobs)}), "tree": commit.tree, "name": name}
    size = sum(map(len, files.values()))
    (pack,) = (path for path in (blobs / "packs").rglob("*") if path.is_file() and path.stat().st_size == size)
    order = StorageOrder(
        kind=StorageKind.DATASET, name=name, id="d-1", path="/data", read_only=True, version=commit.id, access=words
    )
    return order, pack


LOCAL = StorageOrder(kind=StorageKind.LOCAL, name="scratch", path="/scratch", read_only=False, size_bytes=GIB)


def test_a_volume_has_a_variable_and_a_link_and_the_nodes_disk_is_gone_afterwards(
    slurm: SlurmHarness, volumes: DirectoryVolumes, job_dir: Path
) -> None:
    volumes.create("v-1", GIB, "ada")
    text = (
        'echo "$CORRAL_MOUNTS"; echo hello > "$CORRAL_MOUNT_DATA/greeting"; '
        f'cat "{job_dir}/mounts/data/greeting"; echo own > "$CORRAL_MOUNT_SCRATCH/file"; '
        'mkdir "$CORRAL_MOUNT_SCRATCH/closed"; chmod 0 "$CORRAL_MOUNT_SCRATCH/closed"'
    )
    env = {"CORRAL_JOB_DIR": str(job_dir)}
    slurm.launch(order(*script(text), storage=(volume("ada/data", 1, "/data"), LOCAL), env=env))
    assert slurm.listener.ended().exit_code == 0, slurm.output()
    reported, greeting = slurm.output().splitlines()
    seen = json.loads(reported)
    assert (seen["/data"], greeting) == (volumes.path_of("v-1"), "hello")
    assert not Path(seen["/scratch"]).exists()
    assert not Path(seen["/scratch"]).parent.exists()


def test_each_instance_of_a_gang_has_its_own_of_its_nodes_disk(slurm: SlurmHarness, job_dir: Path) -> None:
    env = {"CORRAL_JOB_DIR": str(job_dir)}
    slurm.launch(order(*script('echo "$CORRAL_MOUNTS"'), nodes=2, gpus=1, storage=(LOCAL,), env=env))
    assert slurm.listener.ended().exit_code == 0
    assert slurm.output(rank=0) != slurm.output(rank=1)
    assert sorted(os.listdir(job_dir / "mounts")) == ["scratch", "scratch-1"]


def test_storage_that_cannot_be_mounted_is_named_in_the_message(slurm: SlurmHarness) -> None:
    bucket = StorageOrder(kind=StorageKind.OBJECT, name="far", path="/far", read_only=False)
    with pytest.raises(LaunchRefused, match=r"bucket far cannot be written to .* mount it read-only \(far:/far:ro\)"):
        slurm.launch(order("true", attempt_id="j-7.1", storage=(bucket,)))
    slurm.launch(order("true", attempt_id="j-8.1", storage=(volume("gone", 9, "/data"),)))
    ended = slurm.listener.ended("j-8.1")
    assert ended.reason is EndReason.LAUNCH_ERROR
    assert ended.message == "volume gone (v-9) has no directory on node1"


def test_a_version_of_a_dataset_is_checked_out_once_for_all_nodes(
    slurm: SlurmHarness, place: Path, storage: StoragePlaces, job_dir: Path
) -> None:
    data, _ = dataset(place, "digits", one="1", two="22")
    text = 'cat "$CORRAL_MOUNT_DIGITS/one" "$CORRAL_MOUNT_DIGITS/two"; sleep 600'
    env = {"CORRAL_JOB_DIR": str(job_dir)}
    slurm.launch(order(*script(text), nodes=2, storage=(data, LOCAL), env=env))
    slurm.launch(
        order(*script("cat mounts/digits/one"), attempt_id="j-2.1", storage=(data,), env=env, workdir=str(job_dir))
    )
    assert slurm.listener.ended("j-2.1").exit_code == 0, slurm.output("j-2.1")
    assert slurm.output("j-2.1").splitlines()[-1].endswith("1")
    wait_until(lambda: all("122" in slurm.output(rank=rank) for rank in (0, 1)), "both nodes have read it")
    (checkout,) = Path(storage.datasets).glob(f"{data.version}.?")
    assert f"corral: digits@{data.version[:12]} is at {checkout}, read-only" in slurm.output()
    assert {path.name for path in Path(storage.datasets, "uses", checkout.name).iterdir()} >= {"j-1.1-j-1.1"}
    assert oct((checkout / "one").stat().st_mode & 0o777) == "0o444"
    slurm.restart()
    assert (slurm.root / "orders" / "j-1.1").exists(), "the eviction sees that it is in use, also by an earlier server"
    slurm.engine.stop("j-1.1", 0.0)
    slurm.listener.ended()
    slurm.engine.forget(["j-1.1", "j-2.1"])
    assert checkout.exists(), "it stays for the next job"


def test_damaged_dataset_ends_the_attempt_and_is_named(slurm: SlurmHarness, place: Path) -> None:
    data, pack = dataset(place, "brittle", one="1" * 1000)
    pack.write_bytes(b"2" * 1000)
    slurm.launch(order(*script("echo it ran"), storage=(data,)))
    ended = slurm.listener.ended()
    assert ended.reason is EndReason.LAUNCH_ERROR
    assert ended.message.startswith("dataset brittle: ")
    assert pack.name in ended.message
    # So it is for the next server too, which does not try again.
    slurm.restart()
    status = slurm.status()
    assert status is not None
    assert (status.reason, status.message) == (ended.reason, ended.message)
    slurm.engine.forget(["j-1.1"])


def test_files_that_are_being_fetched_delay_no_other_attempt_and_can_be_cancelled(
    slurm: SlurmHarness, place: Path, storage: StoragePlaces
) -> None:
    data, _ = dataset(place, "slow", one="1")
    locks = Path(storage.datasets, "locks")
    locks.mkdir(parents=True)
    with (locks / data.version).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # as by a checkout that takes its time
        slurm.launch(order("true", attempt_id="j-3.1", storage=(data,)))
        slurm.launch(order("true", attempt_id="j-3.1", storage=(data,)))
        slurm.launch(order("true", attempt_id="j-4.1"))
        assert slurm.listener.ended("j-4.1").exit_code == 0
        status = slurm.status("j-3.1")
        assert status is not None
        assert (status.phase, status.message) == (AttemptPhase.STARTING, "its storage is prepared")
        assert slurm.engine.has("j-3.1")
        slurm.engine.stop("j-3.1", 5.0)
        ended = slurm.listener.ended("j-3.1")
        assert (ended.reason, ended.message) == (EndReason.EXIT_CODE, "stopped before it began")
        # A server that dies meanwhile leaves nothing behind: the next one gets the launch again.
        slurm.launch(order("true", attempt_id="j-5.1", storage=(data,)))
        slurm.restart()
        assert slurm.status("j-5.1") is None
        slurm.launch(order("true", attempt_id="j-5.1", storage=(data,)))
    assert slurm.listener.ended("j-5.1").exit_code == 0


def test_files_of_a_bucket_are_fetched_before_the_start_and_go_with_the_attempt(
    slurm: SlurmHarness, s3_server: S3Server, job_dir: Path
) -> None:
    access = s3_server.access("slurm-files")
    (s3_server.make_bucket("slurm-files") / "greeting").write_text("hello from a bucket")
    bucket = StorageOrder(
        kind=StorageKind.OBJECT, name="far", id="v-5", path="/far", read_only=True, access=access.to_dict()
    )
    text = 'cat "$CORRAL_MOUNT_FAR/greeting"; echo; echo "$CORRAL_MOUNTS"'
    slurm.launch(order(*script(text), storage=(bucket,), env={"CORRAL_JOB_DIR": str(job_dir)}))
    assert slurm.listener.ended().exit_code == 0, slurm.output()
    *_, greeting, reported = slurm.output().splitlines()
    assert greeting == "hello from a bucket"
    fetched = Path(json.loads(reported)["/far"])
    assert fetched.is_relative_to(slurm.root)
    slurm.engine.forget(["j-1.1"])
    assert not fetched.exists()


def test_a_job_is_its_users_in_slurm_and_no_other_user_can_touch_it(
    slurm_cluster: SlurmCluster,
    place: Path,
    storage: StoragePlaces,
    volumes: DirectoryVolumes,
    job_dir: Path,
    ann: pwd.struct_passwd,
    s3_server: S3Server,
) -> None:
    account = account_named(ACCOUNT)
    assert account is not None
    before = os.umask(0o077)
    harness = SlurmHarness(
        place / "home" / "slurm",
        slurm_cluster,
        storage=storage,
        top=str(place / "home"),
        account_of=lambda order: Submitter(account=account, slurm_account="physics"),
    )
    try:
        volumes.create("v-1", GIB, "ann")
        env = {"CORRAL_JOB_DIR": str(job_dir), "CORRAL_OUTPUT_DIR": str(job_dir / "outputs"), "SECRET": "of-ann"}
        text = (
            'id -un; echo $HOME; echo hi > "$CORRAL_MOUNT_DATA/x"; echo done > "$CORRAL_OUTPUT_DIR/result"; '
            'cat "$CORRAL_MOUNT_DIGITS/one"; cat "$CORRAL_MOUNT_FAR/greeting"; touch "$CORRAL_MOUNT_DIGITS/new" 2>&1; '
            f"touch {place}/home/slurm/places/verdict 2>&1; sleep 1000"
        )
        data, _ = dataset(place, "digits", one="version one\n")
        access = s3_server.access("ann-files")
        (s3_server.make_bucket("ann-files") / "greeting").write_text("hello from a bucket\n")
        far = StorageOrder(
            kind=StorageKind.OBJECT, name="far", id="v-5", path="/far", read_only=True, access=access.to_dict()
        )
        mine = replace(data, path="/digits")
        harness.launch(order(*script(text), storage=(volume("data", 1, "/data"), mine, far), env=env))
        wait_until(lambda: "verdict" in harness.output(), "it has tried", seconds=60)
        lines = [line for line in harness.output().splitlines() if not line.startswith("corral: ")]
        assert lines[:4] == [ACCOUNT, ann.pw_dir, "version one", "hello from a bucket"]
        assert [line.endswith("Permission denied") for line in lines[4:]] == [True, True], lines
        listed = slurm_cluster.run("squeue", "-h", "-o", "%u %a").split()
        assert listed == [ACCOUNT, "physics"]
        assert (job_dir / "outputs" / "result").read_text() == "done\n"
        root = place / "home" / "slurm"
        for name, mode in {"orders": 0o700, "stops": 0o711, "places": 0o711}.items():
            found = (root / name).stat()
            assert (stat.S_IMODE(found.st_mode), found.st_uid) == (mode, 0), name
        for name in ("instance", "log", "told"):
            found = (root / "places" / "j-1.1.0" / name).stat()
            assert (found.st_uid, found.st_mode & 0o077) == (ann.pw_uid, 0), name
        harness.engine.stop("j-1.1", 1.0)
        harness.listener.ended()
        # What a job puts in the place of its files is not followed.
        log = root / "places" / "j-1.1.0" / "log"
        log.unlink()
        log.symlink_to("/etc/shadow")
        assert harness.output() == ""
    finally:
        harness.clean_up()
        os.umask(before)


def test_secrets_of_a_job_are_in_no_file_once_it_runs(harness: SlurmHarness) -> None:
    launch_order = replace(
        order(*script('echo "$TOKEN" | wc -c; sleep 600'), nodes=2), secret_env={"TOKEN": "s3cr3t-value"}
    )
    harness.launch(launch_order)
    harness.listener.running("j-1.1")
    wait_until(lambda: "13" in harness.output(), "it has its secret")
    wait_until(lambda: "13" in harness.output(rank=1), "it has its secret on the other node, too")
    kept = [path for path in [*harness.root.rglob("*"), *harness.slurm.directory.rglob("*")] if path.is_file()]
    assert kept
    assert not [path for path in kept if b"s3cr3t-value" in path.read_bytes()]
