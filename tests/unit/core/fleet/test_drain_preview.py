"""The preview of a drain: the jobs that still run, their losses, and their new places. It changes nothing."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.fleet.drain_preview import Capacity, Displaced, DrainPreview, Span, preview
from corral.core.model import EndReason, JobKind, JobState, Prediction
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.snapshot.changes import PutReservation
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from tests.unit.core.builders import node, running, snapshot_of, waiting
from tests.unit.core.recount import dump_snapshot
from tests.unit.core.strategies import History, histories
from tests.unit.searching import DEAR

NOW = 100.0


def after(p50: float, p90: float) -> Prediction:
    return Prediction(p50_seconds=p50, p90_seconds=p90, samples=5)


def drained(snapshot: ClusterSnapshot, at: float = NOW, known: dict[str, Prediction] | None = None) -> DrainPreview:
    return preview(snapshot, ["n1"], at, NOW, lambda job: (known or {}).get(job.id))


def test_an_empty_node_is_empty_now() -> None:
    found = drained(snapshot_of(node("n1", 4), node("n2", 4)))
    assert (found.empty_at, found.jobs, found.stranded) == (Span(p50=NOW, p90=NOW), (), ())
    assert found.capacity_after == {"default": Capacity(gpus=4, free=4)}


def test_present_jobs_are_placed_where_they_fit_the_oldest_first() -> None:
    snapshot = snapshot_of(
        node("n1", 4),
        node("n2", 4),
        running(1, {"n1": (0, 1)}, allocated_at=5.0, time_limit_seconds=500.0),
        running(2, {"n1": (2, 3)}, allocated_at=1.0),
        running(3, {"n2": (0, 1)}, time_limit_seconds=250.0),
    )
    older, younger = drained(snapshot).jobs
    assert (older.job.id, older.displaced, older.goes_to, older.back_at) == ("j-2", Displaced.SURELY, ("n2",), NOW)
    # The other one waits for what ends on n2.
    assert (younger.job.id, younger.gpus, younger.goes_to, younger.back_at) == (
        "j-1", ("n1/0", "n1/1"), ("n2",), 250.0,
    )  # fmt: skip
    assert drained(snapshot).capacity_after == {"default": Capacity(gpus=4, free=0)}
    assert drained(snapshot).empty_at is None


@pytest.mark.parametrize(
    ("known", "limit", "kind", "displaced"),
    [
        (None, 50.0, JobKind.TRAINING, Displaced.NO),
        (None, None, JobKind.TRAINING, Displaced.LIKELY),
        (None, None, JobKind.WORKBENCH, Displaced.SURELY),
        (after(300.0, 400.0), None, JobKind.TRAINING, Displaced.LIKELY),
        (after(50.0, 400.0), None, JobKind.TRAINING, Displaced.POSSIBLY),
        (after(50.0, 60.0), 5000.0, JobKind.TRAINING, Displaced.POSSIBLY),
    ],
)
def test_preview_shows_the_probability_that_a_job_still_runs(
    known: Prediction | None, limit: float | None, kind: JobKind, displaced: Displaced
) -> None:
    job = running(1, {"n1": (0,)}, time_limit_seconds=limit, kind=kind)
    found = drained(snapshot_of(node("n1", 4), node("n2", 4), job), 300.0, {"j-1": known} if known else None)
    assert found.jobs[0].displaced is displaced


def test_ends_follow_from_prediction_and_limit() -> None:
    snapshot = snapshot_of(
        node("n1", 4),
        running(1, {"n1": (0,)}, time_limit_seconds=150.0, grace_seconds=10.0),
        running(2, {"n1": (1,)}, state=JobState.STOPPING, stopping_for=EndReason.STOPPED_BY_USER, grace_seconds=30.0),
    )
    first, second = drained(snapshot, known={"j-1": after(20.0, 600.0)}).jobs
    # No job outlives its limit, whatever others took.
    assert (first.ends_at, first.limit_at) == (Span(p50=120.0, p90=160.0), 160.0)
    assert second.ends_at == Span(p50=100.0, p90=130.0)
    assert drained(snapshot, known={"j-1": after(20.0, 600.0)}).empty_at == Span(p50=120.0, p90=160.0)
    assert drained(snapshot).empty_at == Span(p50=160.0, p90=160.0)


def test_lost_work_is_the_unsaved_work() -> None:
    never, lately = running(1, {"n1": (0, 1)}), running(2, {"n1": (2,)}, checkpointed_at=70.0)
    snapshot = snapshot_of(node("n1", 4), never, lately)
    assert [job.lost_gpu_seconds for job in drained(snapshot).jobs] == [200.0, 30.0]
    # Later on, one that saves will have saved again.
    assert [job.lost_gpu_seconds for job in drained(snapshot, 300.0).jobs] == [600.0, 30.0]


def test_a_gang_moves_as_a_whole() -> None:
    snapshot = snapshot_of(*(node(name, 2) for name in ("n1", "n2", "n3")), running(1, {"n1": (0, 1), "n2": (0, 1)}))
    (job,) = drained(snapshot).jobs
    assert job.gpus == ("n1/0", "n1/1")
    assert {*(job.goes_to or ())} == {"n2", "n3"}
    assert job.lost_gpu_seconds == 400.0


def test_no_job_is_sent_to_what_is_reserved_for_others() -> None:
    mine = Reservation(name="demo", pool="default", gpus=("n2/0", "n2/1"), users=("zoe",), since=0.0, until=900.0)
    snapshot = snapshot_of(
        node("n1", 2), node("n2", 2), PutReservation(reservation=mine), running(1, {"n1": (0, 1)}, preemptible=False)
    )
    (job,) = drained(snapshot).jobs
    assert (job.goes_to, job.back_at) == (("n2",), 900.0)


def test_jobs_that_fit_nowhere_else() -> None:
    snapshot = snapshot_of(
        node("n1", 8),
        node("n2", 4),
        running(1, {"n1": tuple(range(8))}),
        waiting(2, gpus=8, models=("A10",)),
        waiting(3, gpus=4),
        waiting(4, gpus=16),
        waiting(5, nodes=2, gpus=1),
    )
    found = drained(snapshot)
    assert [(item.job.id, item.detail) for item in found.stranded] == [
        ("j-2", "without n1 no node of pool default can hold 8 A10 GPUs"),
        ("j-5", "without n1 no node of pool default can hold 1 GPU on each of 2 nodes"),
    ]
    (displaced,) = found.jobs
    assert (displaced.goes_to, displaced.back_at) == (None, None)


def test_jobs_that_end_before_the_drain_make_room() -> None:
    snapshot = snapshot_of(node("n1", 2), node("n2", 2), running(1, {"n1": (0, 1)}), running(2, {"n2": (0, 1)}))
    assert drained(snapshot, 300.0).jobs[0].goes_to is None
    assert drained(snapshot, 300.0, {"j-2": after(50.0, 100.0)}).jobs[0].goes_to == ("n2",)


@DEAR
@given(history=histories(), later=st.sampled_from([0.0, 7.0, 30.0]), guess=st.sampled_from([None, (2.0, 9.0)]))
def test_asking_changes_nothing_and_promises_nothing_impossible(
    history: History, later: float, guess: tuple[float, float] | None
) -> None:
    simulation = history.simulation()
    snapshot = simulation.snapshot
    known = None if guess is None else after(*guess)
    for number, step in enumerate(simulation):
        if number % 5:
            continue
        before = dump_snapshot(snapshot)
        free = [dict(slot.free_milli) for slot in snapshot.fleet.slots]
        for node_id in list(snapshot.nodes)[:2]:
            found = preview(snapshot, [node_id], step.at + later, step.at, lambda job: known)
            for item in found.jobs:
                assert node_id not in (item.goes_to or ())
                assert (item.goes_to is None) == (item.back_at is None)
                assert item.back_at is None or found.at <= item.back_at < math.inf
                assert item.lost_gpu_seconds >= 0.0
            assert all(capacity.free <= capacity.gpus for capacity in found.capacity_after.values())
        assert dump_snapshot(snapshot) == before
        assert [dict(slot.free_milli) for slot in snapshot.fleet.slots] == free
        assert schedule(snapshot, step.at) == step.plan


def test_nodes_that_are_drained_together_take_no_jobs_from_each_other() -> None:
    snapshot = snapshot_of(
        node("n1", 4),
        node("n2", 4),
        node("n3", 2),
        running(1, {"n1": (0, 1)}, allocated_at=1.0),
        running(2, {"n2": (0, 1)}, allocated_at=2.0),
    )
    # One by one both would find room; together only the first does.
    assert drained(snapshot).jobs[0].goes_to is not None
    found = preview(snapshot, ["n1", "n2"], NOW, NOW, lambda job: None)
    assert [(item.job.id, item.goes_to) for item in found.jobs] == [("j-1", ("n3",)), ("j-2", None)]
    assert found.capacity_after == {"default": Capacity(gpus=2, free=0)}
