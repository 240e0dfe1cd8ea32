"""Jobs that come after others: what is let in, and what the end of one means for the rest."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corral.control.errors import Invalid, OverLimit, WrongState
from corral.control.jobs import job_edit, jobs
from corral.control.live.unit_of_work import Caller, Work
from corral.control.ports import AttemptPhase, Store
from corral.control.records import JobFilter, JobRecord
from corral.control.scheduling import views
from corral.control.system.policies import Policies
from corral.core.model import EndReason, Job, JobState
from tests.unit.control.world import ANN, BOB, ROOT, Desk, changed, draft
from tests.unit.searching import between, pick

END = AttemptPhase.ENDED


def finish(desk: Desk, job: Job, exit_code: int = 0) -> None:
    desk.hear(desk.job(job.id), END, EndReason.EXIT_CODE, exit_code=exit_code)


def one(desk: Desk, name: str, *after: str, caller: Caller = ANN, gpus: int = 1, hold: bool = False) -> Job:
    (job,) = desk.submit(draft(name, after=after, gpus=gpus, hold=hold), caller=caller)
    return job


def waits_for(desk: Desk, job: Job) -> tuple[JobState, tuple[str, ...]]:
    present = desk.job(job.id)
    return present.state, present.after


# -------------------------------------------------------------------------------------------- what is let in


def test_by_id_and_by_name_and_each_once(desk: Desk) -> None:
    first, second = desk.submit(draft("first"), draft("second"))
    third = one(desk, "third", "first", second.id, first.id)
    assert third.after == (first.id, second.id)
    assert third.state is JobState.QUEUED
    assert desk.record(third.id).job.after == third.after


def test_completed_jobs_are_not_waited_for(desk: Desk) -> None:
    (first,) = desk.started(draft("first"))
    finish(desk, first)
    assert one(desk, "second", "first").after == ()


@pytest.mark.parametrize("how", ["failed", "stopped"])
def test_dependency_that_can_never_complete_is_refused(desk: Desk, how: str) -> None:
    (first,) = desk.started(draft("first"))
    if how == "stopped":
        desk.do(jobs.stop, ANN, first.id)
    finish(desk, first, exit_code=3)
    with pytest.raises(WrongState, match=f"{how} .*: what comes after it would never start") as refusal:
        one(desk, "second", "first")
    assert refusal.value.field == "after"


def test_only_what_the_caller_may_see(desk: Desk) -> None:
    first = one(desk, "first")
    for ref in (first.id, "first", "j-99", "nothing"):
        with pytest.raises(Invalid, match="there is no job") as refusal:
            one(desk, "second", ref, caller=BOB)
        assert refusal.value.field == "after"
    assert one(desk, "second", first.id, caller=ROOT).after == (first.id,)


def test_a_refusal_of_a_batch_says_which_one(desk: Desk) -> None:
    with pytest.raises(Invalid) as refusal:
        desk.do(jobs.submit_batch, ANN, [draft("first"), draft("second", after=("nothing",))])
    assert (refusal.value.field, refusal.value.item) == ("jobs[1].after", 1)


# -------------------------------------------------------------------------------------------- ends


def test_dependent_jobs_are_queued_when_the_last_dependency_completes(desk: Desk) -> None:
    first, second = desk.started(draft("first"), draft("second"))
    third = one(desk, "third", "first", "second")
    assert desk.cycle() == []
    assert views.waiting_for_others(desk.state, "default") == 1
    desk.now += 100
    finish(desk, first)
    assert waits_for(desk, third) == (JobState.QUEUED, (second.id,))
    desk.now += 100
    finish(desk, second)
    assert waits_for(desk, third) == (JobState.QUEUED, ())
    assert desk.job(third.id).queued_at == desk.now
    assert desk.actions(third.id) == ["job.submitted", "job.dependencies-met"]
    assert desk.cycle() == [third.id]


def test_a_failure_ends_the_whole_chain_and_names_its_first_job(desk: Desk) -> None:
    """Longer than calls could be nested."""
    (first,) = desk.started(draft("first"))
    chain = desk.do(_one_after_the_other, 600, first)
    finish(desk, first, exit_code=7)
    ends = [record.job for record in _all(desk, limit=1000) if record.job.id != first.id]
    assert len(ends) == len(chain)
    assert {job.state for job in ends} == {JobState.STOPPED}
    assert {job.end_reason for job in ends} == {EndReason.DEPENDENCY_FAILED}
    assert {job.message for job in ends} == {f"{first.id} (first) failed (exit code 7)"}
    assert desk.actions(chain[-1].id) == ["job.stopped"]  # only the latest events are read
    assert desk.state.snapshot.jobs == {}


def _one_after_the_other(work: Work, count: int, first: Job) -> list[Job]:
    chain = [first]
    for number in range(count):
        (record,) = jobs.submit(work, ANN, [draft(f"step-{number}", after=(chain[-1].id,))])
        chain.append(record.job)
    return chain[1:]


def test_retried_job_is_not_over_for_its_dependents(desk: Desk) -> None:
    (first,) = desk.started(draft("first"))
    second = one(desk, "second", "first")
    desk.hear(first, END, EndReason.LOST)
    assert waits_for(desk, second) == (JobState.QUEUED, (first.id,))
    desk.now += 1000
    desk.cycle()
    finish(desk, first)
    assert waits_for(desk, second) == (JobState.QUEUED, ())


@pytest.mark.parametrize("how", ["stop", "delete"])
def test_dependent_of_a_job_that_never_runs_ends(desk: Desk, how: str) -> None:
    first = one(desk, "first", hold=True)
    second = one(desk, "second", "first")
    assert views.why(desk.state, desk.now, second).reasons[0].detail == f"it comes after {first.id} (not started)"
    desk.do(getattr(jobs, how), ANN, "first")
    end = desk.job(second.id)
    assert (end.state, end.end_reason) == (JobState.STOPPED, EndReason.DEPENDENCY_FAILED)
    assert end.message.startswith(f"{first.id} (first) was {'stopped' if how == 'stop' else 'deleted before'}")


# -------------------------------------------------------------------------------------------- held, started, changed


def test_a_held_job_takes_note_but_is_not_ended(desk: Desk) -> None:
    first, second = desk.started(draft("first"), draft("second"))
    third = one(desk, "third", "first", "second", hold=True)
    finish(desk, first)
    assert waits_for(desk, third) == (JobState.CREATED, (second.id,))
    finish(desk, second, exit_code=1)
    assert waits_for(desk, third) == (JobState.CREATED, (second.id,))
    with pytest.raises(WrongState, match="would never start; start that one again first"):
        desk.do(jobs.start, ANN, "third")
    desk.do(jobs.start, ANN, "second")
    assert desk.do(jobs.start, ANN, "third").after == (second.id,)
    desk.cycle()
    finish(desk, second)
    assert desk.cycle() == [third.id]


def test_started_again_after_a_failure_it_waits_for_what_is_still_open(desk: Desk) -> None:
    first, second = desk.started(draft("first"), draft("second"))
    third = one(desk, "third", "first", "second")
    finish(desk, first)
    finish(desk, second, exit_code=1)
    assert waits_for(desk, third) == (JobState.STOPPED, (second.id,))
    desk.do(jobs.start, ANN, "second")
    assert desk.do(jobs.start, ANN, "third").after == (second.id,)
    desk.do(jobs.stop, ANN, "third")
    desk.do(jobs.stop, ANN, "second")
    desk.do(jobs.delete, ANN, "second")
    with pytest.raises(WrongState, match="which was deleted"):
        desk.do(jobs.start, ANN, "third")


def test_dependencies_of_a_waiting_job_can_be_changed(desk: Desk) -> None:
    first, second = desk.submit(draft("first", gpus=4), draft("second", gpus=4))
    third = one(desk, "third", "first")
    change = changed(after=("second",))
    assert desk.do(job_edit.edit, ANN, "third", change).after == (second.id,)
    with pytest.raises(Invalid, match=f"{first.id} can only come after older jobs, not after {third.id}"):
        desk.do(job_edit.edit, ANN, "first", changed(after=("third",)))
    with pytest.raises(Invalid, match="older"):
        desk.do(job_edit.edit, ANN, "third", changed(after=("third",)))
    desk.now += 50
    free = desk.do(job_edit.edit, ANN, "third", changed(after=()))
    assert (free.after, free.queued_at) == ((), desk.now)
    assert desk.cycle() == [first.id, second.id]  # and the third behind them, as the two nodes are full


def test_job_with_open_dependencies_has_no_position(desk: Desk) -> None:
    one(desk, "first")
    one(desk, "second", "first")
    with pytest.raises(WrongState, match="waits for other jobs"):
        desk.do(jobs.move, ANN, "second", before="first")
    with pytest.raises(WrongState, match="waits for other jobs"):
        desk.do(jobs.move, ANN, "first", after="second")
    assert desk.do(jobs.pin, ROOT, desk.do(jobs.own_job, ANN, "second").id).pinned_at == desk.now


def test_jobs_with_dependencies_count_for_the_queue_length(store: Store) -> None:
    desk = Desk(store, Policies(max_queue_length=2))
    one(desk, "first")
    one(desk, "second", "first")
    with pytest.raises(OverLimit, match="at most 2 jobs may wait: 2 do already"):
        one(desk, "third")


def test_after_a_restart_everybody_still_knows_whom_they_wait_for(desk: Desk) -> None:
    (first,) = desk.started(draft("first"))
    second, third = one(desk, "second", "first"), one(desk, "third", "first", hold=True)
    desk.state = desk.loaded()
    finish(desk, first)
    assert waits_for(desk, second) == (JobState.QUEUED, ())
    assert waits_for(desk, third) == (JobState.CREATED, ())


# -------------------------------------------------------------------------------------------- whatever happens


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_job_waits_for_a_dependency_that_is_over(store: Store, data: st.DataObject) -> None:
    """Random submissions, ends, stops, starts and deletions. Afterwards, also after a restart, every open dependency of
    a queued job can still complete, nothing ran before what it came after, and the index is that of a fresh start."""
    desk = Desk(store)
    with store.write() as tx:
        tx.jobs.delete([record.job.id for record in _all(desk)])
    desk.state = desk.loaded()
    for _ in range(data.draw(between(5, 12))):
        known = _all(desk)
        refs = data.draw(st.lists(st.sampled_from([record.job.id for record in known]), max_size=3)) if known else []
        action = data.draw(pick("submit", "submit", "end", "end", "stop", "start", "delete", "lose"))
        try:
            if action == "submit" or not refs:
                desk.submit(draft(gpus=1, after=tuple(refs), hold=data.draw(between(0, 4)) == 0))
            elif action in ("end", "lose"):
                job = desk.job(refs[0])
                reason = EndReason.EXIT_CODE if action == "end" else EndReason.LOST
                if job.state.holds_resources:
                    desk.hear(job, END, reason, exit_code=data.draw(pick(0, 0, 1)))
            else:
                desk.do(getattr(jobs, action), ANN, refs[0])
        except (Invalid, WrongState):
            pass
        desk.now += 1000
        for job_id in desk.cycle():
            assert desk.job(job_id).after == ()
        _check(desk)


def _all(desk: Desk, limit: int = 500) -> list[JobRecord]:
    with desk.store.read() as tx:
        return list(tx.jobs.page(JobFilter(), sort="id", cursor=None, limit=limit).items)


def _check(desk: Desk) -> None:
    present = {record.job.id: record.job for record in _all(desk)}
    for job in present.values():
        if job.state is JobState.QUEUED:
            assert all(not present[other].state.is_ended for other in job.after)
    fresh = desk.loaded()
    for job_id in present:
        assert desk.state.dependents.of(job_id) == fresh.dependents.of(job_id)
    assert desk.state.snapshot.lines.keys() == fresh.snapshot.lines.keys()
