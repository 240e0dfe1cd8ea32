"""Commands in running jobs of a real Slurm: steps of the allocation, with terminals and accounts."""

from __future__ import annotations

import asyncio
import os
import pwd
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.control.ports import EngineUnavailable
from corral.engines.attempts.accounts import account_named
from corral.engines.slurm.attempts.submitters import Submitter
from tests.contract.engine_harness import order, process_exists, script, wait_until
from tests.contract.engines.shell_runs import (
    assert_only_running_instances_have_shells,
    ended_with_its_job,
    heard_until,
    open_shell,
    ran,
)
from tests.contract.slurm_harness import SlurmHarness
from tests.servers.slurm import SlurmCluster

pytest_plugins = ("tests.servers.fixtures",)


@pytest.fixture
def cluster(tmp_path: Path, slurm_cluster: SlurmCluster) -> Iterator[SlurmHarness]:
    made = SlurmHarness(tmp_path / "engine", slurm_cluster)
    yield made
    made.clean_up()


def test_a_command_has_the_variables_and_the_directory_of_the_job(cluster: SlurmHarness, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    env = {"COLOUR": "it's $green", "LINES_OF_IT": "one\ntwo"}
    cluster.launch(order(*script("sleep 600"), gpus=2, env=env, workdir=str(place)))
    cluster.listener.running()
    text = 'echo "$COLOUR|$LINES_OF_IT|$PWD|$CORRAL_ATTEMPT_ID"; echo "$CUDA_VISIBLE_DEVICES" >&2; exit 5'
    out, errors, code = ran(cluster, "sh", "-c", text)
    assert (out, code) == (f"it's $green|one\ntwo|{place}|j-1.1\n", 5)
    assert errors.splitlines()[0].count(",") == 1
    assert ran(cluster, "cat", given=b"given")[0] == "given"
    assert ran(cluster, "sh", "-c", "kill -TERM $$")[2] == 128 + 15
    assert ran(cluster, "no-such-program")[2] == 127
    assert cluster.is_alive()


def test_a_terminal_has_a_size_and_a_shell_and_ends_when_its_caller_leaves(cluster: SlurmHarness) -> None:
    cluster.launch(order(*script("sleep 600")))
    cluster.listener.running()

    async def run() -> int:
        shell = await open_shell(cluster, has_terminal=True, has_input=True)
        await shell.resize(120, 40)
        await shell.send(b"echo begun-$((1+1))\n")
        await heard_until(shell, "begun-2")
        await shell.resize(121, 41)
        await shell.send(b"sleep 1; stty size; tty; echo left-$$-right\n")
        text = await heard_until(shell, r"left-\d+-right")
        assert "41 121" in text
        assert "/dev/pts/" in text
        await shell.close()
        return int(re.findall(r"left-(\d+)-right", text)[0])

    pid = asyncio.run(run())
    wait_until(lambda: not process_exists(pid), "the shell is gone")
    assert cluster.is_alive()


def test_a_shell_ends_with_the_program_of_its_job_and_does_not_hold_it_up(cluster: SlurmHarness) -> None:
    cluster.launch(order(*script("while [ ! -e leave ]; do sleep 0.05; done; exit 3")))
    cluster.listener.running()

    assert ended_with_its_job(cluster) != 0
    assert cluster.listener.ended().exit_code == 3


def test_each_instance_of_a_gang_has_shells_of_its_own(cluster: SlurmHarness) -> None:
    cluster.launch(order(*script("sleep 600"), nodes=2))
    cluster.listener.running()
    wait_until(lambda: cluster.is_alive(rank=0) and cluster.is_alive(rank=1), "both run")
    for rank in (0, 1):
        out, _, code = ran(cluster, "sh", "-c", 'echo "$CORRAL_RANK"', rank=rank)
        assert (out, code) == (f"{rank}\n", 0)


def test_only_an_instance_that_runs_has_shells(cluster: SlurmHarness) -> None:
    assert_only_running_instances_have_shells(cluster)


def test_a_command_that_slurm_does_not_start_says_so(cluster: SlurmHarness) -> None:
    cluster.launch(order(*script("sleep 600")))
    cluster.listener.running()
    attempt = cluster.engine._attempts.get("j-1.1")
    assert attempt is not None
    known, attempt.job_id = attempt.job_id, 4_000_000
    try:
        with pytest.raises(EngineUnavailable, match="Slurm did not start it: srun --overlap --jobid=4000000"):
            ran(cluster, "id")
    finally:
        attempt.job_id = known


@pytest.mark.skipif(os.geteuid() != 0, reason="only root submits jobs as other accounts: run as root")
def test_a_command_has_the_account_of_the_job(slurm_cluster: SlurmCluster) -> None:
    nobody = pwd.getpwnam("nobody")
    account = account_named("nobody")
    assert account is not None
    with tempfile.TemporaryDirectory(prefix="corral-shells-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        root = Path(name) / "engine"
        made = SlurmHarness(root, slurm_cluster, account_of=lambda order: Submitter(account=account), top=str(root))
        try:
            made.launch(order(*script("sleep 600"), env={"HOME": "/"}))
            made.listener.running()
            out, _, code = ran(made, "sh", "-c", "id -u; id -g; grep CapEff /proc/self/status")
            assert (out.split()[:2], code) == ([str(nobody.pw_uid), str(nobody.pw_gid)], 0)
            assert int(out.split()[-1], 16) == 0
        finally:
            made.clean_up()
