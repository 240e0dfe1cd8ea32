"""Preemptions in the live system: which jobs are warned, what is kept, and that a crash loses none of it.

The decision is handmade here: the core chooses victims, and its tests cover that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corral.control.jobs import checkpoints, jobs
from corral.control.jobs.checkpoints import Saved
from corral.control.live import cycle
from corral.control.ports import AttemptPhase, Store
from corral.control.records import ReceiptRecord
from corral.control.scheduling.preemptions import LastSave, note_last_saves, undecided
from corral.control.scheduling.receipts import followed, saw_saved
from corral.control.system.policies import CheckpointPolicy, Policies
from corral.core.jobs.lifecycle import Ended, Stop
from corral.core.model import EndReason, Job, JobState
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.plan.plan import Plan, Preemption, PreemptionRule
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from tests.unit.control.fresh_stores import FreshStores
from tests.unit.control.tenants import assert_state_is_stored
from tests.unit.control.world import ANN, BOB, ROOT, TWO_NODES, Desk, draft, status
from tests.unit.searching import DEAR

RUNNING, ENDED = AttemptPhase.RUNNING, AttemptPhase.ENDED
WHY = "queue A is guaranteed 4 GPUs and holds 0"


class Decisions:
    """Extra decisions of the next cycle."""

    def __init__(self) -> None:
        self.next: list[Preemption] = []
        self.starts_nothing = False

    def schedule(self, snapshot: ClusterSnapshot, now: float) -> Plan:
        plan = schedule(snapshot, now)
        decided, self.next = tuple(self.next), []
        return replace(plan, preemptions=decided, starts=() if self.starts_nothing else plan.starts)


@pytest.fixture
def decisions(monkeypatch: pytest.MonkeyPatch) -> Decisions:
    made = Decisions()
    monkeypatch.setattr(cycle, "schedule", made.schedule)
    return made


def preempted(desk: Desk, decisions: Decisions, *victims: Job, for_job: Job, lost: float = 120.0) -> None:
    decisions.next = [
        Preemption(
            job_id=victim.id,
            for_job=for_job.id,
            rule=PreemptionRule.GUARANTEE,
            lost_gpu_seconds=lost,
            detail=WHY,
        )
        for victim in victims
    ]
    desk.cycle()


def receipts(desk: Desk, job: Job) -> list[ReceiptRecord]:
    with desk.store.read() as tx:
        return tx.receipts.of_job(job.id, 10)


def borrowing(desk: Desk, *, gpus: int = 4) -> tuple[Job, Job]:
    """Ann's job holds everything of its size and Bob's waits."""
    first, victim = desk.started(draft("first", gpus=4), draft("victim", gpus=gpus))
    (waiting,) = desk.submit(draft("urgent", gpus=4), caller=BOB)
    desk.now += 60.0
    assert desk.cycle() == []
    assert first.state is JobState.RUNNING
    return victim, waiting


def test_owners_of_both_jobs_get_a_receipt_and_the_engine_is_called_once(desk: Desk, decisions: Decisions) -> None:
    victim, waiting = borrowing(desk)
    preempted(desk, decisions, victim, for_job=waiting)
    assert desk.instructions == [Stop(attempt_id=victim.attempt_id, grace_seconds=victim.grace_seconds)]
    stopping = desk.job(victim.id)
    assert (stopping.state, stopping.stopping_for) == (JobState.STOPPING, EndReason.PREEMPTED)
    assert stopping.preempted_for == waiting.id
    assert stopping.message == (
        f"is preempted for {waiting.id} (urgent) of bob: {WHY}; 30s of work on 4 GPUs is not saved yet"
    )
    (receipt,) = receipts(desk, victim)
    assert receipts(desk, waiting) == [receipt]
    assert (receipt.user, receipt.for_user, receipt.attempt, receipt.gpu_milli) == ("ann", "bob", 1, 4000)
    assert (receipt.rule, receipt.detail, receipt.lost_gpu_seconds) == (PreemptionRule.GUARANTEE, WHY, 120.0)
    assert (receipt.saved, receipt.ended_at, receipt.back_at, receipt.is_open) == (None, None, None, True)
    reported = {event.action: event for event in desk.events()[-2:]}
    assert (reported["job.preempting"].owner, reported["job.preempting"].subject) == ("ann", victim.id)
    assert reported["job.preempting"].detail["for"] == waiting.id
    assert (reported["job.making-room"].owner, reported["job.making-room"].subject) == ("bob", waiting.id)
    assert [item["job"] for item in reported["job.making-room"].detail["jobs"]] == [victim.id]
    with desk.store.read() as tx:
        assert tx.cycles.since_base()[-1].at == desk.now, "a cycle that preempts is kept in the journal"


def test_from_the_warning_to_the_next_attempt(desk: Desk, decisions: Decisions) -> None:
    victim, waiting = borrowing(desk)
    preempted(desk, decisions, victim, for_job=waiting, lost=240.0)
    desk.now += 5.0
    warned_at = desk.now - 5.0
    desk.do(checkpoints.note_saved, [Saved(job_id=victim.id, at=desk.now - 1.0)])
    desk.hear(desk.job(victim.id), ENDED, EndReason.EXIT_CODE, exit_code=0)
    back = desk.job(victim.id)
    assert (back.state, back.preemptions, back.preempted_for, back.retries) == (JobState.QUEUED, 1, waiting.id, 0)
    (receipt,) = receipts(desk, victim)
    assert (receipt.at, receipt.ended_at, receipt.saved) == (warned_at, desk.now, True)
    assert receipt.lost_gpu_seconds == 4.0, "one second on four GPUs, after it had saved"
    assert undecided(desk.state) == []
    # Bob's job gets the GPUs, and when it is done Ann's comes back.
    assert desk.cycle() == [waiting.id]
    desk.hear(desk.job(waiting.id), RUNNING)
    desk.now += 100.0
    desk.hear(desk.job(waiting.id), ENDED, EndReason.EXIT_CODE, exit_code=0)
    assert desk.cycle() == [victim.id]
    assert receipts(desk, victim)[0].back_at is None, "it is planned, and not up yet"
    desk.now += 2.0
    desk.hear(desk.job(victim.id), RUNNING)
    (receipt,) = receipts(desk, victim)
    assert (receipt.back_at, receipt.is_open) == (desk.now, False)
    assert desk.state.receipts == {}
    assert_state_is_stored(desk)


def test_receipt_gets_the_saved_work_after_the_end(desk: Desk, decisions: Decisions) -> None:
    """Many programs save at the very end, before the checkpoint was looked for."""
    victim, waiting = borrowing(desk)
    preempted(desk, decisions, victim, for_job=waiting)
    warned_at = desk.now
    desk.now += 10.0
    desk.hear(desk.job(victim.id), ENDED, EndReason.EXIT_CODE, exit_code=0)
    (receipt,) = receipts(desk, victim)
    assert (receipt.saved, receipt.lost_gpu_seconds) == (None, 120.0)
    assert undecided(desk.state) == [receipt]
    desk.do(note_last_saves, [LastSave(job_id=victim.id, attempt=2, at=warned_at + 9.0)])
    assert receipts(desk, victim) == [receipt], "that is another attempt's"
    desk.do(note_last_saves, [LastSave(job_id=victim.id, attempt=1, at=warned_at + 9.0)])
    (receipt,) = receipts(desk, victim)
    assert (receipt.saved, receipt.lost_gpu_seconds, receipt.is_open) == (True, 4.0, True)
    desk.do(note_last_saves, [LastSave(job_id=victim.id, attempt=1, at=None)])
    assert receipts(desk, victim) == [receipt], "what is known is not asked again"


def test_a_job_that_did_not_save_loses_its_work_since_the_last_checkpoint(desk: Desk, decisions: Decisions) -> None:
    victim, waiting = borrowing(desk)
    saved_at = desk.now - 20.0
    desk.do(checkpoints.note_saved, [Saved(job_id=victim.id, at=saved_at)])
    preempted(desk, decisions, victim, for_job=waiting, lost=80.0)
    desk.now += 30.0
    desk.hear(desk.job(victim.id), ENDED, EndReason.EXIT_CODE, exit_code=143)
    desk.do(note_last_saves, [LastSave(job_id=victim.id, attempt=1, at=saved_at)])
    (receipt,) = receipts(desk, victim)
    assert (receipt.saved, receipt.lost_gpu_seconds) == (False, 50.0 * 4)


def test_without_checkpoints_the_end_is_the_last_word(store: Store, decisions: Decisions) -> None:
    desk = Desk(store, Policies(checkpoints=CheckpointPolicy(enabled=False)))
    victim, waiting = borrowing(desk)
    preempted(desk, decisions, victim, for_job=waiting)
    desk.hear(desk.job(victim.id), ENDED, EndReason.EXIT_CODE, exit_code=0)
    (receipt,) = receipts(desk, victim)
    assert (receipt.saved, receipt.lost_gpu_seconds) == (False, 60.0 * 4)


def test_a_victim_is_queued_again_when_the_preempting_job_is_deleted(desk: Desk, decisions: Decisions) -> None:
    victim, waiting = borrowing(desk)
    preempted(desk, decisions, victim, for_job=waiting)
    desk.do(jobs.stop, BOB, waiting.id)
    desk.do(jobs.delete, BOB, waiting.id)
    assert desk.job(victim.id).state is JobState.STOPPING
    desk.hear(desk.job(victim.id), ENDED, EndReason.EXIT_CODE, exit_code=0)
    assert desk.job(victim.id).state is JobState.QUEUED
    assert desk.state.snapshot.victims_stopping == {}
    assert desk.cycle() == [victim.id]
    desk.hear(desk.job(victim.id), RUNNING)
    (receipt,) = receipts(desk, victim)
    assert (receipt.for_job, receipt.for_job_name, receipt.back_at) == (waiting.id, "urgent", desk.now)
    assert_state_is_stored(desk)


def test_victim_stopped_by_its_owner_does_not_come_back(desk: Desk, decisions: Decisions) -> None:
    victim, waiting = borrowing(desk)
    preempted(desk, decisions, victim, for_job=waiting)
    desk.do(jobs.stop, ANN, victim.id)
    desk.hear(desk.job(victim.id), ENDED, EndReason.EXIT_CODE, exit_code=0)
    assert desk.job(victim.id).state is JobState.STOPPED
    desk.do(note_last_saves, [LastSave(job_id=victim.id, attempt=1, at=None)])
    (receipt,) = receipts(desk, victim)
    assert (receipt.saved, receipt.back_at, receipt.is_open) == (False, None, False)
    assert desk.cycle() == [waiting.id]


def test_a_deleted_job_leaves_its_receipt(desk: Desk, decisions: Decisions) -> None:
    victim, waiting = borrowing(desk)
    preempted(desk, decisions, victim, for_job=waiting)
    desk.do(jobs.stop, ANN, victim.id)
    desk.hear(desk.job(victim.id), ENDED, EndReason.EXIT_CODE, exit_code=0)
    desk.do(jobs.delete, ANN, victim.id)
    (receipt,) = receipts(desk, waiting)
    assert (receipt.job_name, receipt.is_open) == ("victim", False)
    assert desk.state.receipts == {}


# -------------------------------------------------------------------------------------------- crashes


def test_a_crash_before_the_commit_leaves_no_job_warned(desk: Desk, decisions: Decisions) -> None:
    victim, waiting = borrowing(desk)
    decisions.next = [
        Preemption(job_id=victim.id, for_job=waiting.id, rule=PreemptionRule.ORDER, lost_gpu_seconds=1.0, detail=WHY)
    ]

    def crash(work: Any) -> None:
        cycle.run_cycle(work, desk.journal)
        work.flush()
        raise RuntimeError("the power is gone")

    with pytest.raises(RuntimeError, match="power"):
        desk.do(crash)
    assert desk.job(victim.id).state is JobState.RUNNING
    assert receipts(desk, victim) == []
    assert desk.state.receipts == {}


def test_a_stop_that_was_never_sent_is_sent_after_the_restart_once(desk: Desk, decisions: Decisions) -> None:
    victim, waiting = borrowing(desk)
    preempted(desk, decisions, victim, for_job=waiting)
    runs = [status(job.attempt_id, RUNNING, desk.now) for job in desk.state.snapshot.jobs.values() if job.allocation]
    desk.observe(*TWO_NODES, attempts=runs)
    assert desk.instructions == [], "this server has sent the order already"
    desk.state = desk.loaded()  # killed before it sent the order
    assert desk.state.snapshot.victims_stopping == {waiting.id: {victim.id}}
    desk.observe(*TWO_NODES, attempts=runs)
    assert desk.instructions == [Stop(attempt_id=victim.attempt_id, grace_seconds=victim.grace_seconds)]
    desk.observe(*TWO_NODES, attempts=runs)
    assert desk.instructions == []
    assert len(receipts(desk, victim)) == 1
    assert_state_is_stored(desk)


def test_victim_that_ended_without_a_server_has_a_receipt(desk: Desk, decisions: Decisions) -> None:
    victim, waiting = borrowing(desk)
    preempted(desk, decisions, victim, for_job=waiting)
    desk.state = desk.loaded()
    desk.now += 20.0
    over = status(victim.attempt_id, ENDED, desk.now - 5.0, reason=EndReason.EXIT_CODE, exit_code=0)
    first = status("j-1.1", RUNNING, 1000.0)
    desk.observe(*TWO_NODES, attempts=[over, first])
    assert desk.job(victim.id).state is JobState.QUEUED
    (receipt,) = receipts(desk, victim)
    assert (receipt.ended_at, receipt.saved) == (desk.now - 5.0, None)
    assert undecided(desk.state) == [receipt], "the next server looks for what it saved"
    assert desk.cycle() == [waiting.id]


def test_victim_whose_node_is_lost_has_a_receipt(desk: Desk, decisions: Decisions) -> None:
    victim, waiting = borrowing(desk)
    preempted(desk, decisions, victim, for_job=waiting)
    assert victim.allocation is not None
    lost = victim.allocation.grants[0].node
    left = [item for item in TWO_NODES if item.id != lost]
    desk.now += 30.0
    desk.observe(*left, attempts=[status("j-1.1", RUNNING, 1000.0)])
    back = desk.job(victim.id)
    assert (back.state, back.retries, back.preemptions) == (JobState.QUEUED, 0, 1)
    assert receipts(desk, victim)[0].ended_at == desk.now
    assert_state_is_stored(desk)


@settings(DEAR, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    reload_after=st.sets(st.integers(0, 5)),
    saves=st.booleans(),
    end=st.sampled_from(["exit", "lost", "stopped"]),
)
def test_wherever_it_crashes_the_receipt_ends_the_same(
    fresh_stores: FreshStores, reload_after: set[int], saves: bool, end: str
) -> None:
    """A server that is started anew between any two steps keeps the same receipt as one that never was."""
    decisions = Decisions()
    with pytest.MonkeyPatch.context() as patched, fresh_stores.new() as store:
        patched.setattr(cycle, "schedule", decisions.schedule)
        desk = Desk(store)

        def step(number: int) -> None:
            assert_state_is_stored(desk)
            if number in reload_after:
                desk.state = desk.loaded()

        victim, waiting = borrowing(desk)
        step(0)
        preempted(desk, decisions, victim, for_job=waiting)
        step(1)
        if end == "stopped":
            desk.do(jobs.stop, ROOT, victim.id)
        step(2)
        desk.now += 3.0
        reason = EndReason.NODE_LOST if end == "lost" else EndReason.EXIT_CODE
        desk.hear(desk.job(victim.id), ENDED, reason, exit_code=1)
        step(3)
        desk.do(note_last_saves, [LastSave(job_id=victim.id, attempt=1, at=desk.now - 1.0 if saves else None)])
        step(4)
        desk.cycle()
        step(5)
        (receipt,) = receipts(desk, victim)
        assert (receipt.saved, receipt.ended_at) == (saves, desk.now)
        assert receipt.lost_gpu_seconds == (4.0 if saves else 63.0 * 4)
        assert receipt.is_open == (end != "stopped")
        assert [event.action for event in desk.events()].count("job.preempting") == 1


# -------------------------------------------------------------------------------------------- receipts alone


def test_a_receipt_minds_only_its_own_attempt() -> None:
    receipt = ReceiptRecord(
        at=100.0,
        rule=PreemptionRule.ORDER,
        detail=WHY,
        job_id="j-1",
        job_name="victim",
        user="ann",
        attempt=2,
        for_job="j-2",
        for_job_name="urgent",
        for_user="bob",
        gpu_milli=500,
        work_since=40.0,
        lost_gpu_seconds=30.0,
    )
    later = Job(id="j-1", name="victim", user="ann", state=JobState.QUEUED, attempt=3)
    assert followed(receipt, later, later, Ended(at=200.0, reason=EndReason.LOST)) == receipt
    assert saw_saved(receipt, later, 150.0) == receipt, "it has not ended yet"
    ended = replace(receipt, ended_at=110.0)
    # What was saved after its end is not its own, and the lost work is not negative.
    assert saw_saved(ended, later, 115.0).lost_gpu_seconds == 0.0
    assert saw_saved(ended, later, 30.0).lost_gpu_seconds == 35.0


def test_a_move_is_recorded_and_the_job_goes_on_where_it_was_moved_to(desk: Desk, decisions: Decisions) -> None:
    """TWO_NODES with 4 GPUs each: two small jobs side by side, so that a whole node is free."""
    small, other = desk.started(draft("small", gpus=2), draft("other", gpus=4))
    (waiting,) = desk.submit(draft("large", gpus=4), caller=BOB)
    desk.now += 60.0
    here = desk.job(small.id).allocation
    assert here is not None
    assert other.allocation is not None
    (grant,) = here.grants
    there = next(name for name in desk.state.snapshot.nodes if name != grant.node)
    desk.hear(desk.job(other.id), ENDED, EndReason.EXIT_CODE, exit_code=0)
    node = desk.state.snapshot.nodes[there]
    to = replace(here, grants=(replace(grant, node=there, gpus=tuple(gpu.id for gpu in node.gpus[:2])),))
    decisions.next = [
        Preemption(
            job_id=small.id, for_job=waiting.id, rule=PreemptionRule.MOVE, lost_gpu_seconds=120.0, detail=WHY, to=to
        )
    ]
    decisions.starts_nothing = True
    desk.cycle()
    moving = desk.job(small.id)
    assert (moving.stopping_for, moving.preempted_for) == (EndReason.MOVED, waiting.id)
    assert moving.message.startswith(f"makes room for {waiting.id} (large) of bob")
    assert Stop(attempt_id=small.attempt_id, grace_seconds=small.grace_seconds) in desk.instructions
    desk.now += 5.0
    desk.hear(moving, ENDED, EndReason.EXIT_CODE, exit_code=0)
    back = desk.job(small.id)
    assert (back.state, back.attempt, back.allocation, back.preemptions) == (JobState.STARTING, 2, to, 0)
    assert desk.events()[-1].action == "job.went-on"
    desk.hear(back, RUNNING)
    (receipt,) = receipts(desk, small)
    assert (receipt.rule, receipt.back_at) == (PreemptionRule.MOVE, desk.now)
    assert_state_is_stored(desk)
