"""Commands in running jobs of this machine: real processes, terminals and accounts."""

from __future__ import annotations

import asyncio
import os
import pwd
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.control.ports import LaunchRefused
from corral.engines.attempts.accounts import AccountRules
from corral.engines.attempts.claims import read_claim
from corral.engines.attempts.isolation import Isolation
from corral.engines.local.cgroups import cgroup_support
from corral.engines.local.rundir import Layout
from tests.contract.engine_harness import LocalHarness, kill, order, process_exists, script, wait_until
from tests.contract.engines.shell_runs import (
    assert_only_running_instances_have_shells,
    ended_with_its_job,
    heard_until,
    open_shell,
    ran,
)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root's jobs can have other accounts: run as root")
needs_groups = pytest.mark.skipif(
    not cgroup_support().memory, reason=f"no control group limits memory here: {cgroup_support().detail}"
)
ACCOUNT = pwd.getpwnam("nobody")


def main_pid(cluster: LocalHarness) -> int:
    return int(read_claim(Layout(str(cluster.root)).rank_dir("j-1.1", 0)).started["pid"])


def test_a_command_has_the_variables_and_the_directory_of_the_job(local_cluster: LocalHarness, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    env = {"COLOUR": "it's $green"}
    local_cluster.launch(order(*script("sleep 600"), gpus=2, env=env, workdir=str(place)))
    local_cluster.listener.running()
    out, errors, code = ran(local_cluster, "sh", "-c", 'echo "$COLOUR|$PWD|$CUDA_VISIBLE_DEVICES"; echo no >&2; exit 5')
    assert (out, errors, code) == (f"it's $green|{place}|0,1\n", "no\n", 5)
    assert ran(local_cluster, "cat", given=b"given")[0] == "given"
    assert ran(local_cluster, "sh", "-c", "kill -TERM $$")[2] == 128 + 15
    assert ran(local_cluster, "no-such-program")[1:] == ("no-such-program: No such file or directory\n", 127)


def test_a_terminal_has_a_size_and_a_shell_and_ends_when_its_caller_leaves(local_cluster: LocalHarness) -> None:
    local_cluster.launch(order(*script("sleep 600")))
    local_cluster.listener.running()

    async def run() -> int:
        shell = await open_shell(local_cluster, has_terminal=True, has_input=True)
        await shell.resize(120, 40)
        await shell.send(b"stty size; tty; sleep 600 & echo left-$!-right\n")
        text = await heard_until(shell, r"left-\d+-right")
        assert "40 120" in text
        assert "/dev/pts/" in text
        await shell.close()
        return int(re.findall(r"left-(\d+)-right", text)[0])

    pid = asyncio.run(run())
    wait_until(lambda: not process_exists(pid), "what it left in the background is gone")
    assert local_cluster.is_alive()


def test_a_shell_ends_with_the_program_of_its_job(local_cluster: LocalHarness) -> None:
    local_cluster.launch(order(*script("read line </dev/null; while [ ! -e leave ]; do sleep 0.05; done; exit 3")))
    local_cluster.listener.running()

    assert ended_with_its_job(local_cluster) == 128 + 9
    assert local_cluster.listener.ended().exit_code == 3


def test_only_an_instance_that_runs_has_shells(local_cluster: LocalHarness) -> None:
    assert_only_running_instances_have_shells(local_cluster)


def test_a_process_with_the_same_number_is_not_entered(local_cluster: LocalHarness) -> None:
    local_cluster.launch(order(*script("sleep 600")))
    local_cluster.listener.running()
    claim, pid = next(Path(local_cluster.root).rglob("claim")), main_pid(local_cluster)
    before = claim.read_bytes()
    claim.write_bytes(before.replace(f'"pid": {pid},'.encode(), f'"pid": {os.getpid()},'.encode()))
    with pytest.raises(LaunchRefused, match="does not run"):
        asyncio.run(open_shell(local_cluster, "id"))
    claim.write_bytes(before)
    kill(pid)


@pytest.fixture
def mapped() -> Iterator[LocalHarness]:
    """An engine that gives all users the account `nobody`, in a directory that every account can pass."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        root = Path(name) / "engine"
        isolation = Isolation(accounts=AccountRules(pattern="nobody"), top=str(root))
        harness = LocalHarness(root, isolation=isolation)
        yield harness
        harness.clean_up()


@needs_root
def test_a_command_has_the_account_of_the_job_and_no_more_rights(mapped: LocalHarness) -> None:
    mapped.launch(order(*script("sleep 600")))
    mapped.listener.running()
    out, _, code = ran(mapped, "sh", "-c", "id -u; id -g; id -G; grep -E 'NoNewPrivs|CapEff' /proc/self/status")
    uid, gid, groups, capabilities, privileges = out.splitlines()
    assert (int(uid), int(gid)) == (ACCOUNT.pw_uid, ACCOUNT.pw_gid)
    assert set(map(int, groups.split())) == set(os.getgrouplist("nobody", ACCOUNT.pw_gid))
    program = Path(f"/proc/{main_pid(mapped)}/status").read_text()
    assert capabilities in program
    assert privileges in program
    assert code == 0
    assert ran(mapped, "cat", str(next(Path(mapped.root).rglob("order"))))[2] == 1


@needs_groups
def test_a_command_is_under_the_limits_of_the_job(local_cluster: LocalHarness) -> None:
    local_cluster.launch(order(*script("sleep 600"), memory_bytes=64 << 20))
    local_cluster.listener.running()
    group = Path(f"/proc/{main_pid(local_cluster)}/cgroup").read_text()
    assert ran(local_cluster, "cat", "/proc/self/cgroup")[0] == group
