"""A store that knows less than what runs: nothing runs twice, and no id is given to something else."""

from __future__ import annotations

from corral.control.live import restored_store
from corral.control.live.reconcile import reconcile
from corral.control.ports import AttemptPhase, AttemptStatus, Observation
from corral.core.jobs.lifecycle import Launch, Stop
from corral.core.model import JobState
from tests.unit.control.world import TWO_NODES, Desk, draft


def see(desk: Desk, *attempts: str, phase: AttemptPhase = AttemptPhase.RUNNING) -> None:
    statuses = tuple(AttemptStatus(attempt_id=one, phase=phase, at=desk.now) for one in attempts)
    desk.do(reconcile, "local", Observation(nodes=TWO_NODES, attempts=statuses), desk.now)


def test_a_waiting_job_starts_only_when_the_unknown_attempt_is_gone(desk: Desk) -> None:
    (job,) = desk.submit(draft("training", gpus=2))
    see(desk, f"{job.id}.3")
    assert desk.instructions == [Stop(attempt_id=f"{job.id}.3", grace_seconds=job.grace_seconds, cluster="local")]
    assert desk.cycle() == [], "the old one may still be saving"
    waiting = desk.job(job.id)
    assert (waiting.state, waiting.attempt) == (JobState.QUEUED, 3)
    assert f"attempt {job.id}.3 still runs" in waiting.message
    desk.now += restored_store.HOLD_SECONDS - 1
    see(desk, f"{job.id}.3")
    desk.now += 2
    assert desk.cycle() == [], "it was seen again"
    desk.now += restored_store.HOLD_SECONDS
    see(desk)
    assert desk.cycle() == [job.id]
    assert desk.instructions[-1] == Launch(attempt_id=f"{job.id}.4"), "and under another id"


def test_a_launch_that_the_store_believes_in_is_not_repeated_beside_a_later_attempt(desk: Desk) -> None:
    (job,) = desk.submit(draft("training", gpus=2))
    desk.cycle()
    desk.instructions.clear()
    desk.now += 10
    see(desk, f"{job.id}.4")
    assert not [one for one in desk.instructions if isinstance(one, Launch)]
    assert Stop(attempt_id=f"{job.id}.4", grace_seconds=job.grace_seconds, cluster="local") in desk.instructions
    back = desk.job(job.id)
    assert (back.state, back.attempt, back.faults, back.retries) == (JobState.QUEUED, 4, 1, 0)


def test_a_running_attempt_that_is_gone_is_not_numbered_like_the_later_one(desk: Desk) -> None:
    (job,) = desk.submit(draft("training", gpus=2))
    desk.cycle()
    see(desk, f"{job.id}.1")
    desk.now += 10
    see(desk, f"{job.id}.2")
    back = desk.job(job.id)
    assert (back.state, back.attempt, back.allocation) == (JobState.QUEUED, 2, None)


def test_ids_of_jobs_that_have_directories_are_skipped(desk: Desk) -> None:
    (first,) = desk.submit(draft("first"))
    desk.do(restored_store.skip_used_ids, first.serial)
    assert desk.submit(draft("second"))[0].serial == first.serial + 1
    desk.do(restored_store.skip_used_ids, 40)
    desk.do(restored_store.skip_used_ids, 7)
    assert desk.submit(draft("third"))[0].id == "j-41"
    assert desk.actions("j-40") == ["store.older"]
