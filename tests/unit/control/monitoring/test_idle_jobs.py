"""Jobs that do nothing: warned once, given more time once, stopped then."""

from __future__ import annotations

import pytest

from corral.control.errors import NotFound, WrongState
from corral.control.jobs import jobs
from corral.control.monitoring import idle_jobs
from corral.control.monitoring.idle_jobs import Sighting
from corral.control.ports import AttemptPhase
from corral.control.records import IdleWarning
from corral.core.jobs.lifecycle import Stop
from corral.core.model import EndReason, Job, JobKind, JobState
from corral.core.monitoring.idleness import Activity, IdleRules
from tests.unit.control.world import ANN, BOB, ROOT, Desk, draft

RULES = IdleRules(
    enabled=True, window_seconds=1800.0, utilization=0.02, warning_seconds=600.0, extension_seconds=3600.0
)
IDLE, ACTIVE, QUIET, UNKNOWN = Activity.IDLE, Activity.ACTIVE, Activity.QUIET, Activity.UNKNOWN


def see(desk: Desk, job: Job, activity: Activity, use: float = 0.004) -> None:
    desk.do(idle_jobs.review, [Sighting(job_id=job.id, attempt=job.attempt, activity=activity, utilization=use)], RULES)


def warning(desk: Desk, job: Job) -> IdleWarning | None:
    """The warning in the store, which equals the one in memory."""
    with desk.store.read() as tx:
        stored = tx.health.idle_warnings()
    assert stored == desk.state.idle_warnings
    return stored.get(job.id)


def idle_actions(desk: Desk, job: Job) -> list[str]:
    return [action for action in desk.actions(job.id) if "idle" in action]


def test_an_idle_job_is_warned_once_and_stopped_at_its_deadline(desk: Desk) -> None:
    (job,) = desk.started(draft("training", gpus=2))
    see(desk, job, IDLE)
    see(desk, job, IDLE)
    assert warning(desk, job) == IdleWarning(job_id=job.id, attempt=1, warned_at=1000.0, deadline=1600.0)
    (event,) = [event for event in desk.events() if event.action == "job.idle-warned"]
    assert event.owner == "ann"
    assert event.detail == {
        "attempt": 1,
        "utilization": 0.004,
        "window_minutes": 30,
        "gpus": 2,
        "deadline": 1600,
    }
    desk.now = 1599.0
    see(desk, job, IDLE)
    assert desk.job(job.id).state is JobState.RUNNING
    desk.now = 1600.0
    see(desk, job, IDLE)
    assert desk.instructions == [Stop(attempt_id=job.attempt_id, grace_seconds=30.0)]
    assert warning(desk, job) is None
    see(desk, job, IDLE)
    assert desk.instructions == []
    desk.hear(desk.job(job.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=143, message="terminated")
    over = desk.job(job.id)
    assert (over.state, over.end_reason) == (JobState.STOPPED, EndReason.EVICTED)
    assert over.message == (
        "stopped because it did nothing with what it held (GPUs: 2): their use was 0.4% over 40 minutes, "
        "below the limit of 2.0%"
    )
    assert idle_actions(desk, job) == ["job.idle-warned", "job.idle-stopped"]


def test_activity_clears_the_warning(desk: Desk) -> None:
    (job,) = desk.started(draft("training"))
    see(desk, job, ACTIVE, 0.9)
    see(desk, job, IDLE)
    see(desk, job, ACTIVE, 0.05)
    assert warning(desk, job) is None
    desk.now = 9000.0
    see(desk, job, IDLE)
    assert idle_actions(desk, job) == ["job.idle-warned", "job.idle-cleared", "job.idle-warned"]
    assert desk.job(job.id).state is JobState.RUNNING


def test_unknown_activity_warns_and_stops_no_job(desk: Desk) -> None:
    (job,) = desk.started(draft("training"))
    for activity in (UNKNOWN, QUIET):
        see(desk, job, activity)
    assert warning(desk, job) is None
    see(desk, job, IDLE)
    desk.now = 5000.0
    see(desk, job, UNKNOWN)
    assert desk.job(job.id).state is JobState.RUNNING


def test_a_restart_neither_loses_nor_doubles_a_warning(desk: Desk) -> None:
    (job,) = desk.started(draft("training"))
    see(desk, job, IDLE)
    desk.state = desk.loaded()
    see(desk, job, UNKNOWN)
    see(desk, job, IDLE)
    assert idle_actions(desk, job) == ["job.idle-warned"]
    desk.state = desk.loaded()
    desk.now = 1600.0
    see(desk, job, QUIET)
    assert desk.job(job.id).stopping_for is EndReason.EVICTED, "readings since the restart show no work"


def test_owner_or_operator_extends_an_idle_job_once(desk: Desk) -> None:
    first, second = desk.started(draft("first"), draft("second"))
    for job in (first, second):
        with pytest.raises(WrongState, match="not warned"):
            desk.do(idle_jobs.extend, ANN, job.id, RULES)
        see(desk, job, IDLE)
    with pytest.raises(NotFound):
        desk.do(idle_jobs.extend, BOB, first.id, RULES)
    desk.now = 1500.0
    desk.do(idle_jobs.extend, ANN, "first", RULES)
    desk.do(idle_jobs.extend, ROOT, second.id, RULES)
    assert warning(desk, first) == IdleWarning(
        job_id=first.id, attempt=1, warned_at=1000.0, deadline=5200.0, extended_at=1500.0
    )
    with pytest.raises(WrongState, match="given more time already") as refusal:
        desk.do(idle_jobs.extend, ROOT, first.id, RULES)
    assert refusal.value.numbers["seconds_left"] == 3700
    desk.now = 5199.0
    see(desk, first, IDLE)
    assert desk.job(first.id).state is JobState.RUNNING
    desk.now = 5200.0
    see(desk, first, IDLE)
    assert desk.job(first.id).state is JobState.STOPPING


def test_a_warning_ends_with_its_attempt(desk: Desk) -> None:
    (job,) = desk.started(draft("training"))
    see(desk, job, IDLE)
    desk.hear(job, AttemptPhase.ENDED, EndReason.LOST)
    assert idle_jobs.outlived(desk.state) == [job.id]
    with pytest.raises(WrongState, match="not warned"):
        desk.do(idle_jobs.extend, ANN, job.id, RULES)
    desk.do(idle_jobs.review, [], RULES)
    assert warning(desk, job) is None
    desk.now = 5000.0
    desk.cycle()
    desk.hear(desk.job(job.id), AttemptPhase.RUNNING)
    see(desk, job, IDLE)
    assert warning(desk, job) is None, "the sighting is of the attempt before"
    see(desk, desk.job(job.id), IDLE)
    assert (warning(desk, job) or job).attempt == 2


def test_workbenches_and_stopped_jobs_are_left_alone(desk: Desk) -> None:
    bench, stopped = desk.started(draft("bench", kind=JobKind.WORKBENCH), draft("stopped"))
    desk.do(jobs.stop, ANN, stopped.id)
    for job in (bench, stopped):
        see(desk, job, IDLE)
        assert warning(desk, job) is None
