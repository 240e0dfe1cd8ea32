"""Jobs of Slurm that are named like corral's own: every Slurm user can read those names and use them again."""

from __future__ import annotations

import pytest

from tests.attacks.slurm_machine import SlurmMachine
from tests.integration.waiting import wait_until

pytest_plugins = ("tests.servers.fixtures", "tests.attacks.slurm_fixtures")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_a_job_that_is_named_like_a_live_attempt_does_not_hide_its_gpus(attacked: SlurmMachine) -> None:
    job = attacked.submit("ann", "sleep 600", gpus=1)
    attacked.wait("ann", job, "running")
    _, name = attacked.slurm_job(job)
    attacked.sbatch("eve", f"--job-name={name}", f"--comment={name}", "--gres=gpu:8", "--nodelist=node3")
    wait_until(lambda: attacked.taken("node3") == 8, "the GPUs of the other job count as taken")


def test_after_a_crash_behind_sbatch_only_the_attempts_own_job_is_found_again(attacked: SlurmMachine) -> None:
    first = attacked.submit("ann", "sleep 600", gpus=1)
    attacked.wait("ann", first, "running")
    mark, _, _ = attacked.slurm_job(first)[1].partition(first)
    # Eve knows how corral names jobs, and which number comes next; the account of hers ran it before corral did.
    number = int(first.removeprefix("j-")) + 1
    for name in (f"{mark}j-{number}.1", f"{mark}j-{number}.1-{'0' * 16}"):
        attacked.sbatch("eve", f"--job-name={name}", f"--comment={name}", script="exit 3")
    crash = attacked.server.home / "crash"
    crash.touch(mode=0o666)
    job = attacked.submit("ann", "echo once; sleep 15; exit 7", gpus=1)
    wait_until(lambda: not attacked.server.is_running, "the server died behind sbatch")
    own, name = attacked.slurm_job(job)
    assert job == f"j-{number}"
    # Nor does it help to give the very name again, now that everybody can read it.
    running = attacked.sbatch("eve", f"--job-name={name}", f"--comment={name}")
    attacked.sbatch("eve", f"--job-name={name}", f"--comment={name}", script="exit 3")
    attacked.start()
    attacked.server.wait_ready()
    ended = attacked.wait("ann", job)
    assert (ended["exit_code"], ended["attempt"]) == (7, 1), ended
    with attacked.server.http("ann") as http:
        assert http.get(f"/jobs/{job}/logs").text == "once\n"
    assert attacked.state_in_slurm(running) == "RUNNING"
    assert attacked.state_in_slurm(own) != "RUNNING"


def test_after_a_crash_a_stop_cancels_the_attempts_own_job_and_no_namesake(attacked: SlurmMachine) -> None:
    first = attacked.submit("ann", "exit 0", gpus=1)
    attacked.wait("ann", first)
    partition = "PartitionName=batch"
    try:
        # Slurm takes jobs, and begins none: no Slurm job has claimed the attempt when it is stopped.
        attacked.slurm.run("scontrol", "update", partition, "State=DOWN")
        (attacked.server.home / "crash").touch(mode=0o666)
        job = attacked.submit("ann", "sleep 600", gpus=1)
        wait_until(lambda: not attacked.server.is_running, "the server died behind sbatch")
        own, name = attacked.slurm_job(job)
        other = attacked.sbatch("eve", f"--job-name={name}", f"--comment={name}")
        attacked.start()
        attacked.server.wait_ready()
        attacked.stop("ann", job)
        attacked.wait("ann", job, "stopped")
        wait_until(lambda: attacked.state_in_slurm(own) == "CANCELLED", "its own job is gone")
        assert attacked.state_in_slurm(other) == "PENDING"
    finally:
        attacked.slurm.run("scontrol", "update", partition, "State=UP")
