"""Jobs by state are counted as they change: no page counts the rows of the store."""

from __future__ import annotations

from corral.control.jobs import jobs
from corral.control.ports import AttemptPhase
from corral.core.model import EndReason, JobState
from tests.unit.control.world import ANN, ROOT, Desk, draft


def check(desk: Desk) -> None:
    counts = desk.state.job_counts
    assert counts is not None
    with desk.store.read() as tx:
        assert {state.value: count for state, count in counts.items() if count} == tx.jobs.counts()


def test_the_counts_of_the_state_are_those_of_the_store(desk: Desk) -> None:
    check(desk)
    one, two = desk.started(draft("first", gpus=4), draft("second", gpus=4))
    three, held = desk.submit(draft("waits", gpus=4), draft("held", gpus=1, hold=True))
    check(desk)
    desk.hear(desk.job(one.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)
    desk.hear(desk.job(two.id), AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=1)
    check(desk)
    assert desk.state.job_counts is not None
    assert desk.state.job_counts[JobState.COMPLETED] == 1
    assert desk.state.job_counts[JobState.CREATED] == 1
    desk.do(jobs.stop, ANN, three.id)
    desk.do(jobs.start, ANN, held.id)
    desk.do(jobs.delete, ROOT, one.id)
    check(desk)
    desk.cycle()
    check(desk)


def test_a_job_that_is_added_and_deleted_at_once_is_not_counted(desk: Desk) -> None:
    before = dict(desk.state.job_counts or {})

    def add_and_delete(work: object) -> None:
        (record,) = jobs.submit(work, ANN, [draft("brief", gpus=1, hold=True)])  # type: ignore[arg-type]
        jobs.delete(work, ANN, record.job.id)  # type: ignore[arg-type]

    desk.do(add_and_delete)
    assert {state: count for state, count in (desk.state.job_counts or {}).items() if count} == {
        state: count for state, count in before.items() if count
    }
    check(desk)
