"""Finished jobs and events that are too old or too many go, in batches and without losing track of their files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import event

from corral.control.jobs.jobs import start, submit
from corral.control.live.controller import Controller
from corral.control.live.state import State
from corral.control.ports import AttemptPhase, Store
from corral.control.records import EventFilter
from corral.control.system import retention
from corral.control.system.policies import Policies
from corral.control.system.retention import RetentionRules
from corral.core.model import EndReason, Job, JobState
from corral.server.system import retention_worker as worker
from corral.server.system.retention_worker import Retention
from corral.stores.database.store import SqlStore
from corral.stores.jobs.job_directories import DirectoryWorkspace
from tests.unit.control.world import ANN, RecordingEngine, StillClock, draft, eventually, status

DAY = 86400.0
#: Statements that a job without anything special takes from its submission to its end, all of them together. More of
#: them would make every job slower.
STATEMENTS_PER_JOB = 30


class House:
    def __init__(self, store: Store, root: Path) -> None:
        self.store = store
        self.clock = StillClock(1000 * DAY)
        self.engine = RecordingEngine()
        self.workspace = DirectoryWorkspace(root)
        self.controller = Controller(
            store=store,
            engines={"local": self.engine},
            clock=self.clock,
            policies=Policies(),
            workspace=self.workspace,
            observe_seconds=3600.0,
            tidy_seconds=3600.0,
        )
        self.controller.start()

    def has_launched(self, attempt_id: str) -> bool:
        return attempt_id in [order.attempt_id for order in self.engine.launched]

    def has_forgotten(self, attempt_id: str) -> bool:
        return attempt_id in self.engine.forgotten

    def is_running(self, job_id: str) -> bool:
        return self.controller.inspect(_state_of, job_id).result(10) == "running"

    def ended(self, name: str) -> str:
        """A job that has run."""
        (record,) = self.controller.execute(submit, ANN, [draft(name, gpus=1)]).result(10)
        self.run(record.job.id, 1)
        return str(record.job.id)

    def run(self, job_id: str, attempt: int) -> None:
        attempt_id = f"{job_id}.{attempt}"
        eventually(partial(self.has_launched, attempt_id))
        self.engine.report(status(attempt_id, AttemptPhase.RUNNING, self.clock.time))
        self.engine.report(
            status(attempt_id, AttemptPhase.ENDED, self.clock.time, reason=EndReason.EXIT_CODE, exit_code=0)
        )
        eventually(lambda: (job := self.job(job_id)) is not None and job.state is JobState.COMPLETED)

    def job(self, job_id: str) -> Job | None:
        with self.store.read() as tables:
            record = tables.jobs.get(job_id)
        return None if record is None else record.job

    def jobs(self) -> list[str]:
        with self.store.read() as tables:
            return [record.job.name for record in tables.jobs.ended(None, 1000)]

    def retention(self, **rules: float | None) -> Retention:
        limits = {"job_seconds": None, "job_count": None, "event_seconds": None, **rules}
        return Retention(
            controller=self.controller,
            store=self.store,
            engines={"local": self.engine},
            workspace=self.workspace,
            rules=RetentionRules(**limits),  # type: ignore[arg-type]
            clock=self.clock,
            pause=lambda seconds: None,
        )


@pytest.fixture
def house(store: Store, tmp_path: Path) -> Iterator[House]:
    made = House(store, tmp_path)
    yield made
    made.controller.stop()


def test_jobs_that_are_too_old_go_with_their_files(house: House) -> None:
    old = house.ended("older")
    home = house.workspace.home(old)
    (house.workspace.output_dir(old) / "result").write_text("42")
    house.clock.time += 200 * DAY
    young = house.ended("young")
    house.clock.time += 200 * DAY
    house.retention(job_seconds=365 * DAY).tidy()
    assert house.jobs() == ["young"]
    assert not home.exists()
    assert house.workspace.home(young).exists()
    assert house.engine.forgotten.count(f"{old}.1") == 2, "with its end, and with its files"
    with house.store.read() as tables:
        events = tables.events.page(EventFilter(action="jobs.expired"), cursor=None, limit=10).items
    assert [found.detail["jobs"] for found in events] == [[old]]


def test_jobs_beyond_the_number_go_and_the_oldest_first(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "BATCH", 2)
    monkeypatch.setattr(worker, "_PAGE", 3)
    for number in range(7):
        house.ended(f"work-{number}")
    house.retention(job_count=2).tidy()
    assert house.jobs() == ["work-5", "work-6"]


def test_jobs_go_until_the_rest_is_small_enough(house: House) -> None:
    for number in range(4):
        job_id = house.ended(f"work-{number}")
        (house.workspace.output_dir(job_id) / "result").write_bytes(b"x" * 1_000_000)
    house.retention(job_bytes=2_500_000).tidy()
    assert house.jobs() == ["work-2", "work-3"]


def test_a_kept_job_stays_until_it_is_let_go(house: House) -> None:
    kept, other = house.ended("kept"), house.ended("other")
    house.controller.execute(retention.keep, ANN, kept).result(10)
    house.controller.execute(retention.keep, ANN, kept).result(10)
    house.clock.time += 400 * DAY
    tidying = house.retention(job_seconds=365 * DAY, job_count=1)
    tidying.tidy()
    assert house.jobs() == ["kept"]
    assert house.job(other) is None
    house.controller.execute(retention.stop_keeping, ANN, kept).result(10)
    tidying.tidy()
    assert house.jobs() == []


def test_job_that_was_started_again_stays(house: House) -> None:
    job_id = house.ended("again")
    house.controller.execute(start, ANN, job_id).result(10)
    assert house.controller.execute(retention.drop, [job_id]).result(10) == 0
    assert house.job(job_id) is not None


def test_a_crash_between_rows_and_files_leaves_no_files(house: House) -> None:
    job_id = house.ended("older")
    home = house.workspace.home(job_id)
    assert house.controller.execute(retention.drop, [job_id]).result(10) == 1
    assert home.exists(), "the server dies here"
    house.retention().tidy()
    assert not home.exists()
    with house.store.read() as tables:
        assert retention.files_to_remove(tables) == {}


def test_a_job_whose_files_cannot_be_removed_holds_up_no_other(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = [house.ended(name) for name in ("first", "second", "third")]
    forget = house.engine.forget

    def refuses_one(attempt_ids: Sequence[str], *, delete_logs: bool = False) -> None:
        if f"{jobs[1]}.1" in attempt_ids:
            raise IsADirectoryError(21, "Is a directory")
        forget(attempt_ids, delete_logs=delete_logs)

    monkeypatch.setattr(house.engine, "forget", refuses_one)
    house.clock.time += 400 * DAY
    tidying = house.retention(job_seconds=365 * DAY)
    tidying.tidy()
    assert house.jobs() == []
    assert [house.workspace.home(one).exists() for one in jobs] == [False, True, False]
    assert f"the files of job {jobs[1]} cannot be removed, trying again later: [Errno 21]" in caplog.text
    with house.store.read() as tables:
        assert list(retention.files_to_remove(tables)) == [jobs[1]]
    monkeypatch.undo()
    tidying.tidy()
    assert not house.workspace.home(jobs[1]).exists()


def test_old_events_go_in_batches(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "EVENT_BATCH", 2)
    for number in range(3):
        house.ended(f"work-{number}")
    house.clock.time += 500 * DAY
    house.ended("young")
    house.retention(event_seconds=400 * DAY).tidy()
    with house.store.read() as tables:
        left = tables.events.after(0, 1000)
    assert left
    assert min(found.at for found in left) >= house.clock.time - 400 * DAY


def test_directories_of_a_job_that_left_nothing_go_unless_it_is_launched_again(house: House) -> None:
    workspace = house.workspace
    empty, full = house.ended("empty"), house.ended("full")
    (workspace.output_dir(full) / "result").write_text("42")
    before = workspace.launches([empty, full])
    workspace.prepare(empty)
    workspace.fold(before)
    assert workspace.output_dir(empty).is_dir(), "it was launched again since"
    assert (workspace.output_dir(full) / "result").read_text() == "42"
    workspace.fold(workspace.launches([empty]))
    assert not workspace.home(empty).exists()


def test_a_job_takes_no_more_statements_than_before(house: House) -> None:
    assert isinstance(house.store, SqlStore)
    house.ended("first")
    count = _counting(house.store)
    jobs = 10
    for number in range(jobs):
        (record,) = house.controller.execute(submit, ANN, [draft(f"work-{number}", gpus=1)]).result(10)
        attempt_id = f"{record.job.id}.1"
        eventually(partial(house.has_launched, attempt_id))
        house.engine.report(status(attempt_id, AttemptPhase.RUNNING, house.clock.time))
        eventually(partial(house.is_running, record.job.id))
        end = status(attempt_id, AttemptPhase.ENDED, house.clock.time, reason=EndReason.EXIT_CODE, exit_code=0)
        house.engine.report(end)
        eventually(partial(house.has_forgotten, attempt_id))
    assert count() / jobs <= STATEMENTS_PER_JOB


def _state_of(state: State, job_id: str) -> str:
    return state.snapshot.jobs[job_id].state


def _counting(store: SqlStore) -> Callable[[], int]:
    """How many statements were run since, by all connections."""
    seen = 0

    def counted(*_: object) -> None:
        nonlocal seen
        seen += 1

    for engine in (store._database.writer, store._database.reader):
        event.listen(engine, "before_cursor_execute", counted)
    return lambda: seen
