"""An engine whose records are gone, on a real Slurm: as after a restore of a backup into an empty home."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.control.ports import AttemptPhase, EngineUnavailable, Observation
from corral.core.model import EndReason
from tests.contract.engine_harness import order, script, wait_until
from tests.contract.slurm_harness import SlurmHarness
from tests.servers.slurm import SlurmCluster

pytest_plugins = ("tests.servers.fixtures",)

IDENTITY = ("engine-id", "engine-key")


@pytest.fixture
def harness(tmp_path: Path, slurm_cluster: SlurmCluster) -> Iterator[SlurmHarness]:
    made = SlurmHarness(tmp_path / "engine", slurm_cluster)
    yield made
    made.clean_up()


def restore(harness: SlurmHarness, root: Path | None = None) -> None:
    """The engine of a restored server, with the same root as before or another one."""
    harness.stop_server()
    kept = {name: (harness.root / name).read_text() for name in IDENTITY}
    if root is None:
        shutil.rmtree(harness.root)
    else:
        harness.root = root
    harness.root.mkdir()
    for name, text in kept.items():
        (harness.root / name).write_text(text)
    harness.start()


def observed(harness: SlurmHarness) -> Observation:
    """The first observation, once the cancelled jobs are gone."""
    found = list[Observation]()

    def is_observed() -> bool:
        try:
            found.append(harness.engine.observe())
        except EngineUnavailable as error:
            if "are cancelled first" not in str(error):
                raise
        return bool(found)

    wait_until(is_observed, "Slurm has cancelled the jobs that never began")
    return found[0]


def jobs(harness: SlurmHarness) -> list[str]:
    return harness.slurm.run("squeue", "--noheader", "--format=%i", "--states=RUNNING,PENDING").split()


def test_a_gang_goes_on_after_a_restore_and_is_not_launched_again(harness: SlurmHarness) -> None:
    text = "trap 'exit 7' TERM; while :; do sleep 0.05; done"
    launched = order(*script(text), nodes=2, gpus=2, time_limit_seconds=300.0, grace_seconds=9.0)
    harness.launch(launched)
    harness.listener.running()
    before, running = harness.engine._attempts.get("j-1.1"), jobs(harness)

    restore(harness)
    (status,) = observed(harness).attempts
    assert (status.attempt_id, status.phase) == ("j-1.1", AttemptPhase.RUNNING)
    after = harness.engine._attempts.get("j-1.1")
    assert before is not None
    assert after is not None
    kept = ("nodes", "gpus", "grace_seconds", "limit_seconds", "job_id", "secret")
    assert {name: getattr(after, name) for name in kept} == {name: getattr(before, name) for name in kept}
    harness.engine.launch(launched)
    assert jobs(harness) == running
    # The records made anew are as good as the former ones.
    harness.stop_server()
    harness.start()
    assert [one.phase for one in observed(harness).attempts] == [AttemptPhase.RUNNING]

    harness.engine.stop("j-1.1", 5.0)
    ended = harness.listener.ended()
    assert (ended.reason, ended.exit_code) == (EndReason.EXIT_CODE, 7)
    harness.engine.forget(["j-1.1"])
    wait_until(lambda: not jobs(harness), "nothing stays")


@pytest.mark.parametrize("code", [0, 5])
def test_a_job_that_reports_to_another_root_ends_with_its_own_code(
    harness: SlurmHarness, tmp_path: Path, code: int
) -> None:
    leave = tmp_path / "leave"
    harness.launch(order(*script(f"while [ ! -e {leave} ]; do sleep 0.05; done; exit {code}"), gpus=1))
    harness.listener.running()
    restore(harness, tmp_path / "other")
    assert [one.phase for one in observed(harness).attempts] == [AttemptPhase.RUNNING]
    assert "restored from a backup" in harness.output()
    leave.touch()
    ended = harness.listener.ended()
    assert (ended.reason, ended.exit_code) == (EndReason.EXIT_CODE, code)


def test_an_end_without_a_record_is_found_in_slurm_after_a_restore(harness: SlurmHarness) -> None:
    harness.launch(order(*script("exit 7")))
    harness.listener.ended()
    wait_until(lambda: not jobs(harness), "Slurm has its end")
    restore(harness)
    wait_until(lambda: [one.exit_code for one in observed(harness).attempts] == [7], "its end is known")


def test_a_job_that_never_began_is_cancelled_and_can_be_launched_again(harness: SlurmHarness) -> None:
    harness.slurm.run("sbatch", "--job-name=stranger", "--gres=gpu:8", "--nodelist=node1", "--wrap=sleep 600")
    wait_until(lambda: "stranger" in harness.slurm.run("squeue", "-h", "--format=%j %T", "--states=RUNNING"), "it runs")
    launched = order(*script("sleep 600"), gpus=8)
    harness.engine.launch(launched)
    (pending,) = harness.slurm.run("squeue", "--noheader", "--format=%i", "--states=PENDING").split()
    restore(harness)
    assert not observed(harness).attempts
    assert pending not in jobs(harness)
    harness.slurm.run("scancel", "--name=stranger")
    harness.launch(launched)
    harness.listener.running()


def test_a_job_that_a_user_gave_such_a_name_is_no_attempt(harness: SlurmHarness) -> None:
    mark = harness.engine.describe()["mark"]
    restore(harness)
    harness.slurm.run("sbatch", f"--job-name={mark}j-9.1-0123456789abcdef", "--wrap=sleep 600", "--output=/dev/null")
    assert not observed(harness).attempts
    assert not jobs(harness)
