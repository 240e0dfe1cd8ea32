"""Keeping estimated starts current beside a controller that goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.control.jobs.jobs import delete, stop, submit
from corral.control.live.controller import Controller
from corral.control.ports import AttemptPhase, Store
from corral.control.records import EventFilter
from corral.control.scheduling.estimates import Expectations
from corral.control.system.policies import Policies
from corral.core.model import EndReason, Job, JobState, Node
from corral.core.scheduling.forecast.accuracy import PastEstimate
from corral.core.scheduling.forecast.estimates import Estimate, Forecast
from corral.core.snapshot.replica import copy_of
from corral.server.scheduling.estimate_worker import LONGEST_SECONDS, EstimateWorker
from corral.stores.jobs.job_directories import DirectoryWorkspace
from tests.unit.control.world import ANN, RecordingEngine, StillClock, draft, eventually, status
from tests.unit.core.builders import node, snapshot_of, waiting

HOUR = 3600.0


class Watched:
    def __init__(self, store: Store, root: Path) -> None:
        self.store = store
        self.clock = StillClock(10_000.0)
        nodes: tuple[Node, ...] = (node("n1", 2),)
        self.engine = RecordingEngine(nodes)
        self.controller = Controller(
            store=store,
            engines={"local": self.engine},
            clock=self.clock,
            policies=Policies(),
            workspace=DirectoryWorkspace(root),
            observe_seconds=3600.0,
            tidy_seconds=3600.0,
        )
        self.controller.start()
        self.announced: list[float] = []
        self.estimating = self.new()

    def new(self) -> EstimateWorker:
        return EstimateWorker(
            controller=self.controller, store=self.store, clock=self.clock, announce=self.announced.append
        )

    def submit(self, name: str, gpus: int = 2, hours: float = 1.0) -> str:
        wanted = draft(name, gpus=gpus, time_limit_seconds=hours * HOUR)
        (record,) = self.controller.execute(submit, ANN, [wanted]).result(10)
        job_id: str = record.job.id
        return job_id

    def end(self, job_id: str) -> None:
        self.engine.report(status(f"{job_id}.1", AttemptPhase.RUNNING, self.clock.time))
        over = status(f"{job_id}.1", AttemptPhase.ENDED, self.clock.time, reason=EndReason.EXIT_CODE, exit_code=0)
        self.engine.report(over)
        eventually(lambda: self.job(job_id).state is JobState.COMPLETED)

    def job(self, job_id: str) -> Job:
        with self.store.read() as tx:
            record = tx.jobs.get(job_id)
        assert record is not None
        return record.job

    def kept(self) -> list[PastEstimate]:
        self.controller.execute(lambda work: None).result(10)
        with self.store.read() as tx:
            return tx.estimates.latest(100)


@pytest.fixture
def watched(store: Store, tmp_path: Path) -> Iterator[Watched]:
    watched = Watched(store, tmp_path)
    yield watched
    watched.estimating.stop()
    watched.controller.stop()


def test_a_waiting_job_has_an_estimate_and_a_running_one_has_none(watched: Watched) -> None:
    first, second = watched.submit("first"), watched.submit("second")
    watched.estimating.look()
    assert watched.estimating.of(watched.job(first)) is None
    expected = watched.estimating.of(watched.job(second))
    assert expected is not None
    assert expected.made_at == watched.clock.time < expected.estimate.p50 <= expected.estimate.p90
    assert watched.announced == [watched.clock.time]


def test_nothing_is_worked_out_again_until_something_changes_or_it_is_old(watched: Watched) -> None:
    watched.submit("first")
    watched.submit("second")
    assert watched.estimating.look() > 0
    assert watched.estimating.look() == 0
    watched.submit("third")
    assert watched.estimating.look() > 0
    watched.clock.time += LONGEST_SECONDS
    assert watched.estimating.look() > 0
    assert len(watched.announced) == 3


def test_outcome_of_an_estimate_is_stored(watched: Watched) -> None:
    first, second = watched.submit("first"), watched.submit("second")
    watched.estimating.look()
    [expected] = watched.kept()
    assert (expected.job_id, expected.attempt, expected.user, expected.started_at) == (second, 1, "ann", None)
    watched.clock.time += 600.0
    watched.end(first)
    eventually(lambda: watched.job(second).state is not JobState.QUEUED)
    watched.estimating.look()
    [settled] = watched.kept()
    assert settled.wait_seconds == 600.0
    assert watched.estimating.of(watched.job(second)) is None


def test_estimate_of_a_job_that_never_starts_is_withdrawn(watched: Watched) -> None:
    watched.submit("first")
    second, third = watched.submit("second"), watched.submit("third")
    watched.estimating.look()
    assert {one.job_id for one in watched.kept()} == {second, third}
    for job_id in (second, third):
        watched.controller.execute(stop, ANN, job_id).result(10)
    watched.controller.execute(delete, ANN, third).result(10)
    watched.estimating.look()
    assert watched.kept() == []


def test_nearer_estimates_are_kept_beside_the_first(watched: Watched) -> None:
    """An estimate is stored hours before the start, and again when it is less than an hour away."""
    first = watched.submit("first", hours=4.0)
    watched.engine.report(status(f"{first}.1", AttemptPhase.RUNNING, watched.clock.time))
    eventually(lambda: watched.job(first).state is JobState.RUNNING)
    second = watched.submit("second")
    watched.estimating.look()
    for _ in range(5):
        watched.clock.time += LONGEST_SECONDS
        watched.estimating.look()
    assert len(watched.kept()) == 1
    watched.clock.time += 3.7 * HOUR
    watched.estimating.look()
    kept = watched.kept()
    assert [one.job_id for one in kept] == [second, second]
    assert kept[0].p50 - kept[0].made_at > HOUR > kept[1].p50 - kept[1].made_at


def test_the_next_server_goes_on_where_this_one_stopped(watched: Watched) -> None:
    first, second = watched.submit("first"), watched.submit("second")
    watched.estimating.look()
    watched.end(first)
    eventually(lambda: watched.job(second).state is not JobState.QUEUED)
    following = watched.new()
    following.start()
    following.stop()
    following.look()
    [settled] = watched.kept()
    assert settled.started_at is not None


def test_start_of_a_further_job_is_estimated(watched: Watched) -> None:
    watched.submit("first")
    second = watched.submit("second")
    watched.estimating.look()
    known = watched.estimating.of(watched.job(second))
    assert known is not None
    snapshot = watched.controller.inspect(lambda state: copy_of(state.snapshot)).result(10)
    job = watched.job(second)
    later = Job(
        id="j-999",
        name="more",
        user="ann",
        state=JobState.QUEUED,
        queue=job.queue,
        request=job.request,
        created_at=watched.clock.time,
        queued_at=watched.clock.time,
        time_limit_seconds=HOUR,
    )
    found = watched.estimating.estimate_new_job(snapshot, later, watched.clock.time)
    assert found is not None
    assert found.p50 > known.estimate.p50
    assert watched.estimating.of(watched.job(second)) == known


def noted(watched: Watched) -> list[tuple[str, str]]:
    """The events about changed estimates, the oldest first."""
    watched.controller.execute(lambda work: None).result(10)
    with watched.store.read() as tx:
        page = tx.events.page(EventFilter(owner="ann"), cursor=None, limit=100)
    return [(event.action, event.subject) for event in page.items[::-1] if event.action.startswith("job.starts-")]


def test_the_owner_hears_of_a_start_that_moved_much_but_not_of_every_job_and_not_often(watched: Watched) -> None:
    first = watched.submit("first", hours=5.0)
    second, third = watched.submit("second"), watched.submit("third")
    watched.estimating.look()
    # Some minutes are not much.
    watched.clock.time += 600.0
    watched.estimating.look()
    assert noted(watched) == []
    # The first one ends hours before it had to: both start earlier, the owner hears of one.
    watched.end(first)
    eventually(lambda: watched.job(second).state is not JobState.QUEUED)
    watched.estimating.look()
    assert noted(watched) == [("job.starts-earlier", third)]
    # What is known by now is compared from now on.
    watched.clock.time += LONGEST_SECONDS
    watched.estimating.look()
    assert len(noted(watched)) == 1


def test_owner_hears_of_the_largest_change_and_again_only_after_an_hour() -> None:
    expectations = Expectations()
    snapshot = copy_of(snapshot_of(waiting(1), waiting(2), waiting(3, user="bob")))

    def see(at: float, **hours: float) -> list[tuple[str, float]]:
        starts = {name.replace("_", "-"): value * HOUR for name, value in hours.items()}
        estimates = {name: Estimate(p50=p50, p90=p50, raw_p50=p50, raw_p90=p50) for name, p50 in starts.items()}
        return [
            (one.job_id, round((one.after - one.before) / HOUR, 2))
            for one in expectations.see(Forecast(at=at, estimates=estimates), snapshot)
        ]

    assert see(0.0, j_1=1, j_2=2, j_3=10) == []
    # 4 of 10 hours are less than a half.
    assert see(0.0, j_1=3, j_2=5, j_3=14) == [("j-2", 3.0)]
    assert see(0.0, j_1=4, j_2=9, j_3=4) == [("j-3", -6.0)]
    assert see(HOUR, j_1=3, j_2=4) == [("j-1", 2.0)]
    # A wait that is over and begins again has a first estimate of its own.
    assert see(2 * HOUR) == []
    assert see(9 * HOUR, j_2=0) == []
