"""When a cycle is due, and what becomes of queues whose plan fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from corral.control.live import cycle, planner
from corral.control.live.planner import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, CycleFailed, Planner
from corral.control.live.unit_of_work import Work
from corral.control.ports import Store
from corral.control.scheduling import queues
from corral.core.jobs.backoff import MAX_BACKOFF_SECONDS
from corral.core.model import Job, JobState, Queue
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.plan.plan import Plan
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from tests.unit.control.world import ROOT, Desk, draft

NET_SECONDS = 60.0


class TwoClocks:
    """The system time can be set; the steady clock goes on."""

    def __init__(self) -> None:
        self.system, self.steady = 1000.0, 50.0

    def now(self) -> float:
        return self.system

    def monotonic(self) -> float:
        return self.steady

    def pass_by(self, seconds: float) -> None:
        self.system += seconds
        self.steady += seconds


class Planned:
    """A desk whose cycles are run by a planner."""

    def __init__(self, store: Store) -> None:
        self.clock = TwoClocks()
        self.cycles: list[float] = []
        self.desk = Desk(store)
        self.planner = Planner(self.clock, NET_SECONDS, self.cycles.append)

    @property
    def is_due(self) -> bool:
        return self.planner.is_due(self.desk.state)

    def run(self) -> list[str]:
        """The jobs that start."""
        self.desk.now = self.clock.now()
        before = {job.id for job in self._starting()}
        self.desk.do(self.planner.run)
        return [job.id for job in self._starting() if job.id not in before]

    def fail(self) -> CycleFailed:
        """A cycle that fails, as the controller deals with it."""
        with pytest.raises(CycleFailed) as failure:
            self.run()
        self.planner.failed(self.desk.state, failure.value)
        return failure.value

    def _starting(self) -> list[Job]:
        return [job for job in self.desk.state.snapshot.jobs.values() if job.state is JobState.STARTING]


@pytest.fixture
def planned(store: Store) -> Planned:
    made = Planned(store)
    made.run()
    return made


def failing_for(queue: str) -> Callable[[ClusterSnapshot, float], Plan]:
    def plan(snapshot: ClusterSnapshot, now: float) -> Plan:
        if any(key.queue == queue for key in snapshot.lines):
            raise ZeroDivisionError(f"a bug in the plan of {queue}")
        return schedule(snapshot, now)

    return plan


def test_a_cycle_is_due_after_a_change_and_as_a_safety_net(planned: Planned) -> None:
    assert not planned.is_due
    planned.clock.pass_by(NET_SECONDS - 1)
    assert not planned.is_due
    assert planned.planner.rest_seconds(planned.desk.state) == pytest.approx(1.0)
    planned.clock.pass_by(1)
    assert planned.is_due
    assert planned.planner.rest_seconds(planned.desk.state) == 0.0
    planned.run()
    assert not planned.is_due
    planned.desk.submit(draft("first"))
    assert planned.is_due
    assert planned.run() == ["j-1"]
    assert len(planned.cycles) == 3


def test_a_cycle_is_due_at_the_time_that_the_last_plan_named(planned: Planned) -> None:
    planned.desk.state.plan = Plan(at=planned.clock.now(), wake_at=planned.clock.now() + 10.0)
    assert not planned.is_due
    # The system time may be set meanwhile: it is looked at again before.
    assert planned.planner.rest_seconds(planned.desk.state) == planner.JUMP_SECONDS
    planned.clock.pass_by(10.0)
    assert planned.is_due


@pytest.mark.parametrize("jump", [-7200.0, 7200.0])
def test_a_cycle_is_due_after_the_system_time_was_set(planned: Planned, jump: float) -> None:
    planned.clock.system += jump
    assert planned.is_due
    planned.run()
    assert not planned.is_due


def test_a_system_time_that_is_set_back_makes_no_job_wait_for_longer_than_the_longest_pause(planned: Planned) -> None:
    (job,) = planned.desk.submit(draft("waits"))

    def pause(work: Work) -> None:
        work.jobs.edit(job, replace(job, not_before=work.now + MAX_BACKOFF_SECONDS))

    planned.desk.do(pause)
    planned.run()
    planned.clock.system -= 7200.0
    planned.run()
    assert planned.desk.job(job.id).not_before == planned.clock.now() + MAX_BACKOFF_SECONDS


def test_a_queue_whose_plan_fails_is_left_out_and_the_others_go_on(
    planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned.desk.do(queues.create, ROOT, Queue(name="bad"))
    planned.desk.submit(draft("good-one"), draft("bad-one", queue="bad"))
    with monkeypatch.context() as patched:
        patched.setattr(cycle, "schedule", failing_for("bad"))
        failure = planned.fail()
        assert str(failure) == "ZeroDivisionError: a bug in the plan of bad"
        assert [*planned.desk.state.plan_failures] == ["bad"]
        assert planned.desk.state.plan_failures["bad"].digest == failure.digest
        planned.desk.state.needs_cycle = True
        assert planned.is_due
        assert planned.run() == ["j-1"]
    assert [*planned.desk.state.plan_failures] == ["bad"], "it is still left out"
    planned.clock.pass_by(FIRST_PAUSE_SECONDS)
    assert planned.run() == ["j-2"]
    assert planned.desk.state.plan_failures == {}


def test_without_a_queue_that_fails_alone_nothing_is_planned_for_a_pause_that_grows(
    planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned.desk.submit(draft("first"))
    with monkeypatch.context() as patched:

        def broken(work: Work, *args: object) -> Plan:
            raise RuntimeError("the plan cannot be written")

        patched.setattr(planner, "run_cycle", broken)
        pauses: list[float] = []
        for _ in range(8):
            planned.fail()
            assert [*planned.desk.state.plan_failures] == [""]
            planned.desk.state.needs_cycle = True
            assert not planned.is_due
            begun = planned.clock.steady
            while not planned.is_due:
                planned.clock.pass_by(FIRST_PAUSE_SECONDS)
            pauses.append(planned.clock.steady - begun)
    assert pauses[:4] == [FIRST_PAUSE_SECONDS * factor for factor in (1, 2, 4, 8)]
    assert max(pauses) == LONGEST_PAUSE_SECONDS
    assert planned.run() == ["j-1"]


def test_a_state_that_is_loaded_anew_still_has_the_queues_that_are_left_out(
    planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned.desk.do(queues.create, ROOT, Queue(name="bad"))
    planned.desk.submit(draft("bad-one", queue="bad"))
    monkeypatch.setattr(cycle, "schedule", failing_for("bad"))
    planned.fail()
    loaded = planned.desk.loaded()
    assert loaded.plan_failures == {}
    planned.planner.note(loaded)
    assert [*loaded.plan_failures] == ["bad"]
