"""What jobs see of what they mount on a real Slurm, and whose they are there."""

from __future__ import annotations

import json
import os
import pwd
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.control.ports import LaunchRefused, StorageKind, StorageOrder
from corral.core.model import EndReason
from corral.engines.local.accounts import account_named
from corral.engines.local.storage.driver import DirectoryVolumes
from corral.engines.local.storage.orders import StoragePlaces
from corral.engines.slurm.submitters import Submitter
from tests.contract.engine_harness import order, script, wait_until
from tests.contract.slurm_harness import SlurmHarness
from tests.servers.accounts import temporary_account
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
    told, greeting = slurm.output().splitlines()
    seen = json.loads(told)
    assert (seen["/data"], greeting) == (volumes.path_of("v-1"), "hello")
    assert not Path(seen["/scratch"]).exists()
    assert not Path(seen["/scratch"]).parent.exists()


def test_each_instance_of_a_gang_has_its_own_of_its_nodes_disk(slurm: SlurmHarness, job_dir: Path) -> None:
    env = {"CORRAL_JOB_DIR": str(job_dir)}
    slurm.launch(order(*script('echo "$CORRAL_MOUNTS"'), nodes=2, gpus=1, storage=(LOCAL,), env=env))
    assert slurm.listener.ended().exit_code == 0
    assert slurm.output(rank=0) != slurm.output(rank=1)
    assert sorted(os.listdir(job_dir / "mounts")) == ["scratch", "scratch-1"]


def test_what_cannot_be_mounted_is_said_in_words(slurm: SlurmHarness) -> None:
    for number, kind in enumerate((StorageKind.OBJECT, StorageKind.DATASET), start=1):
        with pytest.raises(LaunchRefused, match="a Slurm cluster mounts volumes and local storage"):
            slurm.launch(
                order(
                    "true",
                    attempt_id=f"j-7.{number}",
                    storage=(StorageOrder(kind=kind, name="far", path="/far", read_only=True),),
                )
            )
    slurm.launch(order("true", attempt_id="j-8.1", storage=(volume("gone", 9, "/data"),)))
    ended = slurm.listener.ended("j-8.1")
    assert ended.reason is EndReason.LAUNCH_ERROR
    assert ended.message == "volume gone (v-9) has no directory on node1"


def test_a_job_is_its_users_in_slurm_and_nobody_else_can_touch_it(
    slurm_cluster: SlurmCluster,
    place: Path,
    storage: StoragePlaces,
    volumes: DirectoryVolumes,
    job_dir: Path,
    ann: pwd.struct_passwd,
) -> None:
    account = account_named(ACCOUNT)
    assert account is not None
    before = os.umask(0o077)
    harness = SlurmHarness(
        place / "home" / "slurm",
        slurm_cluster,
        storage=storage,
        top=str(place / "home"),
        account_of=lambda order: Submitter(account=account, books="physics"),
    )
    try:
        volumes.create("v-1", GIB, "ann")
        env = {"CORRAL_JOB_DIR": str(job_dir), "CORRAL_OUTPUT_DIR": str(job_dir / "outputs"), "SECRET": "of-ann"}
        text = (
            'id -un; echo $HOME; echo hi > "$CORRAL_MOUNT_DATA/x"; echo done > "$CORRAL_OUTPUT_DIR/result"; '
            f"touch {place}/home/slurm/attempts/j-1.1/verdict 2>&1; sleep 1000"
        )
        harness.launch(order(*script(text), storage=(volume("data", 1, "/data"),), env=env))
        wait_until(lambda: "verdict" in harness.output(), "it has tried", seconds=60)
        assert harness.output().splitlines()[:2] == [ACCOUNT, ann.pw_dir]
        assert "Permission denied" in harness.output()
        listed = slurm_cluster.run("squeue", "-h", "-o", "%u %a").split()
        assert listed == [ACCOUNT, "physics"]
        assert (job_dir / "outputs" / "result").read_text() == "done\n"
        directory = place / "home" / "slurm" / "attempts" / "j-1.1"
        assert (stat.S_IMODE(directory.stat().st_mode), directory.stat().st_uid) == (0o711, 0)
        for name in ("instance", "log", "up"):
            found = (directory / "rank-0" / name).stat()
            assert (found.st_uid, found.st_mode & 0o077) == (ann.pw_uid, 0), name
        harness.engine.stop("j-1.1", 1.0)
        harness.listener.ended()
        # What a job puts in the place of its files is not followed.
        log = directory / "rank-0" / "log"
        log.unlink()
        log.symlink_to("/etc/shadow")
        assert harness.output() == ""
    finally:
        harness.clean_up()
        os.umask(before)
