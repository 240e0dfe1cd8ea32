"""The GPUs of a new reservation: what conflicts with it, and which GPUs it gets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from corral.core.model import Gpu, GpuHealth, JobState
from corral.core.scheduling.reservations.gpu_selection import (
    Conflicts,
    choose_gpus,
    conflicts_by_gpu,
    gpus_of,
    most_standing,
    standing_gpus,
)
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.snapshot.changes import PutReservation, PutRules
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import AllocationRules, Limits, PreemptionRules
from tests.unit.core.builders import node, running, snapshot_of


def wanted(**values: Any) -> Reservation:
    base = {"name": "new", "pool": "default", "gpus": (), "users": ("ann",), "since": 100.0, "until": 200.0}
    return Reservation(**{**base, **values})


def put(name: str, gpus: tuple[str, ...], **values: Any) -> PutReservation:
    return PutReservation(reservation=wanted(name=name, gpus=gpus, **values))


def chosen(
    snapshot: ClusterSnapshot, count: int, *, models: tuple[str, ...] = ("A10",), **values: Any
) -> tuple[str, tuple[str, ...]] | None:
    return choose_gpus(snapshot, "default", count, models=models, **{"taken": {}, **values})


def test_reservations_in_the_same_window_are_in_the_way() -> None:
    snapshot = snapshot_of(
        node("n1", 4),
        put("before", ("n1/0",), since=0.0, until=100.0),
        put("across", ("n1/1", "n1/2"), since=150.0, until=300.0),
        put("after", ("n1/3",), since=200.0, until=300.0),
        put("new", ("n1/0",)),
    )
    found = conflicts_by_gpu(snapshot, wanted(), 0.0)
    assert found == {gpu: Conflicts(reservations=("across",)) for gpu in ("n1/1", "n1/2")}


@pytest.mark.parametrize(
    ("job", "is_conflict"),
    [
        ({}, True),
        ({"user": "ann"}, False),
        ({"time_limit_seconds": 90.0}, False),
        ({"time_limit_seconds": 110.0}, True),
        ({"state": JobState.STOPPING}, False),
        ({"preemptible": True}, True),
    ],
)
def test_jobs_that_may_still_run_are_in_the_way(job: dict[str, Any], is_conflict: bool) -> None:
    snapshot = snapshot_of(node("n1", 2), running(1, {"n1": (0,)}, **{"preemptible": False, **job}))
    found = conflicts_by_gpu(snapshot, wanted(lends=False), 0.0)
    assert found == ({"n1/0": Conflicts(jobs=("j-1",))} if is_conflict else {})


def test_a_preemptible_job_may_stay_on_gpus_that_are_lent() -> None:
    rules = PutRules(limits=Limits(), score_time_constant=3600.0, preemption=PreemptionRules(enabled=True))
    snapshot = snapshot_of(node("n1", 1), running(1, {"n1": (0,)}, preemptible=True), rules)
    assert conflicts_by_gpu(snapshot, wanted(lends=True), 0.0) == {}
    assert conflicts_by_gpu(snapshot, wanted(lends=False), 0.0) == {"n1/0": Conflicts(jobs=("j-1",))}


def test_whole_nodes_come_first_and_the_rest_fills_the_smallest_gap() -> None:
    snapshot = snapshot_of(node("n1", 4), node("n2", 2), node("n3", 1))
    assert chosen(snapshot, 1) == ("A10", ("n3/0",))
    assert chosen(snapshot, 2) == ("A10", ("n2/0", "n2/1"))
    assert chosen(snapshot, 5) == ("A10", ("n1/0", "n1/1", "n1/2", "n1/3", "n3/0"))
    assert chosen(snapshot, 8) is None


def test_free_gpus_come_before_used_ones_and_kept_ones_before_all() -> None:
    snapshot = snapshot_of(node("n1", 3), running(1, {"n1": (0,)}))
    assert chosen(snapshot, 2) == ("A10", ("n1/1", "n1/2"))
    assert chosen(snapshot, 3) == ("A10", ("n1/0", "n1/1", "n1/2"))
    assert chosen(snapshot, 1, keep=("n1/0",)) == ("A10", ("n1/0",))


def test_gpus_that_are_taken_or_unhealthy_are_not_chosen() -> None:
    suspect = replace(Gpu(id="n1/0", index=0, model="A10"), health=GpuHealth.SUSPECT)
    snapshot = snapshot_of(node("n1", (suspect, Gpu(id="n1/1", index=1, model="A10"))), node("n2", 1))
    assert chosen(snapshot, 2) == ("A10", ("n1/1", "n2/0"))
    assert chosen(snapshot, 2, taken={"n2/0": Conflicts(jobs=("j-1",))}) is None
    assert chosen(snapshot, 2, keep=("n1/0",)) == ("A10", ("n1/0", "n1/1"))


def test_all_gpus_are_of_one_model_with_the_most_free_gpus_if_several_fit() -> None:
    snapshot = snapshot_of(node("n1", 2, model="A10"), node("n2", 3, model="H100"), running(1, {"n1": (0,)}))
    assert chosen(snapshot, 1, models=("A10", "H100")) == ("H100", ("n2/0",))
    assert chosen(snapshot, 4, models=("A10", "H100")) is None


def test_the_gpus_of_a_pool_are_listed_by_node_and_index() -> None:
    snapshot = snapshot_of(node("n2", 1), node("n1", 2), node("n3", 1, pool="other"))
    assert [(name, gpu.id) for name, gpu in gpus_of(snapshot, "default")] == [
        ("n1", "n1/0"),
        ("n1", "n1/1"),
        ("n2", "n2/0"),
    ]
    assert [gpu.id for _, gpu in gpus_of(snapshot, "other", "A10")] == ["n3/0"]
    assert [*gpus_of(snapshot, "other", "H100")] == []


def test_standing_reservations_are_counted_against_their_part_of_the_pool() -> None:
    snapshot = snapshot_of(
        node("n1", 10),
        put("one", ("n1/0", "n1/1"), since=0.0, until=None),
        put("two", ("n1/2",), since=0.0, until=None),
        put("timed", ("n1/3",), since=0.0, until=50.0),
        PutRules(limits=Limits(), score_time_constant=3600.0, allocation=AllocationRules(reserved_ratio=0.3)),
    )
    assert standing_gpus(snapshot, "default", "", 0.0) == 3
    assert standing_gpus(snapshot, "default", "one", 0.0) == 1
    assert standing_gpus(snapshot, "other", "", 0.0) == 0
    assert most_standing(snapshot, "default") == 3, "30 % of 10, in spite of binary fractions"
