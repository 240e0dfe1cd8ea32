"""Jobs in images on a real Slurm, by a real Apptainer."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corral.control.ports import LaunchOrder, LaunchRefused, RegistryLogin, StorageKind, StorageOrder
from corral.core.model import EndReason
from corral.engines.attempts.accounts import Account, account_named
from corral.engines.slurm.attempts.submitters import Submitter
from corral.engines.slurm.slurm_images import ImageRules
from corral.engines.storage.driver import DirectoryVolumes
from corral.engines.storage.storage_specs import StoragePlaces
from tests.contract.engine_harness import order, script, wait_until
from tests.contract.engines.shell_runs import ran
from tests.contract.slurm_harness import SlurmHarness
from tests.servers.accounts import temporary_account
from tests.servers.apptainer import apptainer, busybox_file, needs_apptainer
from tests.servers.registry import PrivateRegistry, private_registry
from tests.servers.slurm import SlurmCluster

pytest_plugins = ("tests.servers.fixtures",)
pytestmark = needs_apptainer

SECRET = "a-password-for-the-registry"


@pytest.fixture(scope="module")
def program() -> str:
    return apptainer()


@pytest.fixture(scope="module")
def image(program: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(busybox_file(program, tmp_path_factory.mktemp("image")))


@pytest.fixture
def harness(tmp_path: Path, slurm_cluster: SlurmCluster, program: str) -> Iterator[SlurmHarness]:
    account = Account(name="root", uid=0, gid=0, groups=(0,), home=str(tmp_path / "home"))
    made = SlurmHarness(
        tmp_path / "slurm",
        slurm_cluster,
        account_of=lambda order: Submitter(account=account),
        storage=StoragePlaces.below(str(tmp_path)),
        top=str(tmp_path),
    )
    made.rules = {"images": ImageRules(program=program)}
    made.restart()
    yield made
    made.clean_up()


@pytest.fixture(scope="module")
def registry() -> Iterator[PrivateRegistry]:
    with private_registry("ada", SECRET) as found:
        yield found


def processes_in(harness: SlurmHarness) -> list[str]:
    """Processes of the attempt, by the variable that every one of them has."""
    mark = f"CORRAL_RUN_DIR={harness.root}/places/j-1.1.0".encode()
    return [str(path) for path in Path("/proc").glob("[0-9]*/environ") if mark in _environment(path)]


def _environment(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # the process has ended


def boxed(image: str, text: str, **more: Any) -> LaunchOrder:
    return order(*script(text), image=image, **more)


def test_a_job_runs_in_its_image_and_sees_its_own_directories_only(
    harness: SlurmHarness, image: str, tmp_path: Path
) -> None:
    project, job_dir, other = tmp_path / "project", tmp_path / "job", tmp_path / "other"
    for path in (project, job_dir / "checkpoints", other):
        path.mkdir(parents=True)
    env = {"WORDS": "two 'words' = \"$1\"\nand a line", "CORRAL_JOB_DIR": str(job_dir), "APPTAINER_BIND": str(other)}
    text = (
        'pwd; echo "$WORDS"; echo "$CORRAL_JOB_ID $HOME $TMPDIR $SLURM_JOB_NUM_NODES"; '
        f"ls -d /usr {other} 2>/dev/null; ls -A /root 2>/dev/null; "
        "grep -E '^(CapEff|NoNewPrivs)' /proc/self/status | tr -s '\\t' ' '; "
        "touch made $CORRAL_JOB_DIR/kept /tmp/scratch; exit 3"
    )
    harness.launch(boxed(image, text, env=env, workdir=str(project), gpus=2))
    ended = harness.listener.ended()
    assert (ended.reason, ended.exit_code) == (EndReason.EXIT_CODE, 3)
    assert harness.output().splitlines() == [
        str(project),
        "two 'words' = \"$1\"",
        "and a line",
        f"j-1 {job_dir} /tmp 1",
        "CapEff: 0000000000000000",
        "NoNewPrivs: 1",
    ]
    assert (project / "made").exists()
    assert (job_dir / "kept").exists()
    assert not Path("/tmp/scratch").exists()


def test_the_environment_is_not_on_a_command_line(harness: SlurmHarness, image: str) -> None:
    harness.launch(boxed(image, "echo up; exec sleep 600", secret_env={"TOKEN": "hidden-in-a-file"}))
    wait_until(lambda: "up" in harness.output(), "it runs")
    assert processes_in(harness)
    lines = subprocess.run(["ps", "-eo", "args"], check=True, capture_output=True, text=True).stdout
    assert "hidden-in-a-file" not in lines
    harness.engine.stop("j-1.1", 0.0)
    assert harness.listener.ended().exit_code == 137
    wait_until(lambda: not processes_in(harness), "nothing is left")


def test_a_stop_warns_the_program_and_waits(harness: SlurmHarness, image: str) -> None:
    harness.launch(boxed(image, "trap 'echo warned; exit 9' TERM; echo up; while :; do sleep 0.1; done"))
    wait_until(lambda: "up" in harness.output(), "it runs")
    harness.engine.stop("j-1.1", 30.0)
    ended = harness.listener.ended()
    assert (ended.reason, ended.exit_code) == (EndReason.EXIT_CODE, 9)
    assert "warned" in harness.output().splitlines()


def test_gpus_are_those_that_slurm_gave(harness: SlurmHarness, image: str) -> None:
    harness.launch(boxed(image, 'echo "gpus: $CUDA_VISIBLE_DEVICES"', gpus=2))
    assert harness.listener.ended().exit_code == 0
    assert harness.output().splitlines() == ["gpus: 0,1"]
    harness.launch(boxed(image, 'echo "gpus: $CUDA_VISIBLE_DEVICES"', attempt_id="j-2.1", gpus=0))
    assert harness.listener.ended("j-2.1").exit_code == 0
    assert harness.output("j-2.1").splitlines() == ["gpus: "]


def test_every_node_of_a_gang_runs_the_image(harness: SlurmHarness, image: str) -> None:
    harness.launch(boxed(image, 'echo "rank $CORRAL_RANK of $NNODES in $APPTAINER_NAME"', nodes=2))
    assert harness.listener.ended().exit_code == 0
    for rank in (0, 1):
        assert harness.output(rank=rank).splitlines() == [f"rank {rank} of 2 in busybox.sif"]


def test_a_shell_is_in_the_image_too(harness: SlurmHarness, image: str, tmp_path: Path) -> None:
    harness.launch(boxed(image, "echo here >note; echo up; exec sleep 600", workdir=str(tmp_path)))
    wait_until(lambda: "up" in harness.output(), "it runs")
    printed, errors, code = ran(harness, "sh", "-c", "cat note; echo $CORRAL_JOB_ID; ls /")
    assert (code, printed.split()[:2]) == (0, ["here", "j-1"]), errors
    assert "usr" not in printed.split()
    harness.engine.stop("j-1.1", 0.0)
    harness.listener.ended()


def test_storage_is_mounted_where_the_job_wants_it_and_read_only_means_that(
    harness: SlurmHarness, image: str, tmp_path: Path
) -> None:
    volumes = DirectoryVolumes(str(tmp_path / "volumes"))
    for name in ("v-1", "v-2"):
        volumes.create(name, 1 << 30, "ada")
    job_dir = tmp_path / "job"
    job_dir.mkdir()
    storage = (
        StorageOrder(kind=StorageKind.VOLUME, name="data", id="v-1", path="/data", read_only=False),
        StorageOrder(kind=StorageKind.VOLUME, name="fixed", id="v-2", path="/fixed", read_only=True),
        StorageOrder(kind=StorageKind.LOCAL, name="disk", path="/disk", read_only=False, size_bytes=1 << 30),
    )
    text = (
        'echo hello >/data/greeting; cat "$CORRAL_MOUNT_DATA/greeting" "$CORRAL_JOB_DIR/mounts/data/greeting"; '
        "touch /disk/file && echo written; touch /fixed/file 2>/dev/null || echo read-only"
    )
    harness.launch(boxed(image, text, storage=storage, env={"CORRAL_JOB_DIR": str(job_dir)}))
    assert harness.listener.ended().exit_code == 0, harness.output()
    assert harness.output().splitlines() == ["hello", "hello", "written", "read-only"]
    assert Path(volumes.path_of("v-1") or "", "greeting").exists()


def test_the_jobs_account_runs_a_directory_as_an_image(slurm_cluster: SlurmCluster, program: str, image: str) -> None:
    """The account is not the server's: it opens the image, and owns what the program writes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name, temporary_account("corral-test-ann", 54321):
        place = Path(name)
        place.chmod(0o755)
        box, project = place / "box.sif", place / "project"
        shutil.copytree(Path(image).parent / "root", box, symlinks=True)
        project.mkdir()
        os.chown(project, 54321, -1)
        account = account_named("corral-test-ann")
        assert account is not None
        submitter = Submitter(account=account)
        cluster = SlurmHarness(place / "slurm", slurm_cluster, account_of=lambda order: submitter, top=str(place))
        # The cache of the tests is closed to other accounts.
        installed = shutil.copytree(Path(program).parent.parent, place / "apptainer", symlinks=True)
        cluster.rules = {"images": ImageRules(program=f"{installed}/bin/apptainer")}
        cluster.restart()
        try:
            cluster.launch(boxed(str(box), "id -u; touch made", workdir=str(project)))
            ended = cluster.listener.ended()
            assert (ended.reason, ended.exit_code) == (EndReason.EXIT_CODE, 0), cluster.output()
            assert cluster.output().splitlines() == ["54321"]
            assert (project / "made").stat().st_uid == 54321
            box.chmod(0o700)
            cluster.launch(boxed(str(box), "echo never", attempt_id="j-2.1", workdir=str(project)))
            assert cluster.listener.ended("j-2.1").reason is EndReason.IMAGE_PULL_ERROR
        finally:
            cluster.clean_up()


def test_a_stop_ends_a_pull(harness: SlurmHarness) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        image = f"127.0.0.1:{silent.getsockname()[1]}/team/train:1"
        harness.launch(boxed(image, "echo never"))
        wait_until(lambda: "pulling image" in harness.output(), "it is being pulled")
        assert not harness.is_alive()
        harness.engine.stop("j-1.1", 5.0)
        assert harness.listener.ended().reason is EndReason.EXIT_CODE
    assert "never" not in harness.output()


def test_an_image_is_pulled_once_with_the_users_login(
    harness: SlurmHarness, registry: PrivateRegistry, tmp_path: Path
) -> None:
    settings = tmp_path / "home" / ".config" / "containers" / "registries.conf"
    settings.parent.mkdir(parents=True)
    settings.write_text(f'[[registry]]\nlocation = "{registry.host}"\ninsecure = true\n')
    wrong = RegistryLogin(registry=registry.host, username="ada", secret="a wrong guess", is_own=True)
    harness.launch(boxed(registry.image, "echo never", login=wrong))
    ended = harness.listener.ended()
    assert ended.reason is EndReason.IMAGE_PULL_ERROR
    assert ended.message.startswith(f"image {registry.image}: ")
    assert SECRET not in harness.output()
    right = replace(wrong, secret=SECRET)
    for attempt in ("j-2.1", "j-3.1"):
        harness.launch(boxed(registry.image, "echo inside", attempt_id=attempt, login=right))
        assert harness.listener.ended(attempt).exit_code == 0
        if attempt == "j-2.1":
            registry.visitors.clear()
    assert harness.output("j-2.1").splitlines() == [f"corral: pulling image {registry.image}", "inside"]
    assert harness.output("j-3.1").splitlines() == ["inside"]
    assert registry.visitors == []
    # Another user of the same account has no such login, so the registry is asked, which refuses.
    harness.launch(boxed(registry.image, "echo never", attempt_id="j-4.1"))
    assert harness.listener.ended("j-4.1").reason is EndReason.IMAGE_PULL_ERROR


def test_a_missing_file_and_a_login_of_others_are_refused(harness: SlurmHarness, image: str) -> None:
    harness.launch(boxed("/nowhere/x.sif", "echo never"))
    ended = harness.listener.ended()
    assert ended.reason is EndReason.IMAGE_PULL_ERROR
    assert ended.message == "image /nowhere/x.sif: not there, or not readable for this account"
    shared = RegistryLogin(registry="r.example.org", username="team", secret=SECRET)
    with pytest.raises(LaunchRefused, match="nothing keeps it from the job"):
        harness.launch(boxed("r.example.org/x:1", "true", attempt_id="j-2.1", login=shared))
    with pytest.raises(LaunchRefused, match="with ':' or ','"):
        harness.launch(boxed(image, "true", attempt_id="j-3.1", workdir="/tmp/a:b"))
    harness.rules = {}
    harness.restart()
    with pytest.raises(LaunchRefused, match=r"cluster\.slurm\.apptainer"):
        harness.launch(boxed(image, "true", attempt_id="j-4.1"))
