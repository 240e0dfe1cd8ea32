"""Events of attempts that only a Slurm cluster causes, on a real one."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from corral.control.ports import LaunchRefused
from corral.core.model import EndReason
from corral.engines.slurm.attempts import tracking
from corral.engines.slurm.cluster import occupancy
from corral.engines.slurm.slurm_api.commands import SlurmCommands
from tests.contract.engine_harness import order, script, wait_until
from tests.contract.slurm_harness import SlurmHarness
from tests.servers.accounts import temporary_account
from tests.servers.slurm import SlurmCluster

pytest_plugins = ("tests.servers.fixtures",)


def test_an_attempt_whose_node_does_not_see_corrals_files_was_not_the_programs_failure(harness: SlurmHarness) -> None:
    (program,) = harness.root.glob("attempt-*.sh")
    program.rename(program.with_name("away"))
    harness.launch(order("/bin/true"))
    ended = harness.listener.ended()
    assert (ended.reason, ended.exit_code) == (EndReason.LOST, None)
    assert "does the node see corral's files?" in ended.message
    program.with_name("away").rename(program)
    harness.launch(order("/bin/true", attempt_id="j-1.2"))
    assert harness.listener.ended("j-1.2").exit_code == 0


def test_a_job_has_no_language_and_no_time_zone_of_the_servers(
    harness: SlurmHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    harness.launch(order(*script('echo "$LANG ${TZ-none}"')))
    harness.listener.ended()
    assert harness.output().strip() == "C.UTF-8 none"


def test_a_job_that_a_user_cancels_in_slurm_has_not_failed_by_itself(harness: SlurmHarness) -> None:
    harness.launch(order(*script("sleep 600"), gpus=1))
    harness.listener.running()
    # by its name: that of the test before may just be leaving
    harness.slurm.run("scancel", f"--name={harness.slurm_name()}")
    ended = harness.listener.ended()
    assert (ended.reason, ended.exit_code) == (EndReason.LOST, None)
    assert "cancelled in Slurm" in ended.message


def test_a_program_that_says_it_ended_and_goes_on_keeps_nothing_for_long(
    harness: SlurmHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(occupancy, "LINGER_SECONDS", 0.2)
    line = "end $(date +%s.%N) exit_code 0 - $(date +%s.%N)"
    harness.launch(order(*script(f'echo "{line}" >>"$CORRAL_RUN_DIR/told"; trap "" TERM; sleep 600'), gpus=2))
    assert harness.listener.ended().exit_code == 0
    harness.engine.forget(["j-1.1"])
    wait_until(lambda: len(taken_on(harness, "node1")) == 2, "they are called taken")
    wait_until(lambda: not harness.engine.observe() or not harness.slurm.run("squeue", "-h").strip(), "it is cancelled")
    wait_until(lambda: not taken_on(harness, "node1"), "the GPUs are free")


@pytest.fixture(autouse=True)
def no_strangers(slurm_cluster: SlurmCluster) -> Iterator[None]:
    yield
    slurm_cluster.run("scancel", "--name=stranger")


def take_node1(harness: SlurmHarness) -> None:
    options = ("--job-name=stranger", "--gres=gpu:8", "--nodelist=node1", "--output=/dev/null")
    harness.slurm.run("sbatch", *options, "--wrap=sleep 600")
    wait_until(lambda: len(taken_on(harness, "node1")) == 8, "the stranger's GPUs are seen")


def taken_on(harness: SlurmHarness, name: str) -> tuple[str, ...]:
    return next(node.taken.gpus for node in harness.engine.observe().nodes if node.id == name)


def test_an_id_of_a_stranger_is_neither_followed_nor_cancelled(
    harness: SlurmHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """sbatch runs as the account of the job, which may make it print any number."""
    monkeypatch.setattr(tracking, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(tracking, "LOST_SECONDS", 1.0)
    with temporary_account(f"corral-str-{os.getpid()}", 1_000_000 + 3 * os.getpid()) as stranger:
        who = ("setpriv", f"--reuid={stranger.pw_name}", f"--regid={stranger.pw_gid}", "--clear-groups")
        options = ("--parsable", "--job-name=stranger", "--chdir=/", "--output=/dev/null", "--wrap=sleep 600")
        victim = int(harness.slurm.run(*who, "sbatch", *options))
        try:
            monkeypatch.setattr(SlurmCommands, "submit", lambda slurm, job: victim)
            harness.launch(order(*script("sleep 600"), gpus=1))
            harness.engine.stop("j-1.1", 0.0)
            assert harness.listener.ended().reason is EndReason.LOST
            assert harness.slurm.run("squeue", "-h", "-j", str(victim), "-o", "%T").strip() in ("PENDING", "RUNNING")
        finally:
            harness.slurm.run("scancel", str(victim))


def test_gpus_held_outside_corral_stay_taken_when_a_plan_for_them_ends(harness: SlurmHarness) -> None:
    take_node1(harness)
    # A plan that was made a moment before names the same GPUs, and waits for them in Slurm.
    harness.launch(order("/bin/true", gpus=8))
    assert len(taken_on(harness, "node1")) == 8
    harness.engine.stop("j-1.1", 0.0)
    harness.listener.ended()
    assert len(taken_on(harness, "node1")) == 8


def test_a_job_is_taken_back_in_time_although_the_controller_was_slow(
    harness: SlurmHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.rules = {"pending_seconds": 1.0}
    harness.restart()
    take_node1(harness)
    # After an answer that took long the watcher asks again in a minute.
    monkeypatch.setattr(harness.engine, "rescan", list)
    harness.launch(order("/bin/true", gpus=8))
    wait_until(lambda: harness.engine.observe().attempts[0].reason is EndReason.PREEMPTED, "it is taken back")


def test_the_accounts_of_jobs_can_read_when_slurm_last_got_a_job(harness: SlurmHarness) -> None:
    before = os.umask(0o077)
    try:
        (harness.root / "hurry").unlink()
        harness.restart()
        harness.launch(order("/bin/true"))
        harness.listener.ended()
    finally:
        os.umask(before)
    assert (harness.root / "hurry").stat().st_mode & 0o777 == 0o644


def test_attempt_refused_by_slurm_ends_and_leaves_nothing_behind(harness: SlurmHarness) -> None:
    harness.rules = {"extra": ("--partition=nowhere",)}
    harness.restart()
    with pytest.raises(LaunchRefused, match=r"Slurm refuses it: .*nvalid partition"):
        harness.launch(order("/bin/true", gpus=8))
    assert harness.listener.ended().reason is EndReason.LAUNCH_ERROR
    harness.engine.forget(["j-1.1"])
    assert harness.engine.observe().attempts == ()
    assert list((harness.root / "orders").iterdir()) == []
