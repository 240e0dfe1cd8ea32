"""Defragmentation: approved moves begin a few at a time, each with a receipt; what has not begun can be cancelled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.errors import Forbidden, Invalid, WrongState
from corral.control.fleet import node_actions
from corral.control.live.unit_of_work import Work
from corral.control.ports import AttemptPhase, Store
from corral.control.records import ReceiptFilter
from corral.control.reports.analysis import preview_defragmentation, snapshot_of
from corral.control.scheduling.moves import defragmentation
from corral.control.scheduling.moves.defragmentation import AT_ONCE, DefragmentationRun, MoveState
from corral.core.model import Allocation, EndReason, Grant, JobState, Queue
from corral.core.reports.analysis.model import AnalysisRules, DefragmentationPlan
from corral.core.scheduling.plan.plan import PreemptionRule
from corral.core.snapshot.changes import PutQueue
from tests.unit.control.world import ANN, ROOT, Desk, draft
from tests.unit.core.builders import node

NODES = [node(f"n{number}", gpus=4) for number in range(1, 5)]


def scattered(store: Store) -> Desk:
    """Four nodes with one GPU in use each, by jobs that have saved."""
    desk = Desk(store, nodes=NODES)
    desk.state.apply([PutQueue(queue=Queue(name="default", placement="spread"))])
    for number in range(4):
        (job,) = desk.started(draft(f"train-{number}", gpus=1))
        put_saved(desk, job.id, desk.now)
    nodes = {job.allocation.grants[0].node for job in desk.state.snapshot.jobs.values() if job.allocation}
    assert len(nodes) == 4
    return desk


def put_saved(desk: Desk, job_id: str, at: float | None) -> None:
    def edit(work: Work) -> None:
        job = work.state.snapshot.jobs[job_id]
        work.jobs.edit(job, replace(job, checkpointed_at=at))

    desk.do(edit)


def gone_on(desk: Desk) -> DefragmentationRun:
    run = desk.do(defragmentation.go_on)
    assert run is not None
    return run


def plan_of(desk: Desk) -> DefragmentationPlan:
    return preview_defragmentation(snapshot_of(desk.state, desk.now), desk.now, AnalysisRules())


def states(run: DefragmentationRun) -> list[MoveState]:
    return [move.state for move in run.moves]


def move_along(desk: Desk) -> None:
    """The jobs that were asked to save end, and are up on their new nodes."""
    for job in list(desk.state.snapshot.jobs.values()):
        if job.is_moving:
            desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
            desk.hear(desk.job(job.id), AttemptPhase.RUNNING)


def test_moves_are_carried_out_a_few_at_a_time_with_receipts(store: Store) -> None:
    desk = scattered(store)
    plan = plan_of(desk)
    assert len(plan.moves) == 3
    run = desk.do(defragmentation.start, ROOT, plan)
    assert states(run) == [MoveState.MOVING] * AT_ONCE + [MoveState.WAITING]
    assert desk.do(defragmentation.go_on) == run, "nothing has changed"
    with pytest.raises(WrongState, match="under way"):
        desk.do(defragmentation.start, ROOT, plan)
    move_along(desk)
    run = gone_on(desk)
    assert states(run) == [MoveState.DONE, MoveState.DONE, MoveState.MOVING]
    move_along(desk)
    run = gone_on(desk)
    assert run.is_over
    assert {job.allocation.grants[0].node for job in desk.state.snapshot.jobs.values() if job.allocation} == {
        plan.moves[0].to_node
    }
    assert all(job.state is JobState.RUNNING and job.attempt in (1, 2) for job in desk.state.snapshot.jobs.values())
    with store.read() as tx:
        receipts = tx.receipts.page(ReceiptFilter(), cursor=None, limit=10).items
    assert [receipt.rule for receipt in receipts] == [PreemptionRule.DEFRAGMENTATION] * 3
    assert {receipt.id for receipt in receipts} == {move.receipt for move in run.moves}
    assert not plan_of(desk).moves, "nothing is left to do"


def test_moves_that_have_not_begun_can_be_cancelled(store: Store) -> None:
    desk = scattered(store)
    desk.do(defragmentation.start, ROOT, plan_of(desk))
    run = desk.do(defragmentation.cancel, ROOT)
    assert states(run) == [MoveState.MOVING, MoveState.MOVING, MoveState.CANCELLED]
    move_along(desk)
    run = gone_on(desk)
    assert states(run) == [MoveState.DONE, MoveState.DONE, MoveState.CANCELLED]
    with pytest.raises(WrongState, match="over"):
        desk.do(defragmentation.cancel, ROOT)


def test_a_move_whose_place_is_gone_is_left_out(store: Store) -> None:
    desk = scattered(store)
    plan = plan_of(desk)
    desk.do(node_actions.cordon, ROOT, plan.moves[0].to_node)
    run = desk.do(defragmentation.start, ROOT, plan)
    assert states(run) == [MoveState.LEFT_OUT] * 3
    assert "not free any more" in run.moves[0].detail
    assert run.is_over


def test_jobs_that_never_saved_move_only_if_that_is_said(store: Store) -> None:
    desk = scattered(store)
    for job in list(desk.state.snapshot.jobs.values()):
        put_saved(desk, job.id, None)
    plan = plan_of(desk)
    with pytest.raises(WrongState, match="has saved"):
        desk.do(defragmentation.start, ROOT, plan)
    run = desk.do(defragmentation.start, ROOT, plan, jobs=[plan.moves[0].job_id], include_unsaved=True)
    assert [move.job_id for move in run.moves] == [plan.moves[0].job_id]


def test_only_operators_and_only_moves_of_the_plan(store: Store) -> None:
    desk = scattered(store)
    plan = plan_of(desk)
    with pytest.raises(Forbidden):
        desk.do(defragmentation.start, ANN, plan)
    with pytest.raises(Invalid, match="j-99"):
        desk.do(defragmentation.start, ROOT, plan, jobs=["j-99"])
    with pytest.raises(WrongState, match="no small set"):
        desk.do(defragmentation.start, ROOT, DefragmentationPlan())


def test_a_job_that_was_resized_meanwhile_stays(store: Store) -> None:
    desk = scattered(store)
    plan = plan_of(desk)
    other = Allocation(grants=(Grant(node="n9", gpus=("n9/0",)),), model="A10")
    changed = replace(plan.moves[0], before=other)
    run = desk.do(defragmentation.start, ROOT, replace(plan, moves=(changed,)))
    assert states(run) == [MoveState.LEFT_OUT]
    assert run.moves[0].detail == "its job holds other GPUs by now"
