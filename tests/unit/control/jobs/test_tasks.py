"""Tasks: hold GPUs first, decide later what runs on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.control.errors import InsufficientQuota, Invalid, NotFound, OverLimit, Taken, WrongState
from corral.control.jobs import tasks
from corral.control.live.unit_of_work import Caller
from corral.control.ports import AttemptPhase, Store
from corral.control.system.policies import Policies, TaskPolicy
from corral.core.model import EndReason, JobKind, JobState
from corral.core.snapshot.installation import Limits
from corral.stores.jobs.job_directories import DirectoryWorkspace
from tests.unit.control.world import ANN, BOB, Desk, draft
from tests.unit.core.builders import node

HOLDER = ("corral-holder",)


def allocate(desk: Desk, task: str, gpus: int | None = None) -> tasks.Allocated:
    return desk.do(tasks.allocate, ANN, task, gpus, HOLDER)


def asked(allocated: tasks.Allocated) -> int:
    return allocated.record.job.request.gpus


def over(desk: Desk, task: str) -> None:
    """Release a running task, and let it end."""
    job = desk.do(tasks.release, ANN, task)
    desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)


def test_automatic_allocations_take_what_is_free_within_their_limit(desk: Desk) -> None:
    first = allocate(desk, "one-1")
    assert (asked(first), first.warning, first.record.job.kind) == (2, None, JobKind.WORKBENCH)
    with pytest.raises(InsufficientQuota) as refusal:
        allocate(desk, "two-2")
    assert refusal.value.numbers == {"asked": 1, "held": 2, "limit": 2}


def test_fewer_than_possible_is_a_warning(desk: Desk) -> None:
    desk.started(draft("all-of-n1", gpus=4), draft("most-of-n2", gpus=3), caller=BOB)
    allocated = allocate(desk, "one-1")
    assert (asked(allocated), allocated.warning) == (1, "1 of 2 possible GPUs are free on one node")


def test_with_nothing_free_the_task_waits_for_one(desk: Desk) -> None:
    desk.started(draft("all-of-n1", gpus=4), draft("all-of-n2", gpus=4), caller=BOB)
    allocated = allocate(desk, "one-1")
    assert asked(allocated) == 1
    assert "waits" in (allocated.warning or "")
    assert desk.cycle() == []


def test_explicit_allocations_have_a_limit_of_their_own(desk: Desk) -> None:
    allocate(desk, "auto-1")
    allocate(desk, "manual-1", 4)
    with pytest.raises(OverLimit) as refusal:
        allocate(desk, "manual-2", 3)
    assert refusal.value.numbers == {"asked": 3, "held": 4, "limit": 6}
    allocate(desk, "manual-2", 2)
    with pytest.raises(Invalid):
        allocate(desk, "manual-3", 0)


def test_only_gpus_of_the_queues_own_pool_count_as_free(store: Store) -> None:
    desk = Desk(store, nodes=(node("n1", gpus=1), node("n2", gpus=4, pool="night")))
    allocated = allocate(desk, "one-1")
    assert asked(allocated) == 1
    assert desk.cycle() == [allocated.record.job.id]


def test_a_task_has_one_name_until_it_is_released(desk: Desk) -> None:
    allocate(desk, "one-1", 1)
    with pytest.raises(Taken):
        allocate(desk, "one-1", 1)
    desk.cycle()
    over(desk, "one-1")
    with pytest.raises(WrongState, match="holds nothing"):
        desk.do(tasks.release, ANN, "one-1")
    again = allocate(desk, "one-1", 1)
    assert again.record.job.id == "j-2"


def test_a_refused_second_allocation_leaves_the_first_as_it_was(store: Store) -> None:
    policies = Policies(limits=Limits(max_gpus_per_job=2), tasks=TaskPolicy(max_manual_gpus=6))
    desk = Desk(store, policies)
    allocate(desk, "one-1", 1)
    desk.cycle()
    over(desk, "one-1")
    with pytest.raises(OverLimit):
        allocate(desk, "one-1", 3)
    assert desk.job("j-1").state is JobState.STOPPED


def hand(desk: Desk, caller: Caller, program: tasks.Program, workspace: DirectoryWorkspace) -> None:
    """As the API does it: planned and recorded by the controller, written outside of its thread."""
    job, content = desk.do(tasks.planned_program, caller, "one-1", program)
    tasks.hand_program(job, "one-1", content, workspace)
    desk.do(tasks.note_program, caller, job, "one-1", content)


def test_a_program_is_handed_over_once(desk: Desk, tmp_path: Path) -> None:
    workspace = DirectoryWorkspace(tmp_path)
    allocate(desk, "one-1", 2)
    with pytest.raises(WrongState, match="not held yet"):
        hand(desk, ANN, tasks.Program(command=("echo", "{gpu_list}")), workspace)
    desk.cycle()
    program = tasks.Program(command=("echo", "{gpu_list}", "{gpu_count}"))
    hand(desk, ANN, program, workspace)
    (written,) = tmp_path.glob("*/j-1/program.json")
    assert '"0,1", "2"' in written.read_text()
    with pytest.raises(WrongState, match="already"):
        hand(desk, ANN, program, workspace)
    with pytest.raises(NotFound):
        hand(desk, BOB, program, workspace)
