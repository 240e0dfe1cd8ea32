"""Reasons that lead to a retry: one row per reason, as in the documentation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from corral.core.jobs.backoff import BACKOFF_SECONDS, MAX_BACKOFF_SECONDS, MOST_FAULTS, backoff_seconds
from corral.core.jobs.lifecycle import Ended, Planned, StartRequested, StopRequested, Up, advance
from corral.core.model import Allocation, EndReason, Grant, Job, JobState

ALLOCATION = Allocation(grants=(Grant(node="n1", gpus=("g1", "g2")), Grant(node="n2", gpus=("g5", "g6"))), model="A10")
DOCUMENTATION = Path(__file__).parents[4] / "docs" / "how-to" / "jobs" / "ends-and-retries.md"

#: reason of the end, state after it, platform failures counted, what the next attempt avoids
BY_ITSELF = [
    (EndReason.EXIT_CODE, JobState.FAILED, 0, ()),
    (EndReason.OOM_KILLED, JobState.FAILED, 0, ()),
    (EndReason.TIMED_OUT, JobState.FAILED, 0, ()),
    (EndReason.DISK_QUOTA, JobState.FAILED, 0, ()),
    (EndReason.LAUNCH_ERROR, JobState.FAILED, 0, ()),
    (EndReason.IMAGE_PULL_ERROR, JobState.FAILED, 0, ()),
    (EndReason.EVICTED, JobState.QUEUED, 0, ()),
    (EndReason.LOST, JobState.QUEUED, 1, ()),
    (EndReason.NODE_LOST, JobState.QUEUED, 1, ("n1", "n2")),
    (EndReason.GPU_FAILED, JobState.QUEUED, 1, ("g1", "g2", "g5", "g6")),
]
#: why corral or a person stopped it, state after it, faults counted, what is avoided of a named n1 or g5
BY_A_STOP = [
    (EndReason.STOPPED_BY_USER, (), JobState.STOPPED, 0, ()),
    (EndReason.STOPPED_BY_OPERATOR, (), JobState.STOPPED, 0, ()),
    (EndReason.EVICTED, (), JobState.STOPPED, 0, ()),
    (EndReason.TIMED_OUT, (), JobState.FAILED, 0, ()),
    (EndReason.DISK_QUOTA, (), JobState.FAILED, 0, ()),
    (EndReason.PREEMPTED, (), JobState.QUEUED, 0, ()),
    (EndReason.NODE_LOST, ("n1",), JobState.QUEUED, 1, ("n1",)),
    (EndReason.GPU_FAILED, ("g5",), JobState.QUEUED, 1, ("g5",)),
]
#: they end no attempt: the job never began, or goes on at once; a hang has a test of its own
WITHOUT_A_ROW = {EndReason.DEPENDENCY_FAILED, EndReason.RESIZED, EndReason.MOVED, EndReason.HUNG}


def running(max_retries: int = 3) -> Job:
    job = advance(Job(id="j-1", name="name", user="ann", max_retries=max_retries), StartRequested(at=0.0)).job
    job = advance(job, Planned(at=0.0, allocation=ALLOCATION)).job
    return advance(job, Up(at=1.0)).job


@pytest.mark.parametrize(("reason", "state", "faults", "avoided"), BY_ITSELF)
def test_an_attempt_that_ended_by_itself(
    reason: EndReason, state: JobState, faults: int, avoided: tuple[str, ...]
) -> None:
    after = advance(running(), Ended(at=10.0, reason=reason, exit_code=3, message="as it was")).job
    assert (after.state, after.faults, after.avoid_nodes + after.avoid_gpus) == (state, faults, avoided)
    assert after.retries == 0, "a fault of the platform is not the user's"
    assert after.message == "as it was"
    assert after.not_before == (10.0 + backoff_seconds(1) if faults else 0.0)


def test_only_what_failed_is_avoided_where_the_engine_can_tell() -> None:
    after = advance(running(), Ended(at=10.0, reason=EndReason.NODE_LOST, failed=("n2",))).job
    assert (after.state, after.avoid_nodes) == (JobState.QUEUED, ("n2",))


@pytest.mark.parametrize(("reason", "failed", "state", "faults", "avoided"), BY_A_STOP)
def test_an_attempt_that_was_stopped(
    reason: EndReason, failed: tuple[str, ...], state: JobState, faults: int, avoided: tuple[str, ...]
) -> None:
    stopping = advance(running(), StopRequested(at=5.0, reason=reason, failed=failed)).job
    # How it dies of it makes no difference: not even a good end.
    for code in (0, 143):
        after = advance(stopping, Ended(at=10.0, reason=EndReason.EXIT_CODE, exit_code=code)).job
        assert (after.state, after.faults, after.avoid_nodes + after.avoid_gpus) == (state, faults, avoided)
        assert after.retries == 0


def test_every_reason_has_a_row() -> None:
    assert {row[0] for row in (*BY_ITSELF, *BY_A_STOP)} | WITHOUT_A_ROW == set(EndReason)


FAULTS = [EndReason.LOST, EndReason.NODE_LOST, EndReason.GPU_FAILED]


@pytest.mark.parametrize("reason", FAULTS)
def test_no_more_than_was_allowed(reason: EndReason) -> None:
    """Without retries a job is never run twice by itself; it may be launched again if its program never began."""
    job = running(max_retries=0)
    ended = advance(job, Ended(at=2.0, reason=reason)).job
    assert ended.state is JobState.FAILED
    assert "no retries" in ended.message
    stopping = advance(job, StopRequested(at=2.0, reason=reason)).job
    assert advance(stopping, Ended(at=3.0, reason=EndReason.EXIT_CODE, exit_code=143)).job.state is JobState.FAILED
    starting = replace(job, state=JobState.STARTING, started_at=None)
    assert advance(starting, Ended(at=2.0, reason=reason)).job.state is JobState.QUEUED


@pytest.mark.parametrize("reason", FAULTS)
def test_faults_without_end_come_to_an_end_with_a_message(reason: EndReason) -> None:
    job, now, pauses = running(max_retries=1), 10.0, []
    while job.state is not JobState.FAILED:
        job = advance(job, Ended(at=now, reason=reason, message="its supervisor was killed")).job
        if job.state is JobState.QUEUED:
            pauses.append(job.not_before - now)
            now = job.not_before
            job = advance(advance(job, Planned(at=now, allocation=ALLOCATION)).job, Up(at=now)).job
        assert job.retries == 0
    assert len(pauses) == MOST_FAULTS
    assert pauses == sorted(pauses)
    assert pauses[0] == BACKOFF_SECONDS
    assert pauses[-1] == MAX_BACKOFF_SECONDS
    assert job.end_reason is reason
    assert job.message.startswith("its supervisor was killed; given up after 10 platform failures in a row")
    again = advance(job, StartRequested(at=now)).job
    assert (again.faults, again.state) == (0, JobState.QUEUED)


def test_a_job_that_saves_in_between_is_never_given_up() -> None:
    job, now = running(), 10.0
    for _ in range(5 * MOST_FAULTS):
        job = replace(job, checkpointed_at=now + 5.0)
        job = advance(job, Ended(at=now + 10.0, reason=EndReason.LOST)).job
        assert (job.state, job.faults) == (JobState.QUEUED, 1)
        now = job.not_before
        job = advance(advance(job, Planned(at=now, allocation=ALLOCATION)).job, Up(at=now)).job


def test_started_again_it_has_all_its_retries_and_avoids_nothing() -> None:
    failed = advance(running(max_retries=0), Ended(at=2.0, reason=EndReason.NODE_LOST)).job
    again = advance(failed, StartRequested(at=9.0)).job
    assert (again.retries, again.avoid_nodes, again.not_before, again.attempt) == (0, (), 0.0, 1)


def test_the_documentation_has_the_same_table() -> None:
    rows = {
        reason: line
        for line in DOCUMENTATION.read_text().partition("### Which ends are tried again")[2].splitlines()
        for reason in EndReason
        if line.startswith("|") and f"`{reason}`" in line and ("| yes" in line or "| no" in line)
    }
    tried = {row[0] for row in BY_ITSELF if row[2]}
    for reason in set(EndReason) - WITHOUT_A_ROW - {EndReason.PREEMPTED}:
        assert ("| yes" in rows[reason]) is (reason in tried), rows[reason]
    assert "no retry spent" in rows[EndReason.PREEMPTED]


def test_a_hung_program_is_tried_again_on_another_node_while_retries_are_left() -> None:
    job = replace(running(max_retries=1), allocation=Allocation(grants=(Grant(node="n1", gpus=("g1",)),), model="A10"))
    stopping = advance(job, StopRequested(at=5.0, reason=EndReason.HUNG, message="no step for 20 minutes")).job
    after = advance(stopping, Ended(at=10.0, reason=EndReason.EXIT_CODE, exit_code=143)).job
    assert (after.state, after.retries, after.avoid_nodes) == (JobState.QUEUED, 1, ("n1",))
    assert after.message == "no step for 20 minutes; retry 1 of 1 follows in 5 seconds or later"
    last = replace(stopping, retries=1)
    over = advance(last, Ended(at=10.0, reason=EndReason.EXIT_CODE, exit_code=143)).job
    assert (over.state, over.end_reason) == (JobState.FAILED, EndReason.HUNG)
