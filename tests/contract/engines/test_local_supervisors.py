"""Supervisors of the local engine are reused: one process after another instance, never for two at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.core.model import EndReason
from corral.engines.attempts.claims import ClaimState, claim_state
from tests.contract.engine_harness import LocalHarness, kill, order, process_exists, script, wait_until

IDLE = "corral-idle"


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalHarness]:
    harness = LocalHarness(tmp_path / "engine")
    yield harness
    harness.clean_up()


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def ran(local: LocalHarness, number: int, *command: str) -> int:
    """Run a job to its end; the process that supervised it, once it waits for the next one or has ended."""
    attempt = f"j-{number}.1"
    local.launch(order(*(command or ("true",)), attempt_id=attempt))
    assert local.listener.ended(attempt).reason is EndReason.EXIT_CODE
    pid = local.supervisor_pid(attempt)
    wait_until(lambda: name_of(pid) in (IDLE, ""), "end of the supervision")
    return pid


def test_jobs_that_follow_each_other_share_one_process_which_keeps_nothing_of_them(local: LocalHarness) -> None:
    first = ran(local, 1)
    kept = len(os.listdir(f"/proc/{first}/fd"))
    assert {ran(local, number, *script(f"echo {number}; exit {number}")) for number in range(2, 7)} == {first}
    assert len(os.listdir(f"/proc/{first}/fd")) == kept
    assert claim_state(local.layout.rank_dir("j-6.1", 0)) is ClaimState.FREE
    assert [local.listener.ended(f"j-{number}.1").exit_code for number in (1, 3, 6)] == [0, 3, 6]
    assert [local.output(f"j-{number}.1") for number in (1, 3, 6)] == ["", "3\n", "6\n"]


def test_jobs_that_run_at_the_same_time_have_a_process_each(local: LocalHarness) -> None:
    for number in (1, 2):
        local.launch(order("sleep", "60", attempt_id=f"j-{number}.1"))
        local.listener.running(f"j-{number}.1")
    assert local.supervisor_pid("j-1.1") != local.supervisor_pid("j-2.1")


def test_a_stop_ends_one_job_and_not_the_next_one_of_its_process(local: LocalHarness) -> None:
    local.launch(order("sleep", "60", attempt_id="j-1.1"))
    local.listener.running("j-1.1")
    pid = local.supervisor_pid("j-1.1")
    local.engine.stop("j-1.1", 5.0)
    local.listener.ended("j-1.1")
    wait_until(lambda: name_of(pid) == IDLE, "end of the supervision")
    local.engine.stop("j-1.1", 0.0)
    assert ran(local, 2) == pid
    assert local.listener.ended("j-2.1").exit_code == 0


def test_a_waiting_process_that_was_killed_costs_no_job(local: LocalHarness) -> None:
    kill(ran(local, 1))
    second = ran(local, 2)
    assert local.listener.ended("j-2.1").exit_code == 0
    assert ran(local, 3) == second


def test_a_waiting_process_ends_with_the_spawner(local: LocalHarness) -> None:
    idle = ran(local, 1)
    kill(local.spawner_pid())
    wait_until(lambda: not process_exists(idle), "end of the waiting process")
    assert ran(local, 2) != idle


def test_a_process_whose_supervision_failed_is_not_used_again(local: LocalHarness) -> None:
    pid = ran(local, 1)
    local.launch(order("sleep", "60", attempt_id="j-2.1"))
    local.listener.running("j-2.1")
    assert local.supervisor_pid("j-2.1") == pid
    kill(pid)
    assert local.listener.ended("j-2.1").reason is EndReason.LOST
    assert ran(local, 3) != pid


def test_a_job_leaves_one_record_and_its_working_directory(local: LocalHarness) -> None:
    """Counted, because each file and directory costs a job as much as many lines of code."""
    ran(local, 1)
    top = local.layout.attempt_dir("j-1.1")
    found = [os.path.join(place, name) for place, folders, names in os.walk(top) for name in (*folders, *names)]
    left = {os.path.relpath(path, top) for path in found}
    assert left == {"order", "0", "0/claim", "0/work"}
