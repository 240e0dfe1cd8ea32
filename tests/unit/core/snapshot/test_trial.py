"""A trial: what is taken, held, released and promised within it, and that all of it is undone."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from corral.core.jobs.allocation_change import together
from corral.core.model import Allocation, Elastic, Grant
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from tests.unit.core.builders import node, running, snapshot_of, waiting


def gpus(*names: str) -> Allocation:
    return Allocation(grants=(Grant(node="n1", gpus=names),), model="A10")


def state(snapshot: ClusterSnapshot) -> tuple[object, ...]:
    held = snapshot.held
    counts = ({k: v for k, v in held.by_user.items() if v}, {k: v for k, v in held.by_queue.items() if v})
    slots = [(dict(slot.free_milli), slot.free_cpu_milli, slot.free_memory_bytes) for slot in snapshot.fleet.slots]
    return slots, snapshot.fleet.last_place, held.total_gpu_milli, counts


@pytest.fixture
def snapshot() -> ClusterSnapshot:
    return snapshot_of(node("n1", gpus=4), running(1, {"n1": (0, 1)}, elastic=Elastic(min_gpus=1, max_gpus=4)))


def free(snapshot: ClusterSnapshot) -> list[str]:
    return [gpu for gpu, left in snapshot.fleet.slot("n1").free_milli.items() if left]


def test_everything_is_undone_even_after_an_error(snapshot: ClusterSnapshot) -> None:
    before, job = state(snapshot), snapshot.jobs["j-1"]
    with suppress(RuntimeError), snapshot.trial() as trial:
        trial.resize(job, replace(job, allocation=gpus("n1/0"), request=replace(job.request, gpus=1)))
        trial.start(waiting(2, gpus=1), gpus("n1/1"))
        trial.hold("j-3", gpus("n1/2"))
        trial.promise(waiting(4, gpus=2), gpus("n1/3"))
        assert free(snapshot) == []
        assert snapshot.held.total_gpu_milli == 4000, "one of each running job, two of the promised one"
        raise RuntimeError
    assert state(snapshot) == before


def test_a_hold_counts_for_no_limit_and_can_be_lifted(snapshot: ClusterSnapshot) -> None:
    with snapshot.trial() as trial:
        trial.hold("j-3", gpus("n1/2", "n1/3"))
        assert free(snapshot) == []
        assert snapshot.held.total_gpu_milli == 2000
        trial.lift("j-3")
        assert free(snapshot) == ["n1/2", "n1/3"]


def test_without_and_taken_hold_within_their_blocks_only(snapshot: ClusterSnapshot) -> None:
    job = snapshot.jobs["j-1"]
    assert job.allocation is not None
    with snapshot.trial() as trial:
        with trial.without([job.allocation], [job]), trial.taken([gpus("n1/3")]):
            assert free(snapshot) == ["n1/0", "n1/1", "n1/2"]
            assert snapshot.held.total_gpu_milli == 0
        assert free(snapshot) == ["n1/2", "n1/3"]
        assert snapshot.held.total_gpu_milli == 2000


def test_together_joins_gpus_of_one_node_and_grants_of_two() -> None:
    assert together(gpus("n1/0"), gpus("n1/0", "n1/2")).gpus == ("n1/0", "n1/2")
    other = Allocation(grants=(Grant(node="n2", gpus=("n2/0",)),), model="A10")
    assert [grant.node for grant in together(gpus("n1/0"), other).grants] == ["n1", "n2"]
