"""Mounts of jobs: real processes, real mounts, and no leftovers."""

from __future__ import annotations

import json
import os
import pwd
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.control.ports import LaunchRefused, StorageKind, StorageOrder
from corral.core.model import EndReason
from corral.datasets import DirectoryBlobs, DirectoryVersions, Repository
from corral.engines.attempts.accounts import AccountRules
from corral.engines.attempts.isolation import Isolation
from corral.engines.storage import job_mounts, mount_namespace
from corral.engines.storage.driver import DirectoryVolumes
from tests.contract.engine_harness import LocalHarness, kill, order, script, wait_until
from tests.contract.engines.shell_runs import ran
from tests.servers.images import busybox_image, needs_podman

GIB = 1 << 30
ACCOUNT = pwd.getpwnam("nobody")
needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can mount for jobs or give them accounts: run as root"
)


def volume(name: str, number: int, path: str, *, read_only: bool = False) -> StorageOrder:
    return StorageOrder(kind=StorageKind.VOLUME, name=name, id=f"v-{number}", path=path, read_only=read_only)


def scratch(path: str, size_bytes: int = GIB) -> StorageOrder:
    return StorageOrder(kind=StorageKind.LOCAL, name="local", path=path, read_only=False, size_bytes=size_bytes)


@pytest.fixture
def place() -> Iterator[Path]:
    """Below it nothing but this test's; every account can pass it."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def volumes(place: Path) -> DirectoryVolumes:
    return DirectoryVolumes(str(place / "engine" / "storage" / "volumes"))


@pytest.fixture
def local(place: Path, volumes: DirectoryVolumes) -> Iterator[LocalHarness]:
    harness = LocalHarness(place / "engine")
    yield harness
    harness.clean_up()


@pytest.fixture
def mapped(place: Path, volumes: DirectoryVolumes) -> Iterator[LocalHarness]:
    """An engine that gives all users the account `nobody`."""
    isolation = Isolation(accounts=AccountRules(pattern="nobody"), top=str(place / "engine"))
    harness = LocalHarness(place / "engine", isolation=isolation)
    yield harness
    harness.clean_up()


@pytest.fixture
def job_dir(place: Path) -> Path:
    directory = place / "engine" / "jobs" / "j-1"
    directory.mkdir(parents=True)
    return directory


def test_a_volume_has_a_variable_and_a_link_and_outlives_its_jobs(
    local: LocalHarness, volumes: DirectoryVolumes, job_dir: Path, place: Path
) -> None:
    volumes.create("v-1", GIB, "ada")
    asked = str(place / "data")
    text = f'echo "$CORRAL_MOUNTS"; echo hello > $CORRAL_MOUNT_DATA/greeting; cat {job_dir}/mounts/data/greeting'
    storage = (volume("data", 1, asked),)
    local.launch(order(*script(text), storage=storage, env={"CORRAL_JOB_DIR": str(job_dir)}))
    assert local.listener.ended().exit_code == 0, local.output()
    reported, greeting = local.output().splitlines()
    assert list(json.loads(reported)) == [asked]
    assert greeting == "hello"
    text = f"cat {job_dir}/mounts/data/greeting"
    local.launch(order(*script(text), attempt_id="j-1.2", storage=storage, env={"CORRAL_JOB_DIR": str(job_dir)}))
    assert local.listener.ended("j-1.2").exit_code == 0
    assert local.output("j-1.2") == "hello\n"


@needs_root
def test_at_the_very_path_that_was_asked_for_and_read_only_there(
    mapped: LocalHarness, volumes: DirectoryVolumes, place: Path
) -> None:
    for number in (1, 2):
        volumes.create(f"v-{number}", GIB, "ada")
    data, results = place / "data", place / "results"
    for path in (data, results):
        path.mkdir()
    (data / "of-the-node").write_text("hidden while the job looks")
    Path(str(volumes.path_of("v-1")), "shared").write_text("shared words")
    text = (
        f"cat {data}/shared; ls {data}; touch {data}/new 2>&1; echo made > {results}/new; id -un; "
        f"ls {volumes.path_of('v-1')} 2>&1; grep NoNewPrivs /proc/self/status"
    )
    storage = (volume("ada/data", 1, str(data), read_only=True), volume("results", 2, str(results)))
    mapped.launch(order(*script(text), storage=storage))
    ended = mapped.listener.ended()
    lines = mapped.output().splitlines()
    assert ended.exit_code == 0, lines
    assert lines[0] == "shared wordsshared"
    assert "Read-only file system" in lines[1]
    assert lines[2] == "nobody"
    assert "Permission denied" in lines[3]
    assert lines[4].split() == ["NoNewPrivs:", "1"]
    made = Path(str(volumes.path_of("v-2")), "new")
    assert made.read_text() == "made\n"
    assert made.stat().st_uid == ACCOUNT.pw_uid
    assert list(results.iterdir()) == []
    assert [path.name for path in data.iterdir()] == ["of-the-node"]


@needs_root
def test_at_a_path_of_the_system_it_is_mounted_in_a_private_place(
    mapped: LocalHarness, volumes: DirectoryVolumes, job_dir: Path
) -> None:
    """The variable and the link lead there; read-only is enforced there too, and no hard link leads out of it."""
    for number in (1, 2):
        volumes.create(f"v-{number}", GIB, "ada")
    Path(str(volumes.path_of("v-2")), "shared").write_text("shared words\n")
    text = (
        f'cd "$CORRAL_MOUNT_DATA" && echo made > new && pwd && cat {job_dir}/mounts/data/new; '
        'touch "$CORRAL_MOUNT_MORE/new" 2>&1; cat "$CORRAL_MOUNT_MORE/shared"; ln new $TMPDIR/kept 2>&1; '
        f"ls {volumes.path_of('v-2')} 2>&1; ls {Path(str(volumes.path_of('v-1'))).parent} 2>&1"
    )
    storage = (volume("data", 1, "/var/data"), volume("more", 2, "/etc/more", read_only=True))
    mapped.launch(order(*script(text), storage=storage, env={"CORRAL_JOB_DIR": str(job_dir)}))
    mapped.listener.ended()
    lines = mapped.output().splitlines()
    assert lines[0].endswith("/j-1.1/0/storage/0")
    assert lines[1] == "made"
    assert "Read-only file system" in lines[2]
    assert lines[3] == "shared words"
    assert "Invalid cross-device link" in lines[4]
    assert all("Permission denied" in line for line in lines[5:7]), lines
    assert Path(str(volumes.path_of("v-1")), "new").read_text() == "made\n"
    wait_until(lambda: not (place_of(mapped) / "storage").exists(), "the private place is removed")


def place_of(harness: LocalHarness, attempt_id: str = "j-1.1") -> Path:
    return Path(harness.engine._layout.rank_dir(attempt_id, 0))


@needs_root
@pytest.mark.parametrize("path", ["/corral-not-there", "/corral-not-there/in/it", "/mnt/corral-not-there/x"])
def test_a_mount_point_that_the_machine_lacks_is_made_for_the_job_alone(
    mapped: LocalHarness, volumes: DirectoryVolumes, path: str
) -> None:
    volumes.create("v-1", GIB, "ada")
    before = {name: sorted(os.listdir(name)) for name in ("/", "/mnt")}
    text = f"echo made > {path}/new && pwd; ls -d /usr/bin /proc/self /tmp; touch {os.path.dirname(path)}/y 2>&1; true"
    mapped.launch(order(*script(text), storage=(volume("data", 1, path),)))
    assert mapped.listener.ended().exit_code == 0, mapped.output()
    lines = mapped.output().splitlines()
    assert lines[1:4] == ["/proc/self", "/tmp", "/usr/bin"]
    assert "Permission denied" in lines[4]
    assert Path(str(volumes.path_of("v-1")), "new").read_text() == "made\n"
    assert {name: sorted(os.listdir(name)) for name in ("/", "/mnt")} == before


@needs_root
def test_storage_that_cannot_be_bound_is_refused(
    mapped: LocalHarness, volumes: DirectoryVolumes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that allows no mount namespaces: the directory itself is shown to no job."""
    volumes.create("v-1", GIB, "ada")
    specs = mapped.engine._specs
    harmful = order(*script('echo "$CORRAL_MOUNTS"'), storage=(volume("data", 1, "/var/data", read_only=True),))
    spec = specs.spec(harmful, harmful.instances[0], specs.check(harmful), None)

    def refused() -> None:
        raise PermissionError(1, "Operation not permitted", "a mount namespace")

    monkeypatch.setattr(mount_namespace, "enter", refused)
    with pytest.raises(PermissionError, match="a mount namespace"):
        job_mounts.enter_mounts(spec["storage"], spec["owner"], "", str(place_of(mapped)), print)


def dataset(place: Path, name: str, path: str, **files: str) -> StorageOrder:
    source = place / "source" / name
    source.mkdir(parents=True)
    for file, text in files.items():
        (source / file).write_text(text)
    blobs = place / "blobs"
    repository = Repository(DirectoryBlobs(blobs), DirectoryVersions(place / "versions"))
    commit = repository.commit(name, source, message="", author="ann").commit
    access = {"storage": json.dumps({"kind": "directory", "path": str(blobs)}), "tree": commit.tree, "name": name}
    return StorageOrder(
        kind=StorageKind.DATASET, name=name, id="d-1", path=path, read_only=True, version=commit.id, access=access
    )


@pytest.mark.parametrize("path", ["/mnt/digits", "/etc/digits"])
def test_the_log_names_the_path_of_a_dataset_which_is_read_only(local: LocalHarness, place: Path, path: str) -> None:
    """Also where the requested path cannot be used."""
    data = dataset(place, "digits", path, one="1")
    text = 'cat "$CORRAL_MOUNT_DIGITS/one"; touch "$CORRAL_MOUNT_DIGITS/new" || echo refused; echo "$CORRAL_MOUNTS"'
    local.launch(order(*script(text), storage=(data,)))
    assert local.listener.ended().exit_code == 0, local.output()
    lines = local.output().splitlines()
    seen = json.loads(lines[-1])[path]
    assert lines[0] == f"corral: digits@{data.version[:12]} is at {seen}, read-only"
    assert "refused" in lines
    assert not Path(seen).exists() or os.geteuid() != 0, "nothing is left of the mount"
    assert not Path(path).exists()


def test_the_nodes_own_disk_is_empty_at_first_and_gone_with_the_attempt(local: LocalHarness, place: Path) -> None:
    text = 'ls -A "$CORRAL_MOUNT_LOCAL"; echo "place $CORRAL_MOUNTS"; head -c 3000000 /dev/zero > $CORRAL_MOUNT_LOCAL/x'
    for attempt_id in ("j-1.1", "j-1.2"):
        local.launch(order(*script(text), attempt_id=attempt_id, storage=(scratch(str(place / "s"), 1 << 20),)))
        assert local.listener.ended(attempt_id).exit_code == 0
        lines = local.output(attempt_id).splitlines()
        assert lines[0].startswith("place")
        wait_until(lambda: not any((place / "engine/storage/scratch").iterdir()), "it is removed")
    wait_until(lambda: "0.00 GiB were asked for" in local.output("j-1.2"), "its log says that it used too much")


def test_the_disk_of_a_killed_supervisor_is_removed(local: LocalHarness, place: Path) -> None:
    local.launch(order(*script("touch $CORRAL_MOUNT_LOCAL/x; echo up; exec sleep 600"), storage=(scratch("/var/s"),)))
    wait_until(lambda: "up" in local.output(), "it runs")
    assert any((place / "engine/storage/scratch").iterdir())
    kill(local.supervisor_pid())
    assert local.listener.ended().reason is EndReason.LOST
    wait_until(lambda: not any((place / "engine/storage/scratch").iterdir()), "it is removed")


def test_a_volume_that_is_not_there_is_named(local: LocalHarness) -> None:
    local.launch(order("true", storage=(volume("data", 9, "/var/data"),)))
    ended = local.listener.ended()
    assert ended.reason is EndReason.LAUNCH_ERROR
    assert ended.message == "volume data (v-9) has no directory on this node"


def test_storage_that_cannot_be_mounted_is_refused(local: LocalHarness) -> None:
    refusals = {
        "not an absolute path below /": (volume("data", 1, "data"),),
        "not an absolute path": (volume("data", 1, "/a/.."),),
        "data and more cannot both be mounted at /data": (volume("data", 1, "/data"), volume("more", 2, "/data/")),
    }
    for message, storage in refusals.items():
        with pytest.raises(LaunchRefused, match=message):
            local.engine.launch(order("true", storage=storage))


def test_a_link_in_the_way_leads_nowhere(
    local: LocalHarness, volumes: DirectoryVolumes, job_dir: Path, place: Path
) -> None:
    """A job made its directory of links a link to somewhere else: nothing is written there."""
    volumes.create("v-1", GIB, "ada")
    (place / "elsewhere").mkdir()
    (job_dir / "mounts").symlink_to(place / "elsewhere")
    storage = (volume("data", 1, "/var/data"),)
    local.launch(order("true", storage=storage, env={"CORRAL_JOB_DIR": str(job_dir)}))
    ended = local.listener.ended()
    assert ended.reason is EndReason.LAUNCH_ERROR
    assert "is in the way of the links" in ended.message
    assert list((place / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    ("path", "can_be"),
    [("/", False), ("/etc", False), ("/usr/share/data", False), ("/var/lib", False),
     ("/corral-not-there", True), ("/tmp", True)],
)  # fmt: skip
def test_mounts_cover_nothing_of_the_system(path: str, can_be: bool) -> None:
    assert job_mounts.is_outside_system(path) is can_be


@pytest.mark.parametrize(
    ("path", "copied"),
    [("/corral-not-there", "/"), ("/corral/not/there", "/"), ("/mnt/corral-not-there", "/mnt"), ("/mnt/a/b", "/mnt"),
     ("/tmp", None), ("/tmp/corral-not-there", None), ("/usr/corral-not-there", None)],
)  # fmt: skip
def test_mount_points_are_made_in_few_places(path: str, copied: str | None) -> None:
    assert job_mounts.missing_point(path) == copied


@needs_podman
def test_a_container_has_real_mounts(local: LocalHarness, volumes: DirectoryVolumes) -> None:
    for number in (1, 2):
        volumes.create(f"v-{number}", GIB, "ada")
    Path(str(volumes.path_of("v-1")), "shared").write_text("shared words\n")
    text = (
        "cat /data/shared; touch /data/new 2>/dev/null || echo refused; echo made > /results/new; "
        'touch /fast/x; echo "$CORRAL_MOUNT_DATA $CORRAL_MOUNT_LOCAL"'
    )
    storage = (volume("data", 1, "/data", read_only=True), volume("results", 2, "/results"), scratch("/fast"))
    with busybox_image() as image:
        local.launch(order(*script(text), image=image, storage=storage))
        ended = local.listener.ended()
        assert ended.exit_code == 0, (ended, local.output())
        assert local.output().splitlines() == ["shared words", "refused", "/data /fast"]
    assert Path(str(volumes.path_of("v-2")), "new").read_text() == "made\n"
    left = Path(local.layout.rank_dir("j-1.1", 0))
    wait_until(lambda: "storage" not in os.listdir(left), "the links of the container are removed")


@needs_root
def test_a_shell_sees_the_mounts_of_its_job_as_its_account(mapped: LocalHarness, volumes: DirectoryVolumes) -> None:
    volumes.create("v-1", GIB, "ada")
    text = "echo hello > /corral-not-there/greeting; echo ready; sleep 600"
    mapped.launch(order(*script(text), storage=(volume("data", 1, "/corral-not-there"),)))
    wait_until(lambda: "ready" in mapped.output(), "it runs")
    out, errors, code = ran(mapped, "sh", "-c", "cat /corral-not-there/greeting; id -u; id -G")
    assert (errors, code) == ("", 0)
    greeting, uid, groups = out.splitlines()
    assert (greeting, int(uid)) == ("hello", ACCOUNT.pw_uid)
    assert set(map(int, groups.split())) == set(os.getgrouplist("nobody", ACCOUNT.pw_gid))
    assert not Path("/corral-not-there").exists()
