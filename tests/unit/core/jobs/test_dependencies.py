"""Jobs that wait for others, in the snapshot and in explanations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.jobs.dependencies import Dependents, broken_text, met
from corral.core.model import EndReason, Job, JobState
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.explain.reasons import explain
from corral.core.snapshot.changes import DropJob, PutJob
from tests.unit.core.builders import node, running, snapshot_of, started, waiting
from tests.unit.searching import DEAR, pick


def test_a_job_that_waits_for_another_stands_in_no_line_but_counts() -> None:
    snapshot = snapshot_of(node("n1", gpus=2), waiting(1, gpus=1), waiting(2, gpus=1, after=("j-1",)))
    assert [job for line in snapshot.lines.values() for job in line.jobs] == ["j-1"]
    assert (snapshot.queued_in("default"), snapshot.count(JobState.QUEUED)) == (2, 2)
    assert snapshot.active.total_gpu_milli == 2000
    assert started(schedule(snapshot, 10.0)) == {"j-1": ["n1"]}

    free = met(snapshot.jobs["j-2"], "j-1", 50.0)
    snapshot.apply([DropJob(id="j-1"), PutJob(job=free)])
    assert started(schedule(snapshot, 50.0)) == {"j-2": ["n1"]}
    snapshot.apply([DropJob(id="j-2")])
    assert (snapshot.queued_in("default"), snapshot.lines) == (0, {})


def test_ten_thousand_that_wait_for_one_are_not_looked_at() -> None:
    snapshot = snapshot_of(node("n1", gpus=1), running(1, on={"n1": (0,)}))
    snapshot.apply(PutJob(job=waiting(serial, gpus=1, after=("j-1",))) for serial in range(2, 10_002))
    assert snapshot.lines == {}
    assert schedule(snapshot, 5.0).planned == ()


def test_age_counts_from_when_it_could_have_started() -> None:
    job = waiting(9, at=10.0, after=("j-1", "j-2"))
    half = met(job, "j-1", 20.0)
    assert (half.after, half.queued_at) == (("j-2",), 10.0)
    assert (met(half, "j-2", 30.0).after, met(half, "j-2", 30.0).queued_at) == ((), 30.0)
    held = replace(job, state=JobState.CREATED, queued_at=None, after=("j-1",))
    assert met(held, "j-1", 30.0).queued_at is None


def test_why_names_what_it_waits_for_and_how_long_that_may_take() -> None:
    snapshot = snapshot_of(
        node("n1", gpus=2),
        running(1, on={"n1": (0,)}, time_limit_seconds=3600.0),
        running(2, on={"n1": (1,)}),
        waiting(3, gpus=2),
        waiting(4, gpus=1, after=("j-3",)),
    )
    for after, detail, left in (
        (("j-1",), "it comes after j-1 (running, 50m at most)", 3000.0),
        (("j-1", "j-2"), "it comes after j-1 (running, 50m at most), j-2 (running)", None),
        (("j-3", "j-4"), "it comes after j-3 (queued), j-4 (queued, waits for others itself)", None),
        (("j-5",), "it comes after j-5 (not started)", None),
        (tuple(f"j-{n}" for n in range(10, 18)), "and 3 more", None),
    ):
        job = waiting(20, gpus=1, after=after)
        snapshot.apply([PutJob(job=job)])
        explained = explain(snapshot, schedule(snapshot, 600.0), job, 600.0)
        assert (explained.position, explained.ahead) == (None, ())
        assert [reason.rule for reason in explained.reasons] == ["dependency"]
        (reason,) = explained.reasons
        assert detail in reason.detail
        assert (reason.jobs, reason.numbers.get("seconds_left")) == (after, left)
        assert explained.summary == reason.detail


@pytest.mark.parametrize(
    ("values", "is_gone", "words"),
    [
        ({"state": "failed", "end_reason": EndReason.EXIT_CODE, "exit_code": 3}, False, "failed (exit code 3)"),
        ({"state": "failed", "end_reason": EndReason.OOM_KILLED}, False, "failed (oom_killed)"),
        ({"state": "stopped", "end_reason": EndReason.STOPPED_BY_USER}, False, "was stopped (stopped_by_user)"),
        ({"state": "created"}, True, "was deleted before it had run"),
    ],
)
def test_text_names_the_end_of_the_dependency(values: dict[str, object], is_gone: bool, words: str) -> None:
    values["state"] = JobState(str(values["state"]))
    over = replace(Job(id="j-3", name="prepare", user="ann"), **values)  # type: ignore[arg-type]
    assert broken_text(over, is_gone=is_gone) == f"j-3 (prepare) {words}"


def test_behind_a_chain_the_first_failure_is_named() -> None:
    over = Job(id="j-4", name="train", user="ann", state=JobState.STOPPED, message="j-3 (prepare) failed")
    assert broken_text(replace(over, end_reason=EndReason.DEPENDENCY_FAILED)) == "j-3 (prepare) failed"


@DEAR
@given(st.data())
def test_the_index_knows_exactly_who_waits(data: st.DataObject) -> None:
    """Jobs come, change what they wait for, start, end and go; a count from scratch says the same."""
    dependents, present = Dependents(), dict[str, Job]()
    ids = [f"j-{serial}" for serial in range(1, 6)]
    for _ in range(20):
        job_id = data.draw(st.sampled_from(ids))
        after = data.draw(st.sets(st.sampled_from(ids), max_size=3))
        state = data.draw(pick(JobState.CREATED, JobState.QUEUED, JobState.RUNNING, JobState.STOPPED))
        new = Job(id=job_id, name="name", user="ann", state=state, after=tuple(after))
        gone = data.draw(pick(False, True))
        dependents.follow(present.get(job_id), None if gone else new)
        present.pop(job_id, None)
        if not gone:
            present[job_id] = new
        for other in ids:
            waits = [
                job.id
                for job in present.values()
                if other in job.after and job.state in (JobState.CREATED, JobState.QUEUED)
            ]
            assert dependents.of(other) == sorted(waits)
