"""Jobs that hang or slow down: their owners get one notice, and a hung one is restarted elsewhere if allowed."""

from __future__ import annotations

from corral.control.monitoring import stalled_jobs
from corral.control.monitoring.stalled_jobs import PaceSighting
from corral.control.people import user_inbox
from corral.control.ports import AttemptPhase
from corral.core.jobs.lifecycle import Stop
from corral.core.model import EndReason, Job, JobState
from corral.core.monitoring.step_rates import Pace
from tests.unit.control.world import Desk, draft


def see(desk: Desk, job: Job, pace: Pace, at: float = 400.0) -> None:
    sighting = PaceSighting(
        job_id=job.id,
        attempt=job.attempt,
        pace=pace,
        step=70,
        at=at,
        steps_per_minute=2.0,
        usual_steps_per_minute=12.0,
    )
    desk.do(stalled_jobs.review, [sighting])


def pace_actions(desk: Desk, job: Job) -> list[str]:
    return [action for action in desk.actions(job.id) if action in ("job.hung", "job.slow", "job.pace-recovered")]


def test_the_owner_gets_one_notice_of_a_hang_and_one_of_its_end(desk: Desk) -> None:
    (job,) = desk.started(draft("training", gpus=2))
    see(desk, job, Pace.STEADY)
    assert pace_actions(desk, job) == []
    for _ in range(3):
        see(desk, job, Pace.HUNG)
    assert (desk.job(job.id).hung_since, desk.job(job.id).state) == (400.0, JobState.RUNNING)
    assert desk.loaded().snapshot.jobs[job.id].hung_since == 400.0, "a restart of the server repeats no notice"
    with desk.store.read() as tx:
        page = user_inbox.page(tx, "ann", unread_only=False, cursor=None, limit=10)
    (event,) = [event for event in page.events.items if event.action == "job.hung"]
    assert (event.detail["step"], event.detail["usual_steps_per_minute"], event.detail["restarts"]) == (70, 12, False)
    see(desk, job, Pace.STEADY)
    see(desk, job, Pace.SLOW)
    see(desk, job, Pace.SLOW)
    assert desk.job(job.id).slow_since == 1000.0
    see(desk, job, Pace.STEADY)
    assert pace_actions(desk, job) == ["job.hung", "job.pace-recovered", "job.slow", "job.pace-recovered"]
    assert desk.instructions == []


def test_a_hung_job_that_allows_it_is_restarted_on_another_node_as_a_retry(desk: Desk) -> None:
    (job,) = desk.started(draft("training", gpus=2, restart_if_hung=True, max_retries=1))
    assert job.allocation is not None
    node = job.allocation.grants[0].node
    see(desk, job, Pace.HUNG)
    assert desk.instructions == [Stop(attempt_id=job.attempt_id, grace_seconds=30.0)]
    assert desk.job(job.id).stopping_for is EndReason.HUNG
    desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=143)
    waiting = desk.job(job.id)
    assert (waiting.state, waiting.retries, waiting.avoid_nodes) == (JobState.QUEUED, 1, (node,))
    assert "no step for 10 minutes after step 70" in waiting.message
    desk.now = waiting.not_before
    desk.cycle()
    again = desk.job(job.id)
    assert again.allocation is not None
    assert (again.attempt, again.hung_since, again.allocation.grants[0].node != node) == (2, None, True)
    desk.hear(again, AttemptPhase.RUNNING)
    see(desk, desk.job(job.id), Pace.HUNG, at=desk.now - 600)
    assert desk.job(job.id).state is JobState.RUNNING, "no retry is left: its owner decides"
    assert pace_actions(desk, job) == ["job.hung", "job.hung"]


def test_a_sighting_of_an_earlier_attempt_changes_nothing(desk: Desk) -> None:
    (job,) = desk.started(draft("training"))
    desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    see(desk, job, Pace.HUNG)
    assert desk.actions(job.id)[-1] == "job.completed"
    assert desk.job(job.id).hung_since is None
