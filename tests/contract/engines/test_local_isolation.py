"""Isolation of the machine and of other jobs: a job cannot: fill the process table, become another account, leave
things in /tmp.
"""

from __future__ import annotations

import os
import pwd
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from corral.control.ports import AttemptPhase, LaunchRefused
from corral.core.model import EndReason
from corral.engines.attempts.accounts import AccountRules
from corral.engines.attempts.isolation import Isolation
from corral.engines.local.cgroups import cgroup_support
from tests.contract.engine_harness import LocalHarness, kill, order, process_exists, script, wait_until

LIMITS = cgroup_support()
needs_pids = pytest.mark.skipif(
    not LIMITS.pids, reason=f"no control group counts processes, run as root: {LIMITS.detail}"
)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root's jobs can have other accounts: run as root")
ACCOUNT = pwd.getpwnam("nobody")

BOMB = (
    "import os, time; print('planted', flush=True)\n"
    "while True:\n"
    "    try: os.fork()\n"
    "    except OSError: time.sleep(0.05)\n"
)


@pytest.fixture
def roomy(tmp_path: Path) -> Iterator[LocalHarness]:
    """An engine with a limit on processes."""
    harness = LocalHarness(tmp_path / "engine", isolation=Isolation(max_processes=40))
    yield harness
    harness.clean_up()


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that every account can pass; pytest's own are root's."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def mapped(open_directory: Path) -> Iterator[LocalHarness]:
    """An engine that gives all users the account `nobody`."""
    rules = AccountRules(pattern="nobody")
    root = open_directory / "engine"
    harness = LocalHarness(root, isolation=Isolation(accounts=rules, top=str(root)))
    yield harness
    harness.clean_up()


# ------------------------------------------------------------------------------------------------ processes


@needs_pids
def test_a_fork_bomb_is_contained_and_its_neighbour_goes_on(roomy: LocalHarness) -> None:
    roomy.launch(order(*script("echo up; while :; do /bin/true || exit 1; sleep 0.05; done"), attempt_id="j-2.1"))
    wait_until(lambda: "up" in roomy.output("j-2.1"), "the neighbour")
    roomy.launch(order(sys.executable, "-c", BOMB))
    wait_until(lambda: "planted" in roomy.output(), "the bomb")
    group = os.path.join(LIMITS.pids, roomy.engine._files.cgroup_name("j-1.1", 0))

    def is_full() -> bool:
        return int(Path(group, "pids.current").read_text()) >= 35

    wait_until(is_full, "the bomb has filled its room")
    assert int(Path(group, "pids.current").read_text()) <= 40
    roomy.launch(order("true", attempt_id="j-3.1"))
    assert roomy.listener.ended("j-3.1").exit_code == 0
    status = roomy.status("j-2.1")
    assert status is not None
    assert status.phase is AttemptPhase.RUNNING
    bombers = Path(group, "cgroup.procs").read_text().split()
    roomy.engine.stop("j-1.1", 0.2)
    roomy.listener.ended()
    assert not [pid for pid in bombers if process_exists(int(pid))]
    wait_until(lambda: not os.path.exists(group), "its group is removed")


@needs_pids
def test_a_job_that_wants_too_many_processes_gets_the_limit_in_its_message(roomy: LocalHarness) -> None:
    roomy.launch(order(*script("for i in $(seq 100); do sleep 60 & done; wait")))
    ended = roomy.listener.ended()
    assert ended.exit_code != 0
    assert "wanted more than its 40 processes" in ended.message


@needs_pids
def test_a_bomb_whose_supervisor_was_killed_is_cleared_up(roomy: LocalHarness) -> None:
    roomy.launch(order(sys.executable, "-c", BOMB))
    wait_until(lambda: "planted" in roomy.output(), "the bomb")
    group = os.path.join(LIMITS.pids, roomy.engine._files.cgroup_name("j-1.1", 0))
    kill(roomy.supervisor_pid())
    assert roomy.listener.ended().reason is EndReason.LOST
    wait_until(lambda: not os.path.exists(group), "nothing of it is left")


# ------------------------------------------------------------------------------------------------ temporary files


def test_every_attempt_has_a_temporary_directory_of_its_own_that_goes_with_it(local_cluster: LocalHarness) -> None:
    hold = 'echo "tmp $TMPDIR"; touch $TMPDIR/mine; chmod 000 $TMPDIR; while [ ! -e %s ]; do sleep 0.01; done'
    go = local_cluster.root / "go"
    for attempt_id in ("j-1.1", "j-2.1"):
        local_cluster.launch(order(*script(hold % go), attempt_id=attempt_id))
    wait_until(lambda: all("tmp" in local_cluster.output(item) for item in ("j-1.1", "j-2.1")), "both run")
    places = [Path(local_cluster.output(item).split()[1]) for item in ("j-1.1", "j-2.1")]
    assert places[0] != places[1]
    assert all(place.is_dir() for place in places)
    go.touch()
    for attempt_id in ("j-1.1", "j-2.1"):
        assert local_cluster.listener.ended(attempt_id).exit_code == 0
    wait_until(lambda: not any(place.exists() for place in places), "the directories are removed")


def test_the_temporary_directory_of_a_killed_supervisor_is_removed(local_cluster: LocalHarness) -> None:
    local_cluster.launch(order(*script('echo "tmp $TMPDIR"; exec sleep 600')))
    wait_until(lambda: "tmp" in local_cluster.output(), "it runs")
    place = Path(local_cluster.output().split()[1])
    assert place.is_dir()
    kill(local_cluster.supervisor_pid())
    local_cluster.listener.ended()
    wait_until(lambda: not place.exists(), "it is removed")


# ------------------------------------------------------------------------------------------------ virtual environments


def test_the_programs_of_a_virtual_environment_come_first(local_cluster: LocalHarness, tmp_path: Path) -> None:
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    tool = programs / "tool"
    tool.write_text('#!/bin/sh\necho "from $VIRTUAL_ENV"')
    tool.chmod(0o755)
    local_cluster.launch(order("tool", venv=str(tmp_path / "venv")))
    assert local_cluster.listener.ended().exit_code == 0
    assert local_cluster.output() == f"from {tmp_path / 'venv'}\n"


def test_a_missing_virtual_environment_is_reported(local_cluster: LocalHarness) -> None:
    local_cluster.launch(order("true", venv="/nowhere/venv"))
    ended = local_cluster.listener.ended()
    assert ended.reason is EndReason.LAUNCH_ERROR
    assert ended.message == "/nowhere/venv: there is no virtual environment: it has no directory bin"
    with pytest.raises(LaunchRefused, match="not an absolute path"):
        local_cluster.engine.launch(order("true", venv="relative", attempt_id="j-2.1"))


# ------------------------------------------------------------------------------------------------ accounts


@needs_root
def test_a_job_runs_as_its_account_and_owns_its_directories(mapped: LocalHarness, open_directory: Path) -> None:
    job_dir = open_directory / "engine" / "jobs" / "j-1"
    (job_dir / "checkpoints").mkdir(parents=True, mode=0o700)
    (job_dir / "checkpoints" / "old").write_text("kept")
    env = {"CORRAL_JOB_DIR": str(job_dir), "CORRAL_CHECKPOINT_DIR": str(job_dir / "checkpoints")}
    what = (
        "import os, tempfile; from pathlib import Path\n"
        "print(os.getresuid(), os.getresgid(), os.getgroups(), os.environ['USER'])\n"
        "Path('in-workdir').touch(); Path(os.environ['CORRAL_JOB_DIR'], 'mine').touch()\n"
        "with open(os.environ['CORRAL_CHECKPOINT_DIR'] + '/old', 'a') as old: old.write(' on')\n"
        "tempfile.TemporaryFile().close()\n"
        "try: os.setuid(0)\n"
        "except PermissionError: print('stays')\n"
        "try: os.listdir(os.environ['CORRAL_RUN_DIR'])\n"
        "except PermissionError: print('sees no records')\n"
    )
    mapped.launch(order("/usr/bin/python3", "-c", what, env=env))
    ended = mapped.listener.ended()
    lines = mapped.output().splitlines()
    assert ended.exit_code == 0, lines
    assert lines == [
        f"{(ACCOUNT.pw_uid,) * 3} {(ACCOUNT.pw_gid,) * 3} {os.getgrouplist('nobody', ACCOUNT.pw_gid)} nobody",
        "stays",
        "sees no records",
    ]
    rank_dir = Path(mapped.layout.rank_dir("j-1.1", 0))
    assert (rank_dir / "work" / "in-workdir").stat().st_uid == ACCOUNT.pw_uid
    assert (job_dir / "checkpoints" / "old").read_text() == "kept on"
    records = [path for path in rank_dir.iterdir() if path.is_file()]
    assert {path.name.partition(".")[0] for path in records} == {"claim", "log"}
    assert {path.stat().st_uid for path in records} == {os.geteuid()}


@needs_root
def test_a_job_with_an_account_is_stopped_and_dies_with_its_supervisor(mapped: LocalHarness) -> None:
    mapped.launch(order(*script("trap 'echo warned; exit 7' TERM; echo pid $$; while :; do sleep 0.05; done")))
    mapped.number_from_output("pid")
    mapped.engine.stop("j-1.1", 5.0)
    assert mapped.listener.ended().exit_code == 7
    mapped.launch(order(*script("echo pid $$; exec sleep 600"), attempt_id="j-2.1"))
    pid = mapped.number_from_output("pid", "j-2.1")
    kill(mapped.supervisor_pid("j-2.1"))
    assert mapped.listener.ended("j-2.1").reason is EndReason.LOST
    assert not process_exists(pid)


@needs_root
def test_a_program_that_the_account_may_not_read_is_reported(mapped: LocalHarness, open_directory: Path) -> None:
    secret = open_directory / "secret.sh"
    secret.write_text("#!/bin/sh\n")
    secret.chmod(0o700)
    mapped.launch(order(str(secret)))
    ended = mapped.listener.ended()
    assert (ended.reason, ended.message) == (EndReason.LAUNCH_ERROR, f"{secret}: Permission denied")
    private = open_directory / "private"
    private.mkdir(mode=0o700)
    mapped.launch(order("true", workdir=str(private), attempt_id="j-2.1"))
    assert "Permission denied" in mapped.listener.ended("j-2.1").message


@needs_root
def test_no_user_becomes_root_unless_it_is_allowed(mapped: LocalHarness, open_directory: Path) -> None:
    rules = AccountRules(users={"ada": "root"})
    specs = mapped.engine._specs
    mapped.engine._specs = replace(specs, isolation=Isolation(accounts=rules, top=str(open_directory)))
    with pytest.raises(LaunchRefused, match="would run as root, which this server does not allow"):
        mapped.engine.launch(order("true"))
    assert mapped.status() is None
    allowed = replace(rules, allow_root=True)
    mapped.engine._specs = replace(specs, isolation=Isolation(accounts=allowed, top=str(open_directory)))
    mapped.launch(order(sys.executable, "-c", "import os; print(os.getuid())"))
    assert mapped.listener.ended().exit_code == 0
    assert mapped.output() == "0\n"
