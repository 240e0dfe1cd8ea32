"""The planned start of one job: when, where, what is held for it, and whether it is firm."""

from __future__ import annotations

import math
from dataclasses import replace

from corral.core.model import WHOLE, Job, Prediction
from corral.core.scheduling.backfill.planned_allocation import (
    PlannedAllocation,
    end_if_started,
    free_part,
    likely_end_if_started,
    still_held,
)
from corral.core.scheduling.backfill.planned_start import AllocationEnd, PlannedStartSearch
from corral.core.scheduling.placement.search import find_place
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.scheduling.reservations.reservations import Reserved
from corral.core.snapshot.changes import PutReservation
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from tests.unit.core.builders import node, running, snapshot_of, waiting

NOW = 10.0
PREDICTION = Prediction(p50_seconds=50.0, p90_seconds=90.0, samples=5)


def search(snapshot: ClusterSnapshot, **values: object) -> PlannedStartSearch:
    return PlannedStartSearch(snapshot=snapshot, now=NOW, reserved=Reserved(snapshot, NOW), **values)  # type: ignore[arg-type]


def found(snapshot: ClusterSnapshot, job: Job, **values: object) -> PlannedAllocation:
    planned = search(snapshot, **values).find(job, "default")
    assert planned is not None
    return planned


def test_ends_follow_from_time_limits_and_else_from_predictions() -> None:
    limited = waiting(1, time_limit_seconds=100.0, grace_seconds=5.0)
    predicted = waiting(2, predicted=PREDICTION, grace_seconds=5.0)
    assert end_if_started(limited, NOW) == likely_end_if_started(limited, NOW) == 115.0
    assert end_if_started(predicted, NOW) == math.inf
    assert likely_end_if_started(predicted, NOW) == 105.0
    assert likely_end_if_started(waiting(3), NOW) == math.inf


def test_the_start_is_the_end_that_frees_enough_gpus() -> None:
    snapshot = snapshot_of(
        node("n1", gpus=4),
        running(1, {"n1": (0,)}, time_limit_seconds=50.0),
        running(2, {"n1": (1, 2)}, time_limit_seconds=200.0),
    )
    planned = found(snapshot, waiting(3, gpus=2))
    assert (planned.at, planned.is_firm) == (50.0, True)
    assert set(planned.allocation.gpus) == {"n1/0", "n1/3"}
    assert planned.held.gpus == ("n1/3",), "only the GPU that is free now is held"
    assert found(snapshot, waiting(3, gpus=4)).at == 200.0


def test_without_a_time_limit_the_prediction_counts_and_the_start_is_not_firm() -> None:
    snapshot = snapshot_of(node("n1", gpus=1), running(1, {"n1": (0,)}, predicted=PREDICTION))
    planned = found(snapshot, waiting(2, gpus=1))
    assert (planned.at, planned.is_firm) == (90.0, False)


def test_without_any_known_end_the_free_gpus_of_the_fullest_match_are_held() -> None:
    snapshot = snapshot_of(node("n1", gpus=2), node("n2", gpus=2), running(1, {"n1": (0, 1)}), running(2, {"n2": (0,)}))
    planned = found(snapshot, waiting(3, gpus=2))
    assert planned.at == math.inf
    assert [grant.node for grant in planned.allocation.grants] == ["n2"]
    assert planned.held.gpus == ("n2/1",)


def test_the_soonest_start_of_several_models_counts() -> None:
    small = node("n3", gpus=1, model="T4")
    for ends, expected in (((50.0, 40.0), "n2"), ((40.0, 50.0), "n1"), ((40.0, 40.0), "n1"), ((None, 50.0), "n2")):
        snapshot = snapshot_of(
            node("n1", gpus=2, model="A10"),
            node("n2", gpus=2, model="H100"),
            small,
            running(1, {"n1": (0, 1)}, model="A10", time_limit_seconds=ends[0]),
            running(2, {"n2": (0, 1)}, model="H100", time_limit_seconds=ends[1]),
            running(3, {"n3": (0,)}, model="T4", time_limit_seconds=20.0),
        )
        planned = found(snapshot, waiting(4, gpus=2))
        assert [grant.node for grant in planned.allocation.grants] == [expected], ends
        assert planned.at == min(end for end in ends if end is not None)


def test_a_job_that_is_larger_than_every_node_gets_none() -> None:
    snapshot = snapshot_of(node("n1", gpus=2), running(1, {"n1": (0, 1)}, time_limit_seconds=50.0))
    assert search(snapshot).find(waiting(2, gpus=4), "default") is None
    assert search(snapshot).find(waiting(2, gpus=1), "elsewhere") is None


def test_a_gang_counts_nodes_that_have_room_now() -> None:
    snapshot = snapshot_of(node("n1", gpus=2), node("n2", gpus=2), running(1, {"n2": (0,)}, time_limit_seconds=70.0))
    planned = found(snapshot, waiting(2, gpus=2, nodes=2))
    assert planned.at == 70.0
    assert {grant.node for grant in planned.allocation.grants} == {"n1", "n2"}
    assert set(planned.held.gpus) == {"n1/0", "n1/1", "n2/1"}


def test_jobs_that_are_preempted_end_sooner() -> None:
    snapshot = snapshot_of(node("n1", gpus=1), running(1, {"n1": (0,)}, time_limit_seconds=500.0))
    planned = found(snapshot, waiting(2, gpus=1), sooner={"j-1": 40.0})
    assert (planned.at, planned.is_firm) == (40.0, False)


def test_starts_of_this_cycle_end_too() -> None:
    snapshot = snapshot_of(node("n1", gpus=1))
    allocation = find_place(snapshot.fleet, waiting(1, gpus=1), "default", "pack")
    assert allocation is not None
    snapshot.fleet.take(allocation)
    end = AllocationEnd(60.0, 1, allocation)
    assert found(snapshot, waiting(2, gpus=1), started=[end]).at == 60.0


def test_a_gpu_goes_to_one_planned_start_after_the_other() -> None:
    snapshot = snapshot_of(node("n1", gpus=1), running(1, {"n1": (0,)}, time_limit_seconds=50.0))
    first = found(snapshot, waiting(2, gpus=1, time_limit_seconds=30.0))
    assert first.at == 50.0
    assert first.ends_at == 80.0
    assert found(snapshot, waiting(3, gpus=1), others=[first]).at == 80.0


def test_a_start_is_not_planned_into_a_reserved_window() -> None:
    reservation = Reservation(
        name="class", pool="default", gpus=("n1/0",), users=("bob",), since=60.0, until=100.0, lends=False
    )
    snapshot = snapshot_of(
        node("n1", gpus=1),
        PutReservation(reservation=reservation),
        running(1, {"n1": (0,)}, time_limit_seconds=50.0),
    )
    assert found(snapshot, waiting(2, gpus=1, time_limit_seconds=30.0)).at == 100.0, "it would run into the window"
    assert found(snapshot, waiting(2, gpus=1, time_limit_seconds=10.0)).at == 50.0
    assert found(snapshot, waiting(2, user="bob", gpus=1, time_limit_seconds=30.0)).at == 50.0


def test_only_missing_cpus_and_memory_are_held() -> None:
    snapshot = snapshot_of(
        node("n1", gpus=2, cpu_milli=8 * WHOLE, memory_bytes=100),
        running(1, {"n1": (0,)}, cpu_milli=4 * WHOLE, memory_bytes=60, time_limit_seconds=50.0),
    )
    planned = found(snapshot, waiting(2, gpus=2, cpu_milli=6 * WHOLE, memory_bytes=50))
    (host,) = [grant for grant in planned.held.grants if not grant.gpus]
    assert (planned.at, host.cpu_milli, host.memory_bytes) == (50.0, 2 * WHOLE, 0)


def test_the_held_part_shrinks_with_what_is_free() -> None:
    snapshot = snapshot_of(node("n1", gpus=2), running(1, {"n1": (0,)}, time_limit_seconds=50.0))
    planned = found(snapshot, waiting(2, gpus=2))
    assert planned.held.gpus == ("n1/1",)
    assert free_part(snapshot.fleet, planned.allocation).gpus == ("n1/1",)
    snapshot.fleet.take(planned.held)
    assert free_part(snapshot.fleet, planned.allocation).gpus == ()
    assert still_held(snapshot.fleet, planned).held.gpus == ()
    assert still_held(snapshot.fleet, planned).allocation == planned.allocation


def test_the_job_itself_is_returned_and_not_the_confined_one() -> None:
    job = waiting(2, gpus=1)
    snapshot = snapshot_of(node("n1", gpus=1), running(1, {"n1": (0,)}, time_limit_seconds=50.0))
    assert found(snapshot, job).job is job
    avoiding = replace(job, avoid_nodes=("n1",))
    assert search(snapshot).find(avoiding, "default") is None
