"""One cycle of the live system: what it writes, it writes together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.live import cycle
from corral.control.live.cycle import run_cycle
from corral.control.live.journal import JournalWriter, replay
from corral.control.live.state import load_state
from corral.control.live.unit_of_work import Work
from corral.control.ports import AttemptPhase, Store, StoreConflict
from corral.core.jobs.lifecycle import Launch
from corral.core.model import EndReason, JobState
from corral.core.people.scores import Score, change_usage, score_at
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.plan.plan import Plan
from corral.core.scheduling.plan.plan_check import PlanRejected
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.journal import digest_of
from tests.unit.control.world import BOB, Desk, draft

#: the time constant of scores
T = 6 * 3600.0


def test_a_start_writes_allocation_attempt_score_and_journal(desk: Desk) -> None:
    (job,) = desk.submit(draft("training", gpus=2))
    assert desk.cycle() == [job.id]
    stored = desk.job(job.id)
    assert stored.state is JobState.STARTING
    assert stored.allocation is not None
    with desk.store.read() as tx:
        (attempt,) = tx.attempts.of_job(job.id)
        assert (attempt.allocation, attempt.planned_at) == (stored.allocation, desk.now)
        assert tx.scores.all()["ann", "A10"].usage == 2.0
        (cycle,) = tx.cycles.since_base()
        assert [item.decided == item.recorded for item in replay([cycle])] == [True]
    assert desk.instructions == [Launch(attempt_id=f"{job.id}.1")]
    assert desk.actions(job.id) == ["job.submitted", "job.planned"]


def test_a_crash_before_the_commit_leaves_nothing(desk: Desk) -> None:
    desk.submit(draft("training", gpus=2))
    before = digest_of(desk.state.snapshot.contents())

    def crash(work: Work) -> None:
        assert run_cycle(work, desk.journal).starts
        work.flush()
        raise RuntimeError("the power is gone")

    with pytest.raises(RuntimeError, match="power"):
        desk.do(crash)
    with desk.store.read() as tx:
        assert tx.attempts.of_job("j-1") == []
        assert tx.scores.all() == {}
        assert tx.cycles.since_base() == []
    assert desk.job("j-1").state is JobState.QUEUED
    assert digest_of(desk.loaded().snapshot.contents()) == before
    assert desk.cycle() == ["j-1"], "the next turn decides it anew"
    with desk.store.read() as tx:
        assert [cycle.is_base for cycle in tx.cycles.since_base()] == [True]


def test_a_plan_that_contradicts_itself_is_dropped_as_a_whole(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.submit(draft("training", gpus=2), draft("another", gpus=1))

    def twice(snapshot: ClusterSnapshot, now: float) -> Plan:
        plan = schedule(snapshot, now)
        return replace(plan, starts=(*plan.starts, plan.starts[0]))

    digest = digest_of(desk.state.snapshot.contents())
    with monkeypatch.context() as patched:
        patched.setattr(cycle, "schedule", twice)
        with pytest.raises(PlanRejected) as rejected:
            desk.cycle()
    assert rejected.value.digest == digest
    assert "j-1 is started and started" in rejected.value.problems
    assert [desk.job(name).state for name in ("j-1", "j-2")] == [JobState.QUEUED, JobState.QUEUED]
    with desk.store.read() as tx:
        assert tx.cycles.since_base() == []
    assert desk.cycle() == ["j-1", "j-2"], "the next plan is a good one"


def test_the_journal_of_a_busy_day_replays(desk: Desk) -> None:
    """Submissions, ends, failures and a restart in the middle."""
    for round_number in range(6):
        desk.submit(draft(f"ann-{round_number}", gpus=3), draft(f"gang-{round_number}", gpus=2, nodes=2))
        desk.submit(draft(f"bob-{round_number}", gpus=1), caller=BOB)
        desk.cycle()
        desk.now += 30.0
        for job in [job for job in desk.state.snapshot.jobs.values() if job.state.holds_resources][:2]:
            reason = EndReason.LOST if round_number % 2 else EndReason.EXIT_CODE
            desk.hear(job, AttemptPhase.ENDED, reason, exit_code=0)
        desk.cycle()
        if round_number == 3:
            desk.state, desk.journal = desk.loaded(), JournalWriter()
    with desk.store.read() as tx:
        cycles = tx.cycles.since_base()
    assert cycles[0].is_base
    assert len(cycles) > 1
    assert all(item.decided == item.recorded for item in replay(cycles))


def test_the_state_in_memory_is_always_what_the_store_has(desk: Desk) -> None:
    first, second = desk.started(draft("first", gpus=4), draft("second", gpus=4))
    desk.submit(draft("third", gpus=4))
    desk.hear(first, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    desk.now += 100.0
    desk.cycle()
    loaded = desk.loaded()
    assert loaded.snapshot.jobs == desk.state.snapshot.jobs
    assert loaded.snapshot.scores == desk.state.snapshot.scores
    assert loaded.snapshot.last_node == desk.state.snapshot.last_node
    assert digest_of(loaded.snapshot.contents()) == digest_of(desk.state.snapshot.contents())
    assert second.id in loaded.snapshot.jobs


def test_the_score_follows_what_is_held(desk: Desk) -> None:
    (job,) = desk.started(draft("training", gpus=4))
    desk.now += 24 * 3600.0
    desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    score = desk.loaded().snapshot.scores["ann", "A10"]
    assert score.usage == 0.0
    assert 4 * 0.98 < score.value < 4.0
    assert score_at(score, desk.now + 6 * 3600.0, 6 * 3600.0) == pytest.approx(score.value / 2.718281828)


def test_a_job_that_ended_while_no_server_ran_is_charged_up_to_its_end(desk: Desk) -> None:
    (job,) = desk.started(draft("training", gpus=4))
    began = desk.state.snapshot.scores["ann", "A10"].at
    desk.now += 48 * 3600.0
    desk.state = desk.loaded()
    ended_at = began + 3600.0
    desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0, at=ended_at)
    score = desk.loaded().snapshot.scores["ann", "A10"]
    charged = change_usage(change_usage(Score(), 4.0, began, T), -4.0, ended_at, T)
    assert score.usage == 0.0
    assert score.value == pytest.approx(score_at(charged, desk.now, T))


def test_running_jobs_without_a_score_are_charged_from_their_begin(desk: Desk, store: Store) -> None:
    (job,) = desk.started(draft("training", gpus=4))
    score = desk.state.snapshot.scores["ann", "A10"]
    with store.write() as tx:
        tx.scores.save({("ann", "A10"): Score(at=0.0)})
    desk.now += 6 * 3600.0
    desk.state = desk.loaded()
    assert desk.state.snapshot.scores["ann", "A10"] == score
    desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    with store.read() as tx:
        stored = tx.scores.all()["ann", "A10"]
    assert stored.usage == 0.0, "not below zero"
    assert stored.value == pytest.approx(4 * (1 - 2.718281828**-1), rel=1e-3)


def test_two_servers_cannot_both_write(desk: Desk, store: Store) -> None:
    """A snapshot that the other side has changed since is never overwritten."""
    (job,) = desk.submit(draft("training"))
    with store.read() as tx:
        stale = load_state(tx, desk.policies)
    desk.cycle()
    desk.state = stale
    with pytest.raises(StoreConflict):
        desk.do(run_cycle, JournalWriter())
    assert desk.job(job.id).attempt == 1
    with store.read() as tx:
        assert len(tx.attempts.of_job(job.id)) == 1
