"""Turns of the controller: requests share a commit and never harm each other, engines get their orders after it, and a
restart finds everything again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from corral.control.errors import Refusal, Taken
from corral.control.jobs import jobs
from corral.control.live import controller as controller_module
from corral.control.live.controller import Controller
from corral.control.live.state import State
from corral.control.live.unit_of_work import Work
from corral.control.ports import AttemptPhase, Observation, Store
from corral.control.system.policies import Policies
from corral.core.model import EndReason, Job, JobState, NodeState
from corral.core.scheduling.explain.reasons import explain
from corral.core.scheduling.plan.plan import Plan
from corral.stores import open_store
from tests.unit.control.world import (
    ANN,
    NoWorkspace,
    RecordingEngine,
    StillClock,
    draft,
    eventually,
    status,
)
from tests.unit.core.builders import node

RUNNING, ENDED = AttemptPhase.RUNNING, AttemptPhase.ENDED


class House:
    """A controller with its surroundings, and a way to make requests share a turn."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.clock = StillClock()
        self.engine = RecordingEngine()
        self.announced: list[str] = []
        self.controller = self._new()

    def _new(self) -> Controller:
        return Controller(
            store=self.store,
            engines={"local": self.engine},
            clock=self.clock,
            policies=Policies(),
            workspace=NoWorkspace(),
            announce=lambda events: self.announced.extend(event.action for event in events),
            observe_seconds=3600.0,
        )

    def restart(self) -> None:
        self.controller.stop()
        self.controller = self._new()
        self.controller.start()

    def job(self, job_id: str) -> Job:
        with self.store.read() as tx:
            record = tx.jobs.get(job_id)
        assert record is not None
        return record.job

    def together(self, *use_cases: Any) -> list[Future[Any]]:
        """Requests that arrive while the controller is busy, and so share the next turn."""
        go_on, busy = threading.Event(), threading.Event()

        def wait(state: State) -> None:
            busy.set()
            go_on.wait(10)

        occupied = self.controller.inspect(wait)
        assert busy.wait(10)
        answers = [self.controller.execute(use_case) for use_case in use_cases]
        go_on.set()
        occupied.result(10)
        return answers

    def submit(self, *names: str) -> list[Job]:
        answer = self.controller.execute(jobs.submit, ANN, [draft(name) for name in names])
        return [record.job for record in answer.result(10)]

    def launched(self) -> list[str]:
        return [order.attempt_id for order in self.engine.launched]


@pytest.fixture
def house(store: Store) -> Iterator[House]:
    house = House(store)
    house.controller.start()
    yield house
    house.controller.stop()


def test_a_job_goes_through_its_life(house: House) -> None:
    (job,) = house.submit("training")
    eventually(lambda: house.launched() == ["j-1.1"])
    order = house.engine.launched[0]
    assert (order.command, order.instances[0].node, order.instances[0].gpu_indexes) == (
        ("python", "train.py"), "n1", (0,)
    )  # fmt: skip
    assert order.env["CORRAL_JOB_DIR"] == "/jobs/j-1"
    house.engine.report(status("j-1.1", RUNNING, 1001.0))
    eventually(lambda: house.job(job.id).state is JobState.RUNNING)
    house.engine.report(status("j-1.1", ENDED, 1002.0, reason=EndReason.EXIT_CODE, exit_code=0))
    eventually(lambda: house.job(job.id).state is JobState.COMPLETED)
    eventually(lambda: house.engine.forgotten == ["j-1.1"])
    eventually(lambda: "job.completed" in house.announced)


def test_a_bug_in_one_request_harms_no_other_of_its_turn(house: House) -> None:
    def buggy(work: Work) -> None:
        jobs.submit(work, ANN, [draft("half-done")])
        raise ZeroDivisionError("a bug")

    good, bad, refused, other = house.together(
        lambda work: jobs.submit(work, ANN, [draft("good-one")]),
        buggy,
        lambda work: jobs.submit(work, ANN, [draft("no")]),
        lambda work: jobs.submit(work, ANN, [draft("other-one")]),
    )
    assert good.result(10)[0].job.name == "good-one"
    assert other.result(10)[0].job.name == "other-one"
    with pytest.raises(ZeroDivisionError):
        bad.result(10)
    with pytest.raises(Refusal):
        refused.result(10)
    with house.store.read() as tx:
        assert sorted(job.name for job in tx.jobs.live()) == ["good-one", "other-one"]
    eventually(lambda: len(house.launched()) == 2)


def test_two_requests_for_one_name_in_one_turn(house: House) -> None:
    first, second = house.together(
        lambda work: jobs.submit(work, ANN, [draft("same-name")]),
        lambda work: jobs.submit(work, ANN, [draft("same-name")]),
    )
    assert first.result(10)
    with pytest.raises(Taken):
        second.result(10)


def test_a_refusal_after_a_change_undoes_the_change(house: House) -> None:
    def half_way(work: Work) -> None:
        jobs.submit(work, ANN, [draft("half-done")])
        jobs.submit(work, ANN, [draft("half-done")])

    with pytest.raises(Taken):
        house.controller.execute(half_way).result(10)
    with house.store.read() as tx:
        assert tx.jobs.live() == []


def test_a_refusal_without_a_change_loads_nothing_again(house: House) -> None:
    house.submit("training")
    before = house.controller.inspect(lambda state: state).result(10)
    with pytest.raises(Taken):
        house.submit("training")
    assert house.controller.inspect(lambda state: state).result(10) is before


def test_a_failing_read_fails_its_caller_only(house: House) -> None:
    with pytest.raises(ZeroDivisionError):
        house.controller.inspect(lambda state: 1 // 0).result(10)
    assert house.controller.is_alive


def test_a_launch_that_is_refused_ends_the_job_with_the_reason(house: House) -> None:
    house.engine.refusal = "there is no such directory"
    (job,) = house.submit("training")
    eventually(lambda: house.job(job.id).state is JobState.FAILED)
    assert (house.job(job.id).end_reason, house.job(job.id).message) == (
        EndReason.LAUNCH_ERROR,
        "there is no such directory",
    )


def test_a_launch_waits_for_an_engine_that_is_away(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corral.control.live.outbox.RETRY_SECONDS", 0.01)
    house.engine.is_away = True
    house.submit("training")
    message = "its cluster does not take it yet: it is away"
    eventually(lambda: house.job("j-1").message == message)
    why = house.controller.inspect(
        lambda state: explain(state.snapshot, state.plan, state.snapshot.jobs["j-1"], 1000.0)
    )
    assert message in why.result(10).summary
    assert house.launched() == []
    house.engine.is_away = False
    eventually(lambda: house.launched() == ["j-1.1"])
    eventually(lambda: house.job("j-1").message == "")


def test_message_of_a_launch_ends_when_the_job_runs_also_after_a_crash(house: House) -> None:
    house.engine.is_away = True
    house.submit("training")
    eventually(lambda: house.job("j-1").message)
    house.controller.stop()
    house.engine.is_away = False
    house.clock.time += 60.0
    house.restart()
    eventually(lambda: house.launched() == ["j-1.1"])
    house.engine.report(status("j-1.1", RUNNING, 1061.0))
    eventually(lambda: house.job("j-1").state is JobState.RUNNING)
    assert house.job("j-1").message == ""


def test_a_job_that_is_stopped_while_its_engine_is_away_ends_as_stopped_and_is_never_launched(house: House) -> None:
    house.engine.is_away = True
    house.submit("training")
    eventually(lambda: house.job("j-1").message)
    house.controller.execute(jobs.stop, ANN, "j-1").result(10)
    house.engine.is_away = False
    house.clock.time += 60.0
    house.controller.observe_soon()
    eventually(lambda: house.job("j-1").state is JobState.STOPPED)
    assert house.job("j-1").end_reason is EndReason.STOPPED_BY_USER
    house.submit("another-one")
    eventually(lambda: house.launched() == ["j-2.1"])


def test_an_engine_that_cannot_be_observed_keeps_no_server_from_starting_and_is_not_healthy(store: Store) -> None:
    house = House(store)
    foreign = UnicodeDecodeError("utf-8", b"caf\xe9", 3, 4, "unexpected end of data")
    house.engine.failure = foreign
    house.controller.start()
    try:
        health = house.controller.health["local"]
        assert not health.healthy
        assert "unexpected end of data" in health.detail
        house.engine.failure = None
        house.controller.observe_soon()
        eventually(lambda: house.controller.health["local"].healthy)
        house.submit("training")
        eventually(lambda: house.launched() == ["j-1.1"])
        house.engine.failure = foreign
        house.controller.observe_soon()
        eventually(lambda: not house.controller.health["local"].healthy)
    finally:
        house.controller.stop()


def test_an_engine_whose_reports_cannot_be_taken_is_not_healthy(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(work: Work, *args: Any) -> None:
        raise ZeroDivisionError("a bug in reconciling")

    assert house.controller.health["local"].healthy
    with monkeypatch.context() as patched:
        patched.setattr(controller_module, "reconcile", broken)
        house.controller.observe_soon()
        eventually(lambda: "a bug in reconciling" in house.controller.health["local"].detail)
        assert not house.controller.health["local"].healthy
    house.controller.observe_soon()
    eventually(lambda: house.controller.health["local"].healthy)


def test_a_restart_adopts_what_runs_and_launches_what_was_missed(house: House) -> None:
    house.submit("adopted", "missed")
    eventually(lambda: len(house.launched()) == 2)
    house.engine.report(status("j-1.1", RUNNING, 1001.0))
    eventually(lambda: house.job("j-1").state is JobState.RUNNING)
    house.clock.time += 60.0
    house.restart()
    eventually(lambda: house.launched() == ["j-1.1", "j-2.1", "j-2.1"])
    assert house.job("j-1").state is JobState.RUNNING
    assert house.job("j-1").attempt == 1


def test_an_end_while_the_server_was_away_is_found_at_the_start(house: House) -> None:
    house.submit("training")
    eventually(lambda: house.launched() == ["j-1.1"])
    house.controller.stop()
    house.engine.report(status("j-1.1", ENDED, 1500.0, reason=EndReason.EXIT_CODE, exit_code=3))
    house.clock.time += 600.0
    house.restart()
    eventually(lambda: house.job("j-1").state is JobState.FAILED)
    assert house.job("j-1").exit_code == 3


def test_an_orphan_is_stopped(house: House) -> None:
    house.engine.report(status("j-9.1", RUNNING, 900.0))
    house.controller.observe_soon()
    eventually(lambda: house.engine.stopped == [("j-9.1", 0.0)])


def test_an_orphan_is_stopped_where_it_was_seen(store: Store) -> None:
    first, second = RecordingEngine(), RecordingEngine(nodes=(node("m1", gpus=1),))
    controller = Controller(
        store=store,
        engines={"first": first, "second": second},
        clock=StillClock(),
        policies=Policies(),
        workspace=NoWorkspace(),
        observe_seconds=3600.0,
    )
    controller.start()
    try:
        [record] = controller.execute(jobs.submit, ANN, [draft(gpus=4)]).result(10)
        eventually(lambda: [order.attempt_id for order in first.launched] == [f"{record.job.id}.1"])
        for orphan in ("j-9.1", f"{record.job.id}.7"):  # of no job, and of one that runs elsewhere
            second.report(status(orphan, RUNNING, 900.0))
        controller.observe_soon()
        eventually(lambda: {*second.stopped} == {("j-9.1", 0.0), (f"{record.job.id}.7", 0.0)})
        assert first.stopped == []
    finally:
        controller.stop()


def test_a_lost_node_is_looked_for_at_once(house: House) -> None:
    [record] = house.controller.execute(jobs.submit, ANN, [draft(gpus=4)]).result(5)
    job_id = record.job.id
    eventually(lambda: house.engine.launched)
    house.engine.nodes = tuple(replace(one, state=NodeState.DOWN) for one in house.engine.nodes)
    house.engine.report(status(f"{job_id}.1", ENDED, 1001.0, reason=EndReason.NODE_LOST))
    # the next regular look is an hour away
    eventually(lambda: {NodeState.DOWN} == house.controller.inspect(_node_states).result(5))


def _node_states(state: State) -> set[NodeState]:
    return {node.state for node in state.snapshot.nodes.values()}


def test_the_end_of_a_back_off_wakes_the_controller(house: House) -> None:
    house.submit("training")
    eventually(lambda: house.launched() == ["j-1.1"])
    house.engine.report(status("j-1.1", ENDED, 1001.0, reason=EndReason.LOST))
    eventually(lambda: house.job("j-1").state is JobState.QUEUED)
    house.clock.time = house.job("j-1").not_before
    # Nothing but time has passed; any request makes the controller look at the clock.
    house.controller.inspect(lambda state: None).result(10)
    eventually(lambda: house.launched() == ["j-1.1", "j-1.2"])


def test_a_server_that_was_replaced_stops_and_says_so(house: House, store: Store) -> None:
    replacement = open_store(f"sqlite:///{store.describe()['place']}")
    replacement.take_over()
    with pytest.raises(RuntimeError, match="taken over"):
        house.submit("too-late")
    eventually(lambda: house.controller.failure is not None)
    with pytest.raises(RuntimeError, match="stopping"):
        house.submit("later-still")
    replacement.close()


def test_no_caller_waits_for_ever_when_the_controller_stops(house: House) -> None:
    go_on, busy = threading.Event(), threading.Event()

    def wait(state: State) -> None:
        busy.set()
        go_on.wait(10)

    house.controller.inspect(wait)
    assert busy.wait(10)
    late_read = house.controller.inspect(lambda state: "read")
    late_request = house.controller.execute(jobs.submit, ANN, [draft("late-one")])
    stopping = threading.Thread(target=house.controller.stop)
    stopping.start()
    eventually(lambda: not house.controller.is_alive)
    go_on.set()
    stopping.join(10)
    for answer in (late_read, late_request):
        with pytest.raises(RuntimeError, match="stopping"):
            answer.result(1)


def test_a_cycle_that_keeps_failing_does_not_spin(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The safety net runs every now and then; when planning has a bug, it is tried that often and no oftener."""
    tried: list[float] = []

    def broken(work: Work, journal: Any, left_out: Any) -> Plan:
        tried.append(work.now)
        raise ZeroDivisionError("a bug in planning")

    monkeypatch.setattr("corral.control.live.planner.run_cycle", broken)
    house.clock.time += 31.0
    # Reads wake the controller, which looks whether a cycle is due.
    for _ in range(20):
        house.controller.inspect(lambda state: None).result(10)
    assert 1 <= len(tried) <= 2
    assert house.controller.is_alive


class MeetingEngine(RecordingEngine):
    """Answers when all engines are observed at the same moment."""

    def __init__(self, meeting: threading.Barrier) -> None:
        super().__init__(nodes=())
        self._meeting = meeting

    def observe(self) -> Observation:
        self._meeting.wait(20)
        return super().observe()


def test_clusters_are_observed_at_the_same_time_at_the_start(store: Store) -> None:
    """A cluster that does not answer must not add its waiting time to that of others."""
    meeting = threading.Barrier(3)
    controller = Controller(
        store=store,
        engines={name: MeetingEngine(meeting) for name in ("one", "two", "three")},
        clock=StillClock(),
        policies=Policies(),
        workspace=NoWorkspace(),
        observe_seconds=3600.0,
    )
    controller.start()
    try:
        assert {name: health.healthy for name, health in controller.health.items()} == dict.fromkeys(
            ("one", "two", "three"), True
        )
    finally:
        controller.stop()
