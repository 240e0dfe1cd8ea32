"""The daily defragmentation: at its time of day, once, for jobs that have saved, and not for a time that was missed."""

from __future__ import annotations

from datetime import datetime

from corral.control.live.unit_of_work import SYSTEM
from corral.control.ports import Store
from corral.control.scheduling.moves.defragmentation import DefragmentationRun, MoveState, latest
from corral.core.reports.analysis.model import AnalysisRules
from corral.server.scheduling.defragmentation_worker import LATE_SECONDS, DefragmentationWorker
from tests.unit.control.scheduling.moves.test_defragmentation import move_along, put_saved, scattered
from tests.unit.control.world import Desk
from tests.unit.server.reports.test_report_worker import DeskController

MINUTE, DAY = 60.0, 86_400.0


class DeskClock:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def now(self) -> float:
        return self._desk.now


def worker_of(desk: Desk, at: str | None) -> DefragmentationWorker:
    return DefragmentationWorker(
        controller=DeskController(desk),  # type: ignore[arg-type]
        store=desk.store,
        clock=DeskClock(desk),  # type: ignore[arg-type]
        rules=AnalysisRules(),
        at=at,
    )


def in_minutes(desk: Desk, minutes: float) -> str:
    return datetime.fromtimestamp(desk.now + minutes * MINUTE).astimezone().strftime("%H:%M")


def run_of(desk: Desk) -> DefragmentationRun | None:
    with desk.store.read() as tx:
        return latest(tx)


def test_defragmentation_begins_at_its_time_once_a_day(store: Store) -> None:
    desk = scattered(store)
    worker = worker_of(desk, in_minutes(desk, 10))
    worker.step()
    assert run_of(desk) is None, "its time has not come"
    desk.now += 11 * MINUTE
    worker.step()
    run = run_of(desk)
    assert run is not None
    assert run.started_by == SYSTEM.name
    assert [move.state for move in run.moves].count(MoveState.MOVING) == 2
    for _ in range(2):
        move_along(desk)
        worker.step()
    run = run_of(desk)
    assert run is not None
    assert run.is_over
    assert {move.state for move in run.moves} == {MoveState.DONE}
    worker.step()
    assert run_of(desk) == run, "once a day"
    desk.now += DAY
    worker.step()
    assert run_of(desk) == run, "nothing is scattered any more"


def test_jobs_that_never_saved_are_not_moved_without_an_operator(store: Store) -> None:
    desk = scattered(store)
    for job in list(desk.state.snapshot.jobs):
        put_saved(desk, job, None)
    worker = worker_of(desk, in_minutes(desk, 1))
    desk.now += 2 * MINUTE
    worker.step()
    assert run_of(desk) is None


def test_a_time_that_passed_while_no_server_ran_waits_for_the_next_day(store: Store) -> None:
    desk = scattered(store)
    worker = worker_of(desk, in_minutes(desk, 1))
    desk.now += MINUTE + LATE_SECONDS + MINUTE
    worker.step()
    assert run_of(desk) is None, "late by more than an hour"
    started_after = worker_of(desk, in_minutes(desk, -5))
    started_after.step()
    assert run_of(desk) is None, "the server started after the time"


def test_without_a_time_nothing_is_moved(store: Store) -> None:
    desk = scattered(store)
    worker = worker_of(desk, None)
    desk.now += DAY
    worker.step()
    assert run_of(desk) is None
