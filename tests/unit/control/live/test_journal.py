"""The journal: replayed, it gives the same plans; broken, it says so."""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from corral.control.live import journal
from corral.control.live.journal import JournalBroken, JournalWriter, replay
from corral.control.live.state import State
from corral.control.records import CycleRecord
from corral.control.system.policies import Policies
from corral.core.model import Elastic, Job, JobState, Queue, Request
from corral.core.scheduling.plan.plan import Plan, PreemptionRule
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.snapshot.changes import Change, PutJob, PutLastNode, PutNode, PutQueue, PutReservation, PutRules
from corral.core.snapshot.installation import AllocationRules, BackfillRules, Limits, PreemptionRules, Strategy
from corral.core.snapshot.journal import decode_changes, encode_changes
from corral.simulator.simulation import Arrival, Simulation
from tests.unit.core.builders import node
from tests.unit.core.strategies import History, histories
from tests.unit.searching import DEAR, pick


def recorded(history: History, *, every_step: bool = False) -> list[CycleRecord]:
    """The journal that the live system would have stored for a history."""
    state, writer = State(Policies()), JournalWriter()
    state.apply([*history.cluster, PutLastNode(id="")])

    def observe(changes: list[Change]) -> None:
        state.note(changes)

    simulation = Simulation(snapshot=state.snapshot, arrivals=history.arrivals, observer=observe)
    entries = [writer.entry(state, step.plan) for step in simulation if _decides(step.plan) or every_step]
    return [replace(entry, id=number) for number, entry in enumerate(entries, start=1)]


def _decides(plan: Plan) -> bool:
    return bool(plan.starts or plan.resizes or plan.preemptions)


@DEAR
@given(histories(), st.sampled_from([200_000, 5]))
def test_a_replay_decides_what_was_decided(history: History, changes_per_base: int) -> None:
    before = journal.CHANGES_PER_BASE
    journal.CHANGES_PER_BASE = changes_per_base
    try:
        cycles = recorded(history)
    finally:
        journal.CHANGES_PER_BASE = before
    replayed = list(replay(cycles))
    assert len(replayed) == len(cycles)
    assert all(item.decided == item.recorded for item in replayed)
    # Reading may begin at any base.
    bases = [place for place, cycle in enumerate(cycles) if cycle.is_base]
    assert [item.decided for item in replay(cycles[bases[-1] :] if bases else [])] == [
        item.decided for item in replayed[bases[-1] if bases else 0 :]
    ]


@DEAR
@given(histories(), st.data())
def test_a_lost_or_changed_input_is_noticed(history: History, data: st.DataObject) -> None:
    cycles = recorded(history, every_step=True)
    entry = data.draw(st.sampled_from(range(len(cycles))))
    changes = decode_changes(cycles[entry].changes)
    arrived = [change for change in changes if isinstance(change, PutJob) and change.job.state is JobState.QUEUED]
    assume(arrived)
    lost = data.draw(st.sampled_from(arrived))
    if data.draw(pick(False, True)):
        put = [change for change in changes if change is not lost]
    else:
        put = [PutJob(job=replace(lost.job, priority=77)) if change is lost else change for change in changes]
    cycles[entry] = replace(cycles[entry], changes=encode_changes(put))
    with pytest.raises(JournalBroken, match=f"cycle {entry + 1}"):
        list(replay(cycles))


@DEAR
@given(histories(), st.integers(0, 400), st.integers(1, 255))
def test_damaged_bytes_are_noticed(history: History, place: int, flip: int) -> None:
    cycles = recorded(history, every_step=True)
    data = bytearray(cycles[0].changes)
    data[place % len(data)] ^= flip
    try:
        unharmed = zlib.decompress(bytes(data)) == zlib.decompress(cycles[0].changes)
    except zlib.error:
        unharmed = False
    assume(not unharmed)
    with pytest.raises(JournalBroken):
        list(replay([replace(cycles[0], changes=bytes(data))]))


def test_a_missing_entry_is_noticed() -> None:
    """The second of three jobs on one GPU leads to the third, and its entry is gone."""
    cluster = (PutRules(limits=Limits(), score_time_constant=60.0), PutNode(node=node("n1", gpus=1)))
    arrivals = tuple(
        Arrival(job=Job(id=f"j-{n}", name="name", user="ann", request=Request(gpus=1), created_at=n), run_seconds=5.0)
        for n in (1, 2, 3)
    )
    history = History(cluster=(*cluster, PutQueue(queue=Queue(name="default"))), arrivals=arrivals)
    cycles = recorded(history)
    assert [item.decided.starts[0].job_id for item in replay(cycles)] == ["j-1", "j-2", "j-3"]
    with pytest.raises(JournalBroken, match="cycle 3: digest"):
        list(replay([cycles[0], cycles[2]]))
    with pytest.raises(JournalBroken, match="cycle 2"):
        list(replay(cycles[1:]))
    with pytest.raises(JournalBroken, match="not readable"):
        list(replay([replace(cycles[0], plan=b"?")]))


def test_preemptions_resizes_and_reservations_are_kept_and_decided_again() -> None:
    """A queue reclaims its guarantee, an elastic job shrinks, and the owner of a reservation gets its GPUs."""
    cluster: tuple[Change, ...] = (
        PutRules(
            limits=Limits(),
            score_time_constant=60.0,
            preemption=PreemptionRules(enabled=True, min_run_seconds=10.0, margin=0.25),
            allocation=AllocationRules(strategy=Strategy.HYBRID, reserved_ratio=0.5),
            backfill=BackfillRules(protected=2),
        ),
        PutNode(node=node("n1", gpus=2)),
        PutNode(node=node("n2", gpus=4)),
        PutQueue(queue=Queue(name="default", policy="fcfs")),
        PutQueue(queue=Queue(name="owed", guaranteed_gpus=4, weight=2.0)),
        PutReservation(
            reservation=Reservation(
                name="zoes", pool="default", gpus=("n2/0",), users=("zoe",), since=0.0, until=5000.0, lends=False
            )
        ),
    )

    def arrival(number: int, at: float, gpus: int, **given: Any) -> Arrival:
        job = Job(id=f"j-{number}", name="name", user="ann", request=Request(gpus=gpus), created_at=at)
        return Arrival(job=replace(job, **given), run_seconds=300.0)

    arrivals = (
        arrival(1, 1.0, 2),
        arrival(2, 1.0, 1, elastic=Elastic(min_gpus=1, max_gpus=3)),
        arrival(3, 100.0, 2, queue="owed", user="bob"),
        arrival(4, 150.0, 1, user="zoe"),
        arrival(5, 200.0, 2, preemptible=False),
        # the elastic one has made room for the third already: this one needs more than that
        arrival(6, 250.0, 2, queue="owed", user="bob"),
    )
    cycles = recorded(History(cluster=cluster, arrivals=arrivals))
    replayed = list(replay(cycles))
    assert all(item.decided == item.recorded for item in replayed)
    preempted = [item for entry in replayed for item in entry.recorded.preemptions]
    assert [(item.rule, item.for_job) for item in preempted] == [(PreemptionRule.GUARANTEE, "j-6")]
    assert any(entry.recorded.resizes for entry in replayed)
    assert any(
        start.job_id == "j-4" and start.allocation.gpus == ("n2/0",)
        for entry in replayed
        for start in entry.recorded.starts
    )
    # what was lost cannot be left out unnoticed
    first = decode_changes(cycles[0].changes)
    without = [change for change in first if not isinstance(change, PutReservation)]
    with pytest.raises(JournalBroken, match="cycle 1: digest"):
        list(replay([replace(cycles[0], changes=encode_changes(without))]))
