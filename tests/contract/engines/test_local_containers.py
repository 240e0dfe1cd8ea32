"""Jobs with an image, as stories with a real Podman and an image made on the spot."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from corral.control.ports import AttemptPhase, LaunchOrder, LaunchRefused, Mount, RegistryLogin
from corral.core.model import EndReason
from corral.engines.attempts.accounts import AccountRules
from corral.engines.attempts.isolation import Isolation
from corral.engines.local.cgroups import CgroupSupport, cgroup_support
from corral.engines.local.containers.container_runtime import find_runtime
from corral.files import used_bytes
from tests.contract.engine_harness import LocalHarness, kill, order, script, wait_until
from tests.contract.engines.shell_runs import ran
from tests.servers.images import busybox_image, containers, needs_podman
from tests.servers.registry import private_registry

pytestmark = needs_podman

LIMITS = cgroup_support()
needs_cgroups = pytest.mark.skipif(
    not LIMITS.writable, reason=f"no control groups that can be written, run as root: {LIMITS.detail}"
)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root's jobs can have other accounts: run as root")
SECRET = "a-password-for-the-registry"


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    with busybox_image() as address:
        yield address


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalHarness]:
    harness = LocalHarness(tmp_path / "engine", isolation=Isolation(max_processes=60))
    yield harness
    name = harness.engine._specs.engine
    harness.clean_up()
    wait_until(lambda: not containers(name), f"no container is left: {containers(name)}")


def boxed(image: str, text: str, **more: object) -> LaunchOrder:
    return order(*script(text), image=image, **more)  # type: ignore[arg-type]


def groups_of(local: LocalHarness) -> list[str]:
    """The remaining control groups of the engine, in all hierarchies."""
    place = Path("/sys/fs/cgroup")
    name = local.engine._specs.engine
    return [str(path) for pattern in ("corral", "*/corral") for path in place.glob(f"{pattern}/{name}-*")]


def test_a_job_runs_in_its_image_and_nothing_of_it_is_left(local: LocalHarness, image: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    job_dir = tmp_path / "job"
    (job_dir / "checkpoints").mkdir(parents=True)
    env = {"WORDS": "two words = 'one' # value", "CORRAL_JOB_DIR": str(job_dir)}
    text = (
        'pwd; echo "$WORDS"; echo "$CORRAL_JOB_ID $CUDA_VISIBLE_DEVICES $HOME"; ls -d /usr /root 2>/dev/null; '
        "touch made $CORRAL_JOB_DIR/kept /tmp/scratch; exit 3"
    )
    local.launch(boxed(image, text, env=env, workdir=str(project), gpus=2))
    ended = local.listener.ended()
    assert (ended.reason, ended.exit_code, ended.message) == (EndReason.EXIT_CODE, 3, "exit code 3")
    # Virtual GPUs keep their numbers; nothing of the host's files is seen.
    assert local.output().splitlines() == [str(project), env["WORDS"], f"j-1 0,1 {job_dir}"]
    assert (project / "made").exists()
    assert (job_dir / "kept").exists()
    assert containers(local.engine._specs.engine) == []
    wait_until(lambda: not groups_of(local), "its control groups are removed")
    left = {path.name for path in Path(local.layout.rank_dir("j-1.1", 0)).iterdir()}
    wait_until(lambda: "tmp" not in os.listdir(local.layout.rank_dir("j-1.1", 0)), "its temporary files are removed")
    assert "env" not in left
    assert "auth" not in left


def test_changes_of_a_container_to_its_image_are_temporary_storage(local: LocalHarness, image: str) -> None:
    local.launch(boxed(image, "head -c 3000000 /dev/zero > /root-file; echo up; exec sleep 600"))
    wait_until(lambda: "up" in local.output(), "it runs")
    places = local.engine.temporary_directories("j-1.1")
    assert local.layout.rank_dir("j-1.1", 0) + "/tmp" in places
    assert sum(map(used_bytes, places)) >= 3_000_000
    local.engine.stop("j-1.1", 0.0)
    local.listener.ended()


def test_the_environment_is_not_on_a_command_line(local: LocalHarness, image: str) -> None:
    local.launch(boxed(image, "echo up; exec sleep 600", env={"TOKEN": "hidden-in-a-file"}))
    wait_until(lambda: "up" in local.output(), "it runs")
    lines = subprocess.run(["ps", "-eo", "args"], check=True, capture_output=True, text=True).stdout
    assert local.engine._specs.engine in lines
    assert "hidden-in-a-file" not in lines
    env_file = Path(local.layout.rank_dir("j-1.1", 0), "env")
    assert env_file.stat().st_mode & 0o777 == 0o600


def test_a_stop_warns_and_waits_for_the_program(local: LocalHarness, image: str) -> None:
    local.launch(boxed(image, "trap 'echo warned; exit 9' TERM; echo up; while :; do sleep 0.1; done"))
    wait_until(lambda: "up" in local.output(), "it runs")
    local.engine.stop("j-1.1", 30.0)
    ended = local.listener.ended()
    assert (ended.reason, ended.exit_code) == (EndReason.EXIT_CODE, 9)
    assert "warned" in local.output().splitlines()


def test_the_child_of_a_shell_that_ignores_the_warning_is_warned_too(local: LocalHarness, image: str) -> None:
    inner = "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    local.launch(boxed(image, f'sh -c "{inner}"; echo "outer sees $?"'))
    wait_until(lambda: "up" in local.output(), "it runs")
    local.engine.stop("j-1.1", 30.0)
    local.listener.ended()
    assert "saved" in local.output().splitlines()


def test_a_program_without_a_handler_ends_at_once_as_it_would_outside(local: LocalHarness, image: str) -> None:
    """The first process of a container ignores SIGTERM: it must not cost the grace time."""
    local.launch(boxed(image, "echo up; exec sleep 600", grace_seconds=300.0))
    wait_until(lambda: "up" in local.output(), "it runs")
    local.engine.stop("j-1.1", 300.0)
    ended = local.listener.ended()
    assert (ended.reason, ended.exit_code) == (EndReason.EXIT_CODE, 143)


def test_a_program_that_ignores_the_warning_is_killed_after_the_grace_time(local: LocalHarness, image: str) -> None:
    local.launch(boxed(image, "trap '' TERM; echo up; while :; do sleep 0.1; done"))
    wait_until(lambda: "up" in local.output(), "it runs")
    local.engine.stop("j-1.1", 0.3)
    assert local.listener.ended().exit_code == 137


def test_a_stop_right_after_the_launch_is_not_lost(local: LocalHarness, image: str) -> None:
    local.launch(boxed(image, "exec sleep 600"))
    local.listener.running()
    local.engine.stop("j-1.1", 60.0)
    assert local.listener.ended().reason is EndReason.EXIT_CODE


def test_the_time_limit_ends_a_container(local: LocalHarness, image: str) -> None:
    local.launch(boxed(image, "echo up; exec sleep 600", time_limit_seconds=1.0))
    ended = local.listener.ended()
    assert (ended.reason, ended.message) == (EndReason.TIMED_OUT, "ran longer than its time limit of 1 s")


@needs_cgroups
def test_a_container_over_its_memory_is_killed_and_says_so(local: LocalHarness, image: str) -> None:
    local.launch(boxed(image, "x=a; while :; do x=$x$x; done", memory_bytes=32 << 20))
    ended = local.listener.ended()
    assert (ended.reason, ended.exit_code) == (EndReason.OOM_KILLED, 137)
    assert ended.message.startswith("used more than its 32.0 MiB of memory")


@needs_cgroups
def test_a_fork_bomb_in_a_container_is_contained(local: LocalHarness, image: str) -> None:
    # The word comes first: afterwards the bomb takes the shell's share of the CPUs.
    text = "bomb() { bomb | bomb & }; echo planted; bomb 2>/dev/null; exec sleep 600"
    local.launch(boxed(image, text))
    wait_until(lambda: "planted" in local.output(), "the bomb")
    local.launch(boxed(image, "echo neighbour", attempt_id="j-2.1"))
    assert local.listener.ended("j-2.1").exit_code == 0
    local.engine.stop("j-1.1", 0.1)
    local.listener.ended()
    wait_until(lambda: not groups_of(local), "its control groups are removed")


def test_an_image_that_cannot_be_pulled_is_reported_with_the_runtimes_message(local: LocalHarness) -> None:
    # No program listens there.
    local.launch(boxed("127.0.0.1:1/no/such:image", "true"))
    ended = local.listener.ended()
    assert (ended.reason, ended.exit_code) == (EndReason.IMAGE_PULL_ERROR, None)
    assert ended.message.startswith("image 127.0.0.1:1/no/such:image: ")
    assert "connection refused" in ended.message
    assert "pulling image" in local.output()


def test_a_login_is_a_private_file_that_is_removed(local: LocalHarness) -> None:
    login = RegistryLogin(registry="127.0.0.1:1", username="ada", secret=SECRET)
    local.launch(boxed("127.0.0.1:1/no/such:image", "true", login=login))
    auth = Path(local.layout.rank_dir("j-1.1", 0), "auth")
    wait_until(lambda: (auth / "config.json").exists(), "the login is there for the pull")
    assert (auth.stat().st_mode & 0o777, (auth / "config.json").stat().st_mode & 0o777) == (0o700, 0o600)
    ended = local.listener.ended()
    assert ended.reason is EndReason.IMAGE_PULL_ERROR
    assert not auth.exists()
    assert SECRET not in ended.message
    written = [path for path in local.root.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert written == []


def test_a_stop_while_the_image_is_pulled_ends_it(local: LocalHarness) -> None:
    local.launch(boxed("127.0.0.1:1/no/such:image", "true"))
    wait_until(lambda: "pulling" in local.output(), "the pull has begun")
    status = local.status()
    assert status is not None
    assert status.phase in (AttemptPhase.STARTING, AttemptPhase.ENDED), "not running yet"
    local.engine.stop("j-1.1", 60.0)
    ended = local.listener.ended()
    # Podman tries three times, a second apart: mostly the stop is quicker.
    assert ended.reason in (EndReason.EXIT_CODE, EndReason.IMAGE_PULL_ERROR)


@pytest.mark.parametrize(
    ("command", "workdir", "words"),
    [("no-such-program", None, "no-such-program"), ("true", "/no/such/directory", "/no/such/directory")],
)
def test_container_that_cannot_start_has_its_reason(
    local: LocalHarness, image: str, command: str, workdir: str | None, words: str
) -> None:
    local.launch(order(command, image=image, workdir=workdir))
    ended = local.listener.ended()
    assert (ended.reason, ended.exit_code) == (EndReason.LAUNCH_ERROR, None)
    assert words in ended.message


def test_a_killed_supervisor_leaves_no_container(local: LocalHarness, image: str) -> None:
    local.launch(boxed(image, "echo up; exec sleep 600"))
    wait_until(lambda: "up" in local.output(), "it runs")
    kill(local.supervisor_pid())
    assert local.listener.ended().reason is EndReason.LOST
    wait_until(lambda: not containers(local.engine._specs.engine), "the container is removed")
    wait_until(lambda: not groups_of(local), f"its control groups are removed: {groups_of(local)}")


def test_a_container_outlives_its_server_and_is_stopped_by_the_next_one(local: LocalHarness, image: str) -> None:
    local.launch(boxed(image, "echo up; exec sleep 600"))
    wait_until(lambda: "up" in local.output(), "it runs")
    engine, listener = local.restart()
    status = local.status()
    assert status is not None
    assert status.phase is AttemptPhase.RUNNING
    engine.stop("j-1.1", 5.0)
    assert listener.ended().exit_code == 143


def test_containers_left_by_a_crash_are_removed_at_the_next_start(local: LocalHarness, image: str) -> None:
    """Server and supervisor die together; the records go; the container stays. Others' containers are not touched."""
    local.launch(boxed(image, "echo up; exec sleep 600"))
    wait_until(lambda: "up" in local.output(), "it runs")
    local.stop_server()
    pid = local.supervisor_pid()
    kill(pid)
    Path(local.layout.marker("j-1.1")).unlink()
    assert containers(local.engine._specs.engine)
    local.start()
    wait_until(lambda: not containers(local.engine._specs.engine), "the container is removed")
    wait_until(lambda: not groups_of(local), f"its control groups are removed: {groups_of(local)}")


def test_a_gang_meets_in_containers(local: LocalHarness, image: str) -> None:
    local.launch(boxed(image, 'echo "rank $NODE_RANK of $NNODES at $MASTER_ADDR"', nodes=2, gpus=1))
    assert local.listener.ended().exit_code == 0
    assert [local.output(rank=rank) for rank in (0, 1)] == [f"rank {rank} of 2 at 127.0.0.1\n" for rank in (0, 1)]


def test_mounts_are_where_they_were_asked_for(local: LocalHarness, image: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "set").write_text("numbers")
    mounts = (Mount(source=str(data), target="/data", read_only=True),)
    local.launch(boxed(image, "cat /data/set; touch /data/x 2>/dev/null || echo ' read-only'", mounts=mounts))
    assert local.listener.ended().exit_code == 0
    assert local.output() == "numbers read-only\n"


def test_orders_that_no_container_can_be_given_are_refused(local: LocalHarness, image: str) -> None:
    with pytest.raises(LaunchRefused, match="KEY has several lines"):
        local.engine.launch(boxed(image, "true", env={"KEY": "-----BEGIN\nEND-----"}))
    with pytest.raises(LaunchRefused, match="is not an address"):
        local.engine.launch(boxed("--privileged", "true"))
    assert local.status() is None


@needs_root
def test_a_container_belongs_to_the_jobs_account(image: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        root = Path(name) / "engine"
        isolation = Isolation(accounts=AccountRules(pattern="nobody"), top=str(root), max_processes=60)
        local = LocalHarness(root, isolation=isolation)
        local.launch(boxed(image, "id -u; touch mine /tmp/also && echo writes; cat /proc/self/status"))
        ended = local.listener.ended()
        uid, writes, *status = local.output().splitlines()
        assert (ended.exit_code, uid, writes) == (0, "65534", "writes")
        facts = dict(line.split(":\t", 1) for line in status if ":\t" in line)
        assert facts["NoNewPrivs"] == "1"
        assert {facts[name] for name in ("CapEff", "CapPrm", "CapBnd")} == {"0" * 16}
        assert (Path(local.layout.rank_dir("j-1.1", 0)) / "work" / "mine").stat().st_uid == 65534
        local.clean_up()


def test_without_control_groups_of_its_own_the_runtime_limits(tmp_path: Path, image: str) -> None:
    """Imitates a node where corral cannot write to control groups, but the runtime can."""
    local = LocalHarness(tmp_path / "engine", cgroups=CgroupSupport(version=1), isolation=Isolation(max_processes=30))
    text = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 60 & sleep 60 & done; echo all"
    local.launch(boxed(image, text))
    ended = local.listener.ended()
    assert ended.exit_code != 0
    assert "all" not in local.output().splitlines()
    local.clean_up()


def test_a_private_image_is_pulled_with_its_login_and_not_without(tmp_path: Path) -> None:
    with private_registry("ada", SECRET) as registry:
        # The registry speaks HTTP; a real one has a certificate.
        conf = tmp_path / "registries.conf"
        conf.write_text(f'[[registry]]\nlocation = "{registry.host}"\ninsecure = true\n')
        found = find_runtime(LIMITS, os.environ)
        assert found is not None
        runtime = replace(found, env={**found.env, "CONTAINERS_REGISTRIES_CONF": str(conf)})
        local = LocalHarness(tmp_path / "engine", runtime=runtime)
        try:
            local.launch(boxed(registry.image, "echo in", attempt_id="j-1.1"))
            ended = local.listener.ended("j-1.1")
            assert ended.reason is EndReason.IMAGE_PULL_ERROR
            assert "unauthorized" in ended.message.lower() or "authentication required" in ended.message
            wrong = RegistryLogin(registry=registry.host, username="ada", secret="a wrong guess")
            local.launch(boxed(registry.image, "echo in", attempt_id="j-2.1", login=wrong))
            assert local.listener.ended("j-2.1").reason is EndReason.IMAGE_PULL_ERROR
            right = RegistryLogin(registry=registry.host, username="ada", secret=SECRET)
            local.launch(boxed(registry.image, "echo in", attempt_id="j-3.1", login=right))
            assert local.listener.ended("j-3.1").exit_code == 0
            lines = local.output("j-3.1").splitlines()
            # The image would start something else by itself.
            assert lines == [f"corral: pulling image {registry.image}", "in"]
            assert registry.visitors[-1] == "ada"
        finally:
            local.clean_up()
            subprocess.run([found.program, "rmi", "--force", registry.image], check=False, capture_output=True)


def test_a_shell_runs_in_the_container_of_the_job_and_ends_with_it(local: LocalHarness, image: str) -> None:
    env = {"WORDS": "two words"}
    local.launch(boxed(image, "touch made; while [ ! -e leave ]; do sleep 0.1; done; exit 3", env=env))
    local.listener.running()
    text = 'ls; echo "$WORDS $CORRAL_ATTEMPT_ID"; ls -d /usr 2>/dev/null; echo no >&2; exit 4'
    out, errors, code = ran(local, "sh", "-c", text)
    assert (out, errors, code) == ("made\ntwo words j-1.1\n", "no\n", 4)
    assert ran(local, "cat", given=b"given")[0] == "given"
    assert ran(local, "sh", "-c", "touch leave; sleep 600")[2] != 0
    assert local.listener.ended().exit_code == 3


def test_a_shell_waits_for_a_container_that_is_still_being_made(image: str, tmp_path: Path) -> None:
    runtime = find_runtime(cgroup_support(), os.environ)
    assert runtime is not None
    slow = tmp_path / "slow-runtime"
    sleeps = 'for word; do [ "$word" = run ] && sleep 2 && break; done'
    slow.write_text(f'#!/bin/sh\n{sleeps}\nexec {runtime.program} "$@"\n')
    slow.chmod(0o755)
    local = LocalHarness(tmp_path / "engine", runtime=replace(runtime, program=str(slow)))
    try:
        local.launch(boxed(image, "while [ ! -e leave ]; do sleep 0.1; done"))
        local.listener.running()
        assert not containers(local.engine._specs.engine), "the container is not there yet"
        assert ran(local, "sh", "-c", "echo inside; touch leave")[0] == "inside\n"
        assert local.listener.ended().exit_code == 0
    finally:
        local.clean_up()
