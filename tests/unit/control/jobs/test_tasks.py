"""Tasks: hold GPUs first, decide later what runs on them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corral.control.errors import InsufficientQuota, Invalid, NotFound, OverLimit, WrongState
from corral.control.jobs import jobs, tasks
from corral.control.live.unit_of_work import Caller
from corral.control.ports import AttemptPhase, Store
from corral.control.system.policies import Policies, ScalingPolicy, TaskPolicy
from corral.core.model import Elastic, EndReason, JobKind, JobState
from corral.core.snapshot.installation import Limits, ScalingRules
from corral.stores.jobs.job_directories import DirectoryWorkspace
from tests.unit.control.world import ANN, BOB, Desk, draft
from tests.unit.core.builders import node

HOLDER = ("corral-holder",)
THREE_NODES = (node("n1", gpus=4), node("n2", gpus=4), node("n3", gpus=4))


def allocate(desk: Desk, task: str, gpus: int | None = None, *, wait: bool = False) -> tasks.Allocated:
    return desk.do(tasks.allocate, ANN, task, gpus, HOLDER, wait=wait)


def asked(allocated: tasks.Allocated) -> int:
    return allocated.record.job.request.gpus


def over(desk: Desk, task: str) -> None:
    """Release a running task, and let it end."""
    job = desk.do(tasks.release, ANN, task)
    desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)


def test_automatic_allocations_take_the_minimum_within_their_limit(desk: Desk) -> None:
    first = allocate(desk, "one-1")
    assert (asked(first), first.warning, first.record.job.kind) == (1, None, JobKind.WORKBENCH)
    assert asked(allocate(desk, "two-2")) == 1
    with pytest.raises(InsufficientQuota) as refusal:
        allocate(desk, "three-3")
    assert refusal.value.numbers == {"asked": 1, "held": 2, "limit": 2}


def test_the_minimum_is_that_of_the_configuration(store: Store) -> None:
    desk = Desk(store, Policies(scaling=ScalingPolicy(min_gpus=2)))
    assert asked(allocate(desk, "one-1")) == 2


def test_gpus_that_are_not_free_are_a_warning(desk: Desk) -> None:
    desk.started(draft("most-of-n1", gpus=3), draft("most-of-n2", gpus=3), caller=BOB)
    assert allocate(desk, "one-1").warning is None
    allocated = allocate(desk, "two-2", 2)
    assert allocated.warning == "2 GPUs are not free now on one node: the task waits for them"


def test_the_total_limit_refuses_a_task_unless_it_may_wait(store: Store) -> None:
    desk = Desk(store, Policies(limits=Limits(max_total_gpus=4)))
    desk.started(draft("three", gpus=3), caller=BOB)
    with pytest.raises(OverLimit, match=r"all jobs together may hold 4 GPUs: asks 2, holds 3.*--wait") as refusal:
        allocate(desk, "one-1", 2)
    assert refusal.value.numbers == {"asked": 2, "held": 3, "limit": 4}
    assert allocate(desk, "two-2", 1).warning is None
    waiting = allocate(desk, "one-1", 2, wait=True)
    assert waiting.warning == "all jobs together may hold 4 GPUs: asks 2, holds 3: the task waits"
    assert waiting.record.job.state is JobState.QUEUED


def test_task_is_not_refused_if_elastic_jobs_can_release_gpus(store: Store) -> None:
    policies = Policies(limits=Limits(max_total_gpus=4), scaling=ScalingPolicy(max_gpus=4))
    desk = Desk(store, policies)
    (grown,) = desk.started(draft("grows", min_gpus=1, max_gpus=4, restart_unsaved=True), caller=BOB)
    assert desk.job(grown.id).request.gpus == 4
    assert allocate(desk, "one-1", 2).record.job.state is JobState.QUEUED


def test_automatic_tasks_are_elastic_where_scaling_is_on(store: Store) -> None:
    desk = Desk(store, Policies(scaling=ScalingPolicy(min_gpus=1, max_gpus=4)))
    job = allocate(desk, "one-1").record.job
    assert job.elastic == Elastic(min_gpus=1, max_gpus=4)
    assert desk.cycle() == [job.id]
    assert desk.job(job.id).request.gpus == 1  # more only for a program that uses what it has
    assert allocate(desk, "two-2", 2).record.job.elastic is None


@pytest.mark.parametrize("enabled", [True, False])
def test_a_template_may_allow_to_start_over(store: Store, enabled: bool) -> None:
    scaling = ScalingPolicy(rules=ScalingRules(enabled=enabled))
    desk = Desk(store, Policies(scaling=scaling, tasks=TaskPolicy(restart_unsaved=True)))
    job = allocate(desk, "one-1").record.job
    assert (job.elastic is not None, job.restart_unsaved) == (enabled, enabled)


def test_a_task_is_found_by_the_name_that_the_user_gave(desk: Desk) -> None:
    task = allocate(desk, "exp_1", 1).record.job
    other = desk.do(jobs.submit, ANN, [draft("exp_2")])[0].job
    allocate(desk, "exp_2", 1)
    assert desk.do(jobs.stop, ANN, "exp_1").id == task.id
    assert desk.do(jobs.stop, ANN, "exp_2").id == other.id  # the name of a job goes before the name of a task
    for reference in ("EXP_1", "_1", "task_exp"):
        with pytest.raises(NotFound):
            desk.do(jobs.stop, ANN, reference)
    with pytest.raises(NotFound):
        desk.do(jobs.stop, BOB, "exp_1")


def test_more_gpus_than_a_node_has_are_a_gang(store: Store) -> None:
    desk = Desk(store, Policies(tasks=TaskPolicy(max_manual_gpus=None)), nodes=THREE_NODES)
    job = allocate(desk, "six-6", 6).record.job
    assert (job.kind, job.request.nodes, job.request.gpus, job.preemptible) == (JobKind.DISTRIBUTED, 2, 3, False)
    assert desk.cycle() == [job.id]
    nine = allocate(desk, "nine", 9).record.job
    assert (nine.request.nodes, nine.request.gpus) == (3, 3)
    with pytest.raises(Invalid, match="no nodes have 7 GPUs in equal parts: ask for 6 or 8"):
        allocate(desk, "seven", 7)
    with pytest.raises(Invalid, match="no node in pool default has 13 GPUs, the largest has 4"):
        allocate(desk, "thirteen", 13)


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
    with pytest.raises(WrongState, match="task 'one-1' is queued with 1 GPU: start its program, or release it first"):
        allocate(desk, "one-1", 1)
    desk.cycle()
    over(desk, "one-1")
    with pytest.raises(WrongState, match="holds nothing"):
        desk.do(tasks.release, ANN, "one-1")
    again = allocate(desk, "one-1", 1)
    assert again.record.job.id == "j-2"


def test_a_name_is_refused_in_the_words_of_the_user(desk: Desk) -> None:
    with pytest.raises(Invalid, match=r"the task name 'two words' is not allowed: letters, .* with the prefix 'task_'"):
        allocate(desk, "two words")


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
    """Hands GPUs over like the API: planned and recorded by the controller, written outside of its thread."""
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
    assert json.loads(written.read_text())["command"] == ["echo", "{gpu_list}", "{gpu_count}"]
    with pytest.raises(WrongState, match="already"):
        hand(desk, ANN, program, workspace)
    with pytest.raises(NotFound):
        hand(desk, BOB, program, workspace)
