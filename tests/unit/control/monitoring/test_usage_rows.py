"""Every attempt leaves a line of what it held, in the transaction in which it begins and ends."""

from __future__ import annotations

from corral.control.jobs import jobs
from corral.control.live.reconcile import reconcile
from corral.control.live.unit_of_work import Work
from corral.control.ports import AttemptPhase, Observation
from corral.control.records import UsageRecord
from corral.control.system.housekeeping import DAY, USAGE_SECONDS, tidy
from corral.core.jobs.lifecycle import Ended, StopRequested
from corral.core.model import EndReason, JobState, Queue
from corral.core.people.membership import Membership
from corral.core.snapshot.changes import PutMembership, PutQueue
from tests.unit.control.world import ANN, TWO_NODES, Desk, draft


def usage_of(desk: Desk, job_id: str) -> list[UsageRecord]:
    with desk.store.read() as tx:
        return tx.usage.of_job(job_id)


def test_a_line_follows_the_attempt(desk: Desk) -> None:
    desk.state.apply([PutMembership(user="ann", membership=Membership(group="vision", pool="default"))])
    (job,) = desk.submit(draft("train", gpus=2))
    desk.now += 30
    desk.cycle()
    (planned,) = usage_of(desk, job.id)
    assert (planned.queued_at, planned.planned_at, planned.wait_seconds) == (1000.0, 1030.0, 30.0)
    assert (planned.user, planned.group, planned.queue, planned.pool) == ("ann", "vision", "default", "default")
    assert (planned.model, planned.nodes, planned.gpu_milli, planned.gpu_ids) == ("A10", 1, 2000, ("n1/0", "n1/1"))
    assert (planned.started_at, planned.ended_at, planned.outcome) == (None, None, None)

    desk.now += 5
    desk.hear(desk.job(job.id), AttemptPhase.RUNNING)
    desk.state = desk.loaded()  # a restart in between loses nothing
    desk.now += 100
    desk.hear(desk.job(job.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    (ended,) = usage_of(desk, job.id)
    assert (ended.started_at, ended.ended_at) == (1035.0, 1135.0)
    assert (ended.end_reason, ended.outcome, ended.group) == (EndReason.EXIT_CODE, JobState.COMPLETED, "vision")
    assert ended.gpu_seconds(0.0, 2000.0) == 210.0
    assert ended.gpu_seconds(1130.0, 1132.0) == 4.0


def test_gpus_held_after_an_end_of_the_jobs_own_word_are_counted(desk: Desk) -> None:
    (job,) = desk.started(draft("train", gpus=2))
    desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    (before,), score = usage_of(desk, job.id), desk.state.snapshot.scores["ann", "A10"]
    assert before.ended_at is not None
    desk.now += 20.0
    overran = {f"{job.id}.1": before.ended_at + 15.0, "j-77.1": desk.now}
    for _ in range(2):  # however often it is said
        desk.do(reconcile, "local", Observation(nodes=TWO_NODES, attempts=(), overran=overran), desk.now)
    (after,) = usage_of(desk, job.id)
    assert after.gpu_seconds(0.0, desk.now) - before.gpu_seconds(0.0, desk.now) == 30.0
    assert after.outcome is JobState.COMPLETED
    assert desk.state.snapshot.scores["ann", "A10"].value > score.value


def test_an_end_that_says_when_it_began_has_a_run_time(desk: Desk) -> None:
    (job,) = desk.submit(draft("train", gpus=2))
    desk.cycle()
    began_at = desk.now + 5.0
    desk.now += 100.0
    desk.hear(desk.job(job.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0, began_at=began_at)
    (line,) = usage_of(desk, job.id)
    assert (line.started_at, line.ended_at) == (began_at, desk.now)
    assert line.gpu_seconds(0.0, desk.now) == 200.0


def test_each_attempt_has_its_own_line_and_wait(desk: Desk) -> None:
    (job,) = desk.started(draft("train"))
    desk.now += 10
    desk.hear(job, AttemptPhase.ENDED, EndReason.LOST)
    desk.now += 600
    desk.cycle()
    first, second = usage_of(desk, job.id)
    assert (first.end_reason, first.outcome) == (EndReason.LOST, JobState.QUEUED)
    assert (second.attempt_id, second.queued_at, second.planned_at) == (f"{job.id}.2", 1010.0, 1610.0)


def test_the_pool_is_the_one_of_the_queue(desk: Desk) -> None:
    desk.state.apply([PutQueue(queue=Queue(name="default", pool="default", policy="fcfs"))])
    (job,) = desk.started(draft("train", gpus=0))
    (line,) = usage_of(desk, job.id)
    assert (line.model, line.gpu_milli, line.gpu_ids, line.pool) == ("", 0, (), "default")


def test_a_job_that_ends_and_is_deleted_at_once_is_counted(desk: Desk) -> None:
    (job,) = desk.started(draft("train"))
    desk.now += 60

    def end_and_delete(work: Work) -> None:
        ended = work.advance(
            work.advance(job, StopRequested(at=work.now, reason=EndReason.STOPPED_BY_USER)), _end(work)
        )
        work.forget_job(ended)

    desk.do(end_and_delete)
    (line,) = usage_of(desk, job.id)
    assert (line.ended_at, line.outcome) == (1060.0, JobState.STOPPED)


def test_a_deleted_job_stays_counted_until_it_is_old(desk: Desk) -> None:
    (job,) = desk.started(draft("train"))
    desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    desk.do(jobs.delete, ANN, job.id)
    desk.now += USAGE_SECONDS
    desk.do(tidy)
    assert len(usage_of(desk, job.id)) == 1
    desk.now += DAY
    desk.do(tidy)
    assert usage_of(desk, job.id) == []


def _end(work: Work) -> Ended:
    return Ended(at=work.now, reason=EndReason.STOPPED_BY_USER)
