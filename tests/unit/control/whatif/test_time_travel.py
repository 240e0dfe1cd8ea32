"""Looking back: the snapshot of a past time is the one of that time, as far as the journal has it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.control.errors import Invalid, NotFound
from corral.control.live import journal
from corral.control.live.journal import JournalBroken, JournalWriter
from corral.control.live.state import State
from corral.control.records import CycleRecord
from corral.control.system.policies import Policies
from corral.control.whatif.time_travel import Tail, read_run, snapshot_at, tail_of, why_then
from corral.core.model import (
    EndReason,
    Job,
    JobState,
    Queue,
    Request,
)
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.explain.reasons import explain
from corral.core.snapshot.changes import Change, DropJob, PutJob, PutLastNode, PutNode, PutQueue, PutRules
from corral.core.snapshot.installation import Limits
from corral.core.snapshot.journal import Digest, condensed, decode_changes, encode_changes
from corral.simulator.simulation import Arrival, Simulation
from tests.unit.core.builders import node
from tests.unit.core.strategies import History, histories
from tests.unit.searching import DEAR


class Recorded:
    """The journal that the live system would have stored for a history, and the live jobs after each step."""

    def __init__(self, history: History) -> None:
        state, writer = State(Policies()), JournalWriter()
        state.apply([*history.cluster, PutLastNode(id="")])
        self.cycles: list[CycleRecord] = []
        #: when, and the live jobs before the plan of that moment was applied
        self.seen: list[tuple[float, dict[str, Job]]] = []

        def observe(changes: list[Change]) -> None:
            state.note(changes)

        for step in Simulation(snapshot=state.snapshot, arrivals=history.arrivals, observer=observe):
            self.seen.append((step.at, dict(state.snapshot.jobs)))
            if step.plan.starts or step.plan.resizes or step.plan.preemptions:
                self.cycles.append(replace(writer.entry(state, step.plan), id=len(self.cycles) + 1))
        self.state = state
        self.tail = tail_of(state)

    def run_until(self, at: float) -> list[CycleRecord]:
        """The entries as the store returns them."""
        last = max((place for place, cycle in enumerate(self.cycles) if cycle.at <= at), default=None)
        if last is None:
            return []
        base = max(place for place in range(last + 1) if self.cycles[place].is_base)
        return self.cycles[base : last + 2]


@DEAR
@given(histories(), st.sampled_from([200_000, 5]))
def test_the_snapshot_of_a_cycle_is_the_one_it_decided_from(history: History, changes_per_base: int) -> None:
    before = journal.CHANGES_PER_BASE
    journal.CHANGES_PER_BASE = changes_per_base
    try:
        recorded = Recorded(history)
    finally:
        journal.CHANGES_PER_BASE = before
    for cycle in recorded.cycles:
        past = snapshot_at(recorded.run_until(cycle.at), cycle.at, recorded.tail)
        assert past.cycle.at == cycle.at
        assert past.cycle.at <= past.known_until <= cycle.at


@DEAR
@given(histories(), st.data())
def test_a_past_answer_uses_nothing_of_later(history: History, data: st.DataObject) -> None:
    """Every job in the snapshot existed in this form at that time or before; no later one is in it."""
    recorded = Recorded(history)
    if not recorded.cycles:
        return
    at = data.draw(st.floats(recorded.cycles[0].at, recorded.seen[-1][0] + 10))
    past = snapshot_at(recorded.run_until(at), at, recorded.tail)
    assert past.known_until <= at
    for job in past.snapshot.jobs.values():
        assert job.created_at <= at
        assert job.allocated_at is None or job.allocated_at <= at
        assert job.started_at is None or job.started_at <= at
    # every job that had arrived by then, and has a time, is in the snapshot or has ended
    before = [jobs for seen_at, jobs in recorded.seen if seen_at <= at]
    if before and not past.uncertain:
        last_at = max(seen_at for seen_at, _ in recorded.seen if seen_at <= at)
        waiting = {job.id for job in before[-1].values() if job.state is JobState.QUEUED and job.created_at <= last_at}
        started = {job.id for job in past.snapshot.jobs.values() if job.state is not JobState.QUEUED}
        assert waiting <= past.snapshot.jobs.keys() | started


@DEAR
@given(histories())
def test_condensed_changes_equal_single_changes(history: History) -> None:
    recorded = Recorded(history)
    for cycle in recorded.cycles:
        run = [entry for entry in recorded.run_until(cycle.at) if entry.id <= cycle.id]
        digest = Digest()
        digest.add(condensed(entry.changes for entry in run))
        assert digest.hex() == cycle.digest


def story() -> Recorded:
    """One GPU, three jobs that each run for 100 s and arrive at 1, 2 and 130; nothing starts between 101 and 201."""
    cluster = (PutRules(limits=Limits(), score_time_constant=60.0), PutNode(node=node("n1", gpus=1)))
    arrivals = tuple(
        Arrival(job=Job(id=f"j-{n}", name="name", user="ann", request=Request(gpus=1), created_at=at), run_seconds=100)
        for n, at in ((1, 1.0), (2, 2.0), (3, 130.0))
    )
    return Recorded(History(cluster=(*cluster, PutQueue(queue=Queue(name="default"))), arrivals=arrivals))


def test_an_edit_without_a_time_is_not_taken_for_earlier_than_it_was() -> None:
    recorded = story()
    large = Job(id="j-9", name="name", user="ann", state=JobState.QUEUED, request=Request(gpus=4), created_at=310.0)
    recorded.state.apply([PutJob(job=large)])
    recorded.state.apply([PutJob(job=replace(large, request=Request(gpus=1)))])
    past = snapshot_at(recorded.run_until(320.0), 320.0, tail_of(recorded.state))
    assert past.snapshot.jobs["j-9"].request.gpus == 4
    assert past.uncertain == 1
    # Once a later change is recorded, the edit has happened.
    recorded.state.apply([PutJob(job=replace(large, id="j-10", created_at=330.0))])
    past = snapshot_at(recorded.run_until(340.0), 340.0, tail_of(recorded.state))
    assert past.snapshot.jobs["j-9"].request.gpus == 1
    assert past.uncertain == 0


def asked(recorded: Recorded, at: float, job_id: str) -> tuple[str, str]:
    """The state then, and the words."""
    stored = Job(id=job_id, name="name", user="ann", created_at={"j-1": 1.0, "j-2": 2.0, "j-3": 130.0}[job_id])
    ended = {"j-1": 101.0, "j-2": 201.0, "j-3": 301.0}[job_id]
    stored = replace(
        stored, state=JobState.COMPLETED, queued_at=stored.created_at, ended_at=ended, end_reason=EndReason.EXIT_CODE
    )
    answer = why_then(snapshot_at(recorded.run_until(at), at, recorded.tail), at, stored)
    return answer.job.state, answer.explanation.summary


def test_the_story_can_be_asked_at_every_moment() -> None:
    recorded = story()
    assert [cycle.at for cycle in recorded.cycles] == [1.0, 101.0, 201.0]
    assert asked(recorded, 1.0, "j-1") == ("running", "it did not wait then: it was running")
    state, words = asked(recorded, 50.0, "j-2")
    assert state == "queued"
    assert words == "needs 1 GPU on one node; 0 GPUs are free in pool default, at most 0 on one node"
    assert asked(recorded, 150.0, "j-1") == ("completed", "it did not wait then: it had ended (exit_code)")
    # it came after the last entry, and the next entry has it
    state, words = asked(recorded, 150.0, "j-3")
    assert (state, words[:11]) == ("queued", "needs 1 GPU")
    with pytest.raises(NotFound, match="did not exist then: it was created at 1970-01-01 00:02:10 UTC"):
        asked(recorded, 129.0, "j-3")


def test_changes_without_an_entry_are_read_from_memory() -> None:
    recorded = story()
    recorded.cycles = recorded.cycles[:2]
    later = Job(
        id="j-9", name="late", user="bob", request=Request(gpus=1), created_at=140.0, queued_at=140.0,
        state=JobState.QUEUED,
    )  # fmt: skip
    digest = Digest()
    after = list(_changes_after(story()))
    digest.add(condensed(cycle.changes for cycle in recorded.cycles))
    digest.add([*after, PutJob(job=later)])
    tail = Tail(changes=(*after, PutJob(job=later)), digest=digest.hex())
    past = snapshot_at(recorded.run_until(145.0), 145.0, tail)
    assert past.snapshot.jobs["j-9"] == later
    assert past.known_until == 140.0
    # an entry was written meanwhile: what is in memory does not follow on this one
    stale = snapshot_at(recorded.run_until(145.0), 145.0, replace(tail, digest="0" * 32))
    assert "j-9" not in stale.snapshot.jobs


def _changes_after(whole: Recorded) -> Iterable[Change]:
    """The third entry reduced to the start of the second job."""
    changes = decode_changes(whole.cycles[2].changes)
    return [change for change in changes if isinstance(change, PutJob) and change.job.id == "j-2"][:2]


def test_past_explanation_equals_the_explanation_of_that_time() -> None:
    """The answer of the past is word for word that of the moment."""
    cluster: list[Change] = [
        PutRules(limits=Limits(max_gpus_per_user=3), score_time_constant=60.0),
        PutNode(node=node("n1", gpus=4)),
        PutQueue(queue=Queue(name="default", policy="fcfs")),
        PutLastNode(id=""),
    ]
    arrivals = [
        Arrival(
            job=Job(id=f"j-{n}", name="name", user=user, request=Request(gpus=gpus), created_at=float(n)),
            run_seconds=50.0,
        )
        for n, (user, gpus) in enumerate(
            [("ann", 2), ("ann", 2), ("bob", 1), ("bob", 3), ("zoe", 2), ("ann", 1)], start=1
        )
    ]
    state, writer = State(Policies()), JournalWriter()
    cycles: list[CycleRecord] = []
    state.apply(cluster)
    answers: list[tuple[float, str, str]] = []

    def observe(changes: list[Change]) -> None:
        state.note(changes)

    simulation = Simulation(snapshot=state.snapshot, arrivals=arrivals, observer=observe)
    for step in simulation:
        answers += [
            (step.at, job.id, explain(state.snapshot, step.plan, job, step.at).summary)
            for job in list(state.snapshot.jobs.values())
            if job.state is JobState.QUEUED and not any(start.job_id == job.id for start in step.plan.starts)
        ]
        if step.plan.starts:
            cycles.append(replace(writer.entry(state, step.plan), id=len(cycles) + 1))
    assert len(answers) > 10
    for at, job_id, summary in answers:
        kept = Recorded.__new__(Recorded)
        kept.cycles = cycles
        run = kept.run_until(at)
        past = snapshot_at(run, at, tail_of(state))
        assert why_then(past, at, past.snapshot.jobs[job_id]).explanation.summary == summary


def test_a_broken_journal_says_so() -> None:
    recorded = story()
    recorded.cycles[0] = replace(recorded.cycles[0], changes=encode_changes([DropJob(id="j-1")]))
    with pytest.raises(JournalBroken, match="cycle 2: digest"):
        snapshot_at(recorded.run_until(150.0), 150.0, recorded.tail)
    recorded.cycles[1] = replace(recorded.cycles[1], changes=b"?")
    with pytest.raises(JournalBroken, match="not readable"):
        snapshot_at(recorded.run_until(150.0), 150.0, recorded.tail)


class FakeCycles:
    def __init__(self, first: float | None) -> None:
        self.first = first

    def run_until(self, at: float) -> list[CycleRecord]:
        return []

    def first_base_at(self) -> float | None:
        return self.first


class FakeTables:
    def __init__(self, first: float | None) -> None:
        self.cycles = FakeCycles(first)


def test_times_without_an_answer_are_refused_with_the_reason() -> None:
    with pytest.raises(Invalid, match="in the future"):
        read_run(FakeTables(0.0), at=11.0, now=10.0)  # type: ignore[arg-type]
    with pytest.raises(NotFound, match="the journal begins at 1970-01-01 00:01:00 UTC"):
        read_run(FakeTables(60.0), at=5.0, now=100.0)  # type: ignore[arg-type]
    with pytest.raises(NotFound, match="the journal is empty"):
        read_run(FakeTables(None), at=5.0, now=100.0)  # type: ignore[arg-type]


def test_a_moment_can_be_looked_at_again_and_again() -> None:
    """Rebuilding does not change what it was built from."""
    recorded = story()
    run = recorded.run_until(150.0)
    plans = [schedule(snapshot_at(run, 150.0, recorded.tail).snapshot, 150.0) for _ in range(2)]
    assert plans[0] == plans[1]
    assert [planned.job_id for planned in plans[0].planned] == ["j-3"]
