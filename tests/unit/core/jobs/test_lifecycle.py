"""A job's life: the complete table of states and events, and random lives that never break it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.jobs.backoff import BACKOFF_SECONDS, MAX_BACKOFF_SECONDS, MAX_GIVEN_BACK_SECONDS, backoff_seconds
from corral.core.jobs.lifecycle import (
    NOT_TAKEN,
    RETRIED,
    Ended,
    Event,
    InvalidTransition,
    Launch,
    Planned,
    StartRequested,
    Stop,
    StopRequested,
    Up,
    advance,
)
from corral.core.model import Allocation, EndReason, Grant, Job, JobState
from tests.unit.searching import pick

S = JobState
ALLOCATION = Allocation(grants=(Grant(node="n1", gpus=("g1", "g2")),), model="A10")
EVENTS: dict[str, Event] = {
    "start": StartRequested(at=10.0),
    "planned": Planned(at=10.0, allocation=ALLOCATION),
    "up": Up(at=10.0),
    "stop": StopRequested(at=10.0, reason=EndReason.STOPPED_BY_USER),
    "preempt": StopRequested(at=10.0, reason=EndReason.PREEMPTED),
    "exit": Ended(at=10.0, reason=EndReason.EXIT_CODE, exit_code=0),
    "crash": Ended(at=10.0, reason=EndReason.EXIT_CODE, exit_code=1),
    "lost": Ended(at=10.0, reason=EndReason.LOST),
}
#: every pair that fits, and where it leads; everything else is an error
TABLE: dict[tuple[JobState, str], JobState] = {
    (S.CREATED, "start"): S.QUEUED,
    (S.CREATED, "stop"): S.STOPPED,
    (S.CREATED, "preempt"): S.STOPPED,
    (S.QUEUED, "planned"): S.STARTING,
    (S.QUEUED, "stop"): S.STOPPED,
    (S.QUEUED, "preempt"): S.STOPPED,
    (S.STARTING, "up"): S.RUNNING,
    (S.STARTING, "stop"): S.STOPPING,
    (S.STARTING, "preempt"): S.STOPPING,
    (S.STARTING, "exit"): S.COMPLETED,
    (S.STARTING, "crash"): S.FAILED,
    (S.STARTING, "lost"): S.QUEUED,
    (S.RUNNING, "stop"): S.STOPPING,
    (S.RUNNING, "preempt"): S.STOPPING,
    (S.RUNNING, "exit"): S.COMPLETED,
    (S.RUNNING, "crash"): S.FAILED,
    (S.RUNNING, "lost"): S.QUEUED,
    (S.STOPPING, "up"): S.STOPPING,
    (S.STOPPING, "exit"): S.STOPPED,
    (S.STOPPING, "crash"): S.STOPPED,
    (S.STOPPING, "lost"): S.STOPPED,
    (S.STOPPED, "start"): S.QUEUED,
    (S.COMPLETED, "start"): S.QUEUED,
    (S.FAILED, "start"): S.QUEUED,
}


def in_state(state: JobState) -> Job:
    job = Job(id="j-7", name="name", user="ann", state=state, attempt=1)
    if state.holds_resources:
        job = replace(job, allocation=ALLOCATION, allocated_at=1.0)
    if state is S.RUNNING:
        job = replace(job, started_at=2.0)
    if state is S.STOPPING:
        job = replace(job, stopping_for=EndReason.STOPPED_BY_USER)
    return job


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("state", list(JobState))
def test_every_state_knows_its_events(state: JobState, event: str) -> None:
    job = in_state(state)
    expected = TABLE.get((state, event))
    if expected is None:
        with pytest.raises(InvalidTransition, match=f"j-7 is {state}"):
            advance(job, EVENTS[event])
    else:
        assert advance(job, EVENTS[event]).job.state is expected


class Life:
    """A job and the promises that hold after each of its events."""

    def __init__(self, max_retries: int) -> None:
        self.job = Job(id="j-7", name="name", user="ann", max_retries=max_retries)
        self.now = 0.0

    def meet(self, event: Event) -> None:
        before = self.job
        try:
            transition = advance(before, event)
        except InvalidTransition:
            assert self.job is before
            return
        self.job = transition.job
        self._check(before, event)
        for instruction in transition.instructions:
            assert isinstance(instruction, Launch | Stop)
            assert instruction.attempt_id == self.job.attempt_id

    def _check(self, before: Job, event: Event) -> None:
        job = self.job
        assert (job.allocation is None) == (not job.state.holds_resources)
        assert (job.allocated_at is None) == (job.allocation is None)
        assert (job.end_reason is not None) == job.state.is_ended
        assert (job.ended_at is not None) == job.state.is_ended
        assert (job.stopping_for is not None) == (job.state is S.STOPPING)
        assert job.attempt == before.attempt + isinstance(event, Planned)
        assert 0 <= job.retries <= job.max_retries
        if job.state is S.QUEUED:
            is_undone = isinstance(event, StartRequested) and job.queued_at == before.queued_at
            assert job.queued_at == event.at or is_undone
            assert job.started_at is None
            if job.faults > before.faults:
                assert job.not_before == event.at + backoff_seconds(job.faults)
        if job.state is S.COMPLETED:
            assert (job.end_reason, job.exit_code) == (EndReason.EXIT_CODE, 0)


@st.composite
def events(draw: st.DrawFn, at: float) -> Event:
    match draw(pick("start", "plan", "plan", "up", "stop", "end")):
        case "start":
            return StartRequested(at=at)
        case "plan":
            return Planned(at=at, allocation=ALLOCATION)
        case "up":
            return Up(at=at)
        case "stop":
            return StopRequested(at=at, reason=draw(pick(*EndReason)))
        case _:
            return Ended(at=at, reason=draw(pick(*EndReason)), exit_code=draw(pick(None, 0, 1)))


@given(st.data(), st.integers(0, 3))
def test_no_sequence_of_events_breaks_a_job(data: st.DataObject, max_retries: int) -> None:
    life = Life(max_retries)
    for moment in range(1, 25):
        life.meet(data.draw(events(float(moment))))


@pytest.mark.parametrize("reason", sorted(RETRIED))
def test_failures_of_the_platform_use_up_no_retries(reason: EndReason) -> None:
    job = advance(Job(id="j-1", name="name", user="ann", max_retries=2), StartRequested(at=0.0)).job
    for _ in range(3):
        job = advance(job, Planned(at=1.0, allocation=ALLOCATION)).job
        job = advance(job, Ended(at=2.0, reason=reason, message="gone")).job
    assert (job.state, job.attempt, job.message, job.retries, job.faults) == (S.QUEUED, 3, "gone", 0, 3)


def test_the_retry_avoids_what_failed() -> None:
    running = in_state(S.RUNNING)
    after_gpu = advance(running, Ended(at=3.0, reason=EndReason.GPU_FAILED)).job
    assert (after_gpu.avoid_gpus, after_gpu.avoid_nodes) == (("g1", "g2"), ())
    after_node = advance(running, Ended(at=3.0, reason=EndReason.NODE_LOST)).job
    assert (after_node.avoid_gpus, after_node.avoid_nodes) == ((), ("n1",))
    stopped = advance(after_node, StopRequested(at=4.0, reason=EndReason.STOPPED_BY_USER)).job
    assert advance(stopped, StartRequested(at=5.0)).job.avoid_nodes == (), "a new start forgets"


def test_a_retry_avoids_only_what_failed_where_that_is_known() -> None:
    gpu = StopRequested(at=3.0, reason=EndReason.GPU_FAILED, failed=("g2",), message="GPU g2 failed")
    stopping = advance(in_state(S.RUNNING), gpu).job
    assert (stopping.avoid_gpus, stopping.message) == (("g2",), "GPU g2 failed")
    back = advance(stopping, Ended(at=4.0, reason=EndReason.EXIT_CODE, exit_code=143, message="killed")).job
    assert (back.state, back.avoid_gpus, back.message) == (S.QUEUED, ("g2",), "GPU g2 failed")
    also = advance(stopping, replace(gpu, failed=("g1",))).job
    assert also.avoid_gpus == ("g1", "g2"), "one more fails while the job ends"
    with pytest.raises(InvalidTransition):
        advance(stopping, StopRequested(at=3.0, reason=EndReason.NODE_LOST, failed=("n1",)))
    node = StopRequested(at=3.0, reason=EndReason.NODE_LOST, failed=("n1",))
    moved = advance(advance(in_state(S.RUNNING), node).job, EVENTS["crash"]).job
    assert (moved.state, moved.avoid_nodes, moved.retries, moved.faults) == (S.QUEUED, ("n1",), 0, 1)


def test_a_preempted_job_comes_back_and_spends_no_retry() -> None:
    stopping = advance(in_state(S.RUNNING), EVENTS["preempt"]).job
    back = advance(stopping, Ended(at=11.0, reason=EndReason.EXIT_CODE, exit_code=143)).job
    assert (back.state, back.retries, back.not_before) == (S.QUEUED, 0, 0.0)


def test_a_persons_stop_outranks_a_preemption_but_not_the_other_way() -> None:
    preempted = advance(in_state(S.RUNNING), EVENTS["preempt"]).job
    stopped = advance(preempted, EVENTS["stop"]).job
    assert stopped.stopping_for is EndReason.STOPPED_BY_USER
    with pytest.raises(InvalidTransition):
        advance(stopped, EVENTS["preempt"])
    assert advance(stopped, EVENTS["exit"]).job.state is S.STOPPED


def test_the_platform_does_not_overrule_itself() -> None:
    """A job that ran over its time is not brought back by a preemption that comes while it ends."""
    stopping = advance(in_state(S.RUNNING), StopRequested(at=9.0, reason=EndReason.TIMED_OUT)).job
    with pytest.raises(InvalidTransition):
        advance(stopping, EVENTS["preempt"])
    assert advance(stopping, EVENTS["stop"]).job.stopping_for is EndReason.STOPPED_BY_USER


def test_a_run_over_its_time_has_failed() -> None:
    stopping = advance(in_state(S.RUNNING), StopRequested(at=9.0, reason=EndReason.TIMED_OUT)).job
    over = advance(stopping, Ended(at=9.5, reason=EndReason.EXIT_CODE, exit_code=143)).job
    assert (over.state, over.end_reason, over.exit_code) == (S.FAILED, EndReason.TIMED_OUT, 143)


def test_back_off_doubles_up_to_its_ceiling() -> None:
    waits = [backoff_seconds(retry) for retry in range(1, 12)]
    assert waits[0] == BACKOFF_SECONDS
    assert all(later == min(MAX_BACKOFF_SECONDS, 2 * sooner) for sooner, later in pairwise(waits))


def test_run_time_counts_for_the_rank_whether_it_was_saved_or_lost() -> None:
    job = Job(
        id="j-1", name="long", user="ann", state=JobState.RUNNING, attempt=1, allocation=ALLOCATION, started_at=100.0
    )
    stopping = advance(job, StopRequested(at=400.0, reason=EndReason.PREEMPTED, for_job="j-2")).job
    back = advance(stopping, Ended(at=430.0, reason=EndReason.EXIT_CODE, exit_code=143)).job
    assert (back.state, back.preemptions, back.preempted_for) == (JobState.QUEUED, 1, "j-2")
    assert (back.attained_seconds, back.saved_seconds) == (330.0, 0.0)
    again = advance(back, Planned(at=500.0, allocation=ALLOCATION)).job
    assert again.preempted_for is None, "what it gave up is settled"
    over = advance(advance(again, Up(at=500.0)).job, Ended(at=510.0, reason=EndReason.EXIT_CODE, exit_code=0)).job
    assert advance(over, StartRequested(at=600.0)).job.attained_seconds == 0.0


@pytest.mark.parametrize(
    ("saved_at", "saved"),
    [(None, 0.0), (250.0, 150.0), (400.0, 300.0), (410.0, 310.0)],
    ids=["never", "on its way", "at the warning", "in its grace time"],
)
def test_the_reached_work_counts_until_the_stop_request(saved_at: float | None, saved: float) -> None:
    job = Job(
        id="j-1", name="long", user="ann", state=JobState.RUNNING, attempt=1, allocation=ALLOCATION, started_at=100.0
    )
    stopping = advance(job, StopRequested(at=400.0, reason=EndReason.PREEMPTED, for_job="j-2")).job
    stopping = replace(stopping, checkpointed_at=saved_at)
    back = advance(stopping, Ended(at=430.0, reason=EndReason.EXIT_CODE, exit_code=143)).job
    assert (back.saved_seconds, back.reached_seconds) == (saved, 300.0), "what comes after the warning is no work"

    again = advance(advance(back, Planned(at=500.0, allocation=ALLOCATION)).job, Up(at=500.0)).job
    lost = advance(again, Ended(at=520.0, reason=EndReason.NODE_LOST)).job
    assert lost.reached_seconds == max(300.0, saved + 20.0), "attempts that were lost do not add up"
    far = advance(replace(again, checkpointed_at=900.0), Ended(at=1_000.0, reason=EndReason.NODE_LOST)).job
    assert (far.saved_seconds, far.reached_seconds) == (saved + 400.0, saved + 500.0)
    assert advance(replace(far, state=S.STOPPED), StartRequested(at=1_100.0)).job.reached_seconds == 0.0


GIVEN_BACK = Ended(at=120.0, reason=EndReason.PREEMPTED, message="Slurm did not begin it (job 7 waited: PartitionDown)")


def given_back(job: Job, times: int) -> list[Job]:
    """Planned and given back before it was up, so often; the job after each."""
    seen = []
    for _ in range(times):
        starting = advance(job, Planned(at=100.0, allocation=ALLOCATION)).job
        job = advance(starting, GIVEN_BACK).job
        seen.append(job)
    return seen


def test_a_job_that_its_cluster_gives_back_waits_longer_each_time_and_spends_no_retry() -> None:
    seen = given_back(in_state(S.QUEUED), 9)
    assert [job.not_before for job in seen[:5]] == [0.0, 125.0, 130.0, 140.0, 160.0]
    assert {job.not_before for job in seen[6:]} == {120.0 + MAX_GIVEN_BACK_SECONDS}
    assert {(job.state, job.retries, job.preemptions) for job in seen} == {(S.QUEUED, 0, 0)}
    assert [job.given_back for job in seen] == list(range(1, 10))
    assert {job.message for job in seen} == {GIVEN_BACK.message}


def test_job_that_has_run_resets_the_count_of_returns() -> None:
    often = given_back(in_state(S.QUEUED), 4)[-1]
    running = advance(advance(often, Planned(at=200.0, allocation=ALLOCATION)).job, Up(at=201.0)).job
    assert running.given_back == 0
    preempted = advance(running, Ended(at=300.0, reason=EndReason.PREEMPTED, message="for another")).job
    assert (preempted.given_back, preempted.not_before) == (0, 0.0), "it has run: it goes on at once"
    assert given_back(preempted, 1)[-1].not_before == 0.0


def test_a_failure_between_counts_as_a_failure_and_a_new_start_forgets_all() -> None:
    often = given_back(in_state(S.QUEUED), 4)[-1]
    lost = advance(
        advance(often, Planned(at=200.0, allocation=ALLOCATION)).job, Ended(at=210.0, reason=EndReason.LOST)
    ).job
    assert (lost.given_back, lost.faults, lost.not_before) == (0, 1, 210.0 + BACKOFF_SECONDS)
    stopped = advance(often, StopRequested(at=300.0, reason=EndReason.STOPPED_BY_USER)).job
    afresh = advance(stopped, StartRequested(at=400.0)).job
    assert (afresh.given_back, afresh.not_before) == (0, 0.0)


def test_message_of_the_cluster_before_the_start_ends_when_the_job_runs() -> None:
    starting = in_state(S.STARTING)
    waiting = replace(starting, message=f"{NOT_TAKEN}: no answer")
    assert advance(waiting, Up(at=5.0)).job.message == ""
    assert advance(replace(starting, message="node n1 is down"), Up(at=5.0)).job.message == "node n1 is down"


def test_a_stop_of_a_waiting_job_can_be_undone_for_a_minute() -> None:
    waiting = replace(Job(id="j-1", name="name", user="ann"), state=S.QUEUED, queued_at=100.0, aged_from=90.0)
    stopped = advance(waiting, StopRequested(at=500.0, reason=EndReason.STOPPED_BY_USER)).job
    again = advance(stopped, StartRequested(at=560.0)).job
    assert (again.state, again.queued_at, again.aged_from) == (S.QUEUED, 100.0, 90.0)
    late = advance(stopped, StartRequested(at=561.0)).job
    assert (late.queued_at, late.aged_from) == (561.0, 561.0)
    # A job that ran begins its wait anew.
    ran = advance(replace(stopped, started_at=200.0), StartRequested(at=501.0)).job
    assert ran.queued_at == 501.0
