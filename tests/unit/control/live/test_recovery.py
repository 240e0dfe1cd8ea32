"""The controller goes on: whatever a plan, a request or the store does, nothing that was accepted is lost, nothing that
was refused is there, and nothing happens twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from corral.control.alerts.facts import look
from corral.control.jobs import jobs
from corral.control.live import cycle
from corral.control.live.controller import Controller
from corral.control.live.journal import replay
from corral.control.live.unit_of_work import Work
from corral.control.ports import AttemptPhase, OutcomeUnknown, Store, StoreUnavailable, Transaction
from corral.control.records import EventRecord
from corral.control.scheduling import queues
from corral.control.system.policies import Policies
from corral.core.model import EndReason, JobState, Queue
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from tests.unit.control.live.test_controller import House
from tests.unit.control.world import ANN, ROOT, NoWorkspace, WrappedStore, draft, eventually, status


class FlakyStore(WrappedStore):
    """A real store that goes away when a test says so: before a write, or around its commit."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.is_away = False
        self.is_read_only = False
        #: what happens to the next commit that wrote an event
        self.commit: str = ""

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        if self.is_away or self.is_read_only:
            raise StoreUnavailable("it is away")
        with self._store.write() as tx:
            before = tx.events.last_id()
            yield tx
            has_events = tx.events.last_id() > before
            if self.commit == "lost" and has_events:
                self.is_away = True
                raise StoreUnavailable("the connection was lost before the commit")
        if self.commit == "unheard" and has_events:
            self.is_away = True
            raise StoreUnavailable("the connection was lost after the commit")

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        if self.is_away:
            raise StoreUnavailable("it is away")
        with self._store.read() as tx:
            yield tx


class FlakyHouse(House):
    def __init__(self, store: Store) -> None:
        self.flaky = FlakyStore(store)
        super().__init__(store)

    def _new(self) -> Controller:
        return Controller(
            store=self.flaky,
            engines={"local": self.engine},
            clock=self.clock,
            policies=Policies(),
            workspace=NoWorkspace(),
            announce=self._announce,
            observe_seconds=3600.0,
        )

    def _announce(self, events: Any) -> None:
        self.announced.extend(event.action for event in events)

    def names(self) -> list[str]:
        with self.store.read() as tx:
            return sorted(job.name for job in tx.jobs.live())


@pytest.fixture
def house(store: Store) -> Iterator[FlakyHouse]:
    house = FlakyHouse(store)
    house.controller.start()
    yield house
    house.controller.stop()


def broken_for(queue: str) -> Callable[[ClusterSnapshot, float], Any]:
    def broken(snapshot: ClusterSnapshot, now: float) -> Any:
        if any(key.queue == queue for key in snapshot.lines):
            raise KeyError("a bug in planning")
        return schedule(snapshot, now)

    return broken


def test_a_queue_that_cannot_be_planned_keeps_no_other_waiting(
    house: FlakyHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.controller.execute(queues.create, ROOT, Queue(name="other")).result(10)
    with monkeypatch.context() as patched:
        patched.setattr(cycle, "schedule", broken_for("other"))
        bad, good = house.together(
            lambda work: jobs.submit(work, ANN, [draft("poisoned", queue="other")]),
            lambda work: jobs.submit(work, ANN, [draft("healthy-one")]),
        )
        assert good.result(10)
        assert bad.result(10), "it is committed, and only not planned"
        eventually(lambda: house.launched() == ["j-2.1"])
        seen = house.controller.inspect(look, 1000.0).result(10)
        words = {queue.id: queue.plan_failure for queue in seen.queues}
        assert words["default"] == ""
        assert "a bug in planning" in words["other"]
        assert "snapshot" in words["other"]
        # What others ask for goes on.
        house.submit("healthy-two")
        eventually(lambda: house.launched() == ["j-2.1", "j-3.1"])
    house.clock.time += 31.0
    house.controller.inspect(lambda state: None).result(10)
    eventually(lambda: "j-1.1" in house.launched())
    assert not house.controller.inspect(lambda state: state.plan_failures).result(10)
    with house.store.read() as tx:
        replayed = list(replay(tx.cycles.since_base()))
    assert [one.recorded for one in replayed] == [one.decided for one in replayed]


def test_without_any_plan_requests_and_reports_are_committed(
    house: FlakyHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(work: Work, *args: Any) -> Any:
        raise RecursionError("a bug after planning")

    monkeypatch.setattr("corral.control.live.planner.run_cycle", broken)
    (job,) = house.submit("accepted")
    assert house.job(job.id).state is JobState.QUEUED
    seen = house.controller.inspect(look, 1000.0).result(10)
    assert "a bug after planning" in seen.queues[0].plan_failure
    house.controller.execute(jobs.stop, ANN, job.id).result(10)
    assert house.job(job.id).state is JobState.STOPPED


def test_while_the_store_is_away_everything_is_refused_and_afterwards_it_goes_on(house: FlakyHouse) -> None:
    house.submit("before")
    house.flaky.is_away = True
    with pytest.raises(StoreUnavailable):
        house.submit("refused")
    eventually(lambda: house.controller.outage)
    with pytest.raises(StoreUnavailable):
        house.controller.inspect(lambda state: None).result(10)
    assert house.controller.is_alive
    house.flaky.is_away = False
    eventually(lambda: not house.controller.outage)
    house.submit("after")
    assert house.names() == ["after", "before"]
    eventually(lambda: house.launched() == ["j-1.1", "j-2.1"])


def test_a_store_that_can_only_be_read_is_shown(house: FlakyHouse) -> None:
    house.submit("before")
    house.flaky.is_read_only = True
    with pytest.raises(StoreUnavailable):
        house.submit("refused")
    eventually(lambda: _count(house) == 1)
    assert house.controller.outage
    house.flaky.is_read_only = False
    eventually(lambda: not house.controller.outage)
    house.submit("after")


def _count(house: FlakyHouse) -> int:
    try:
        return house.controller.inspect(lambda state: len(state.snapshot.jobs)).result(10)
    except StoreUnavailable:
        return -1


@pytest.mark.parametrize("commit", ["lost", "unheard"])
def test_a_commit_that_was_cut_short_is_looked_up(house: FlakyHouse, commit: str) -> None:
    house.flaky.commit = commit
    answer = house.controller.execute(jobs.submit, ANN, [draft("perhaps")])
    eventually(lambda: house.controller.outage)
    assert not answer.done()
    assert house.launched() == []
    house.flaky.commit, house.flaky.is_away = "", False
    if commit == "lost":
        with pytest.raises(StoreUnavailable):
            answer.result(10)
        assert house.names() == []
    else:
        assert answer.result(10)[0].job.name == "perhaps"
        eventually(lambda: house.launched() == ["j-1.1"])
        assert house.announced.count("job.submitted") == 1
    house.submit("after")
    assert "after" in house.names()


def test_a_request_that_waits_too_long_has_an_unknown_outcome(house: FlakyHouse) -> None:
    house.flaky.commit = "unheard"
    answer = house.controller.execute(jobs.submit, ANN, [draft("perhaps")])
    eventually(lambda: house.controller.outage)
    house.clock.time += 11.0
    with pytest.raises(OutcomeUnknown):
        answer.result(10)
    house.flaky.commit, house.flaky.is_away = "", False
    # Perhaps by two ways, which is one launch.
    eventually(lambda: set(house.launched()) == {"j-1.1"})


def test_an_announcement_that_fails_harms_no_job(house: FlakyHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(events: list[EventRecord]) -> None:
        raise ZeroDivisionError("a bug in a follower")

    monkeypatch.setattr(house.controller, "_announce", broken)
    house.submit("one-job")
    house.submit("two-job")
    eventually(lambda: len(house.launched()) == 2)


def test_a_launch_that_cannot_be_prepared_fails_alone(house: FlakyHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    def env(job_id: str) -> dict[str, str]:
        if job_id == "j-1":
            raise OSError(40, "Too many levels of symbolic links")
        return {}

    monkeypatch.setattr(house.controller._workspace, "env", env)
    house.submit("trapped", "healthy")
    eventually(lambda: house.launched() == ["j-2.1"])
    eventually(lambda: house.job("j-1").state is JobState.FAILED)
    assert "symbolic links" in house.job("j-1").message


def test_a_damaged_row_is_left_out_and_named_and_its_job_runs_on(house: FlakyHouse) -> None:
    house.submit("damaged", "healthy")
    eventually(lambda: house.launched() == ["j-1.1", "j-2.1"])
    for attempt in ("j-1.1", "j-2.1"):
        house.engine.report(status(attempt, AttemptPhase.RUNNING, 1001.0))
    eventually(lambda: house.job("j-2").state is JobState.RUNNING)
    with sqlite3.connect(house.store.describe()["place"]) as database:
        database.execute("UPDATE jobs SET body = '{\"request\"' WHERE id = 1")
    house.restart()
    assert house.controller.is_alive
    seen = house.controller.inspect(look, 1000.0).result(10)
    (row,) = seen.rows
    assert row.id == "jobs 1"
    assert house.engine.stopped == [], "a job does not end because its row is damaged"
    # No other job gets its GPU: seven of the eight GPUs are left, and one of them is held.
    for number in range(8):
        house.submit(f"another-{number}")
    eventually(lambda: len(set(house.launched())) == 8)
    used = [(i.node, g) for order in house.engine.launched for i in order.instances for g in i.gpu_indexes]
    assert len(used) == len(set(used))
    # Once it has ended, its GPUs are free.
    house.engine.report(status("j-1.1", AttemptPhase.ENDED, 1002.0, reason=EndReason.EXIT_CODE, exit_code=0))
    eventually(lambda: "j-1.1" in house.engine.forgotten)
    house.controller.observe_soon()
    eventually(lambda: len(set(house.launched())) == 9)
