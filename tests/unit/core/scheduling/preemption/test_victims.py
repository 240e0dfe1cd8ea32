"""Victims on one node and on several: the cheapest, and no more than needed, for any number of candidates."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import WHOLE, Job, Queue, Request
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.plan.plan import PreemptionRule
from corral.core.scheduling.preemption.victims import Candidate, choose_victims, loss_of
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from tests.unit.core.builders import node, running, snapshot_of, waiting
from tests.unit.core.scheduling.preemption.test_moves import NOW, rules, runs_for, small

SHORT = Queue(name="short", policy="shortest", preempts=True)


def candidate(job: Job, lost: float) -> Candidate:
    return Candidate(job=job, rule=PreemptionRule.ORDER, lost_gpu_seconds=lost, detail=lambda: "")


def chosen(snapshot: ClusterSnapshot, asks: Job, candidates: Sequence[Candidate]) -> list[str] | None:
    before = [(slot.free_cpu_milli, slot.free_memory_bytes, dict(slot.free_milli)) for slot in snapshot.fleet.slots]
    found = choose_victims(snapshot.fleet, asks, "default", candidates)
    after = [(slot.free_cpu_milli, slot.free_memory_bytes, dict(slot.free_milli)) for slot in snapshot.fleet.slots]
    assert after == before, "looking changes nothing"
    return None if found is None else sorted(one.job.id for one in found)


def without(snapshot: ClusterSnapshot, gone: Sequence[Candidate], asks: Request) -> bool:
    """Whether an instance fits on each of as many nodes as are asked for, counted from the jobs alone."""
    ids = {one.job.id for one in gone}
    ready = 0
    for place in snapshot.nodes.values():
        free = {gpu.id: WHOLE for gpu in place.gpus}
        for job in snapshot.jobs.values():
            for grant in job.allocation.grants if job.allocation and job.id not in ids else ():
                for gpu in grant.gpus if grant.node == place.id else ():
                    free[gpu] -= grant.gpu_milli
        if asks.gpu_milli:
            ready += any(left >= asks.gpu_milli for left in free.values())
        else:
            ready += sum(left == WHOLE for left in free.values()) >= asks.gpus
    return ready >= asks.nodes


def test_victims_with_the_least_lost_work_are_chosen() -> None:
    jobs = [running(number, {"n1": (number,)}) for number in range(4)]
    snapshot = snapshot_of(node("n1", 4), *jobs)
    candidates = [candidate(job, lost) for job, lost in zip(jobs, (40.0, 10.0, 30.0, 20.0), strict=True)]
    assert chosen(snapshot, waiting(9, gpus=2), candidates) == ["j-1", "j-3"]
    assert chosen(snapshot, waiting(9, gpus=5), candidates) is None, "all of them together would not do"


def test_expensive_victim_beats_many_cheap_ones_that_cost_more() -> None:
    shares = [running(number, {"n1": (0,)}, gpu_milli=100) for number in range(10)]
    whole = running(20, {"n1": (1,)})
    snapshot = snapshot_of(node("n1", 2), *shares, whole)
    cheap = [candidate(job, 5.0) for job in shares]
    assert chosen(snapshot, waiting(30, gpus=1), [*cheap, candidate(whole, 49.0)]) == ["j-20"]
    assert len(chosen(snapshot, waiting(30, gpus=1), [*cheap, candidate(whole, 51.0)]) or ()) == 10


def test_a_gang_that_must_go_anyway_spares_others() -> None:
    gang = running(1, {"n1": (0,), "n2": (0,)})
    single = running(2, {"n2": (1,)})
    snapshot = snapshot_of(node("n1", 1), node("n2", 2), gang, single)
    assert chosen(snapshot, waiting(3, gpus=1, nodes=2), [candidate(gang, 9.0), candidate(single, 1.0)]) == ["j-1"]


@pytest.mark.parametrize("count", [100, 1_000, 3_000])
def test_a_node_with_thousands_of_shares_is_no_problem(count: int) -> None:
    """Before, one share more than Python's recursion limit ended the cycle."""
    gpus = 32
    shares = [
        running(number, {"n1": (number % gpus,)}, gpu_milli=10, started_at=float(number)) for number in range(count)
    ]
    snapshot = snapshot_of(node("n1", gpus), *shares)
    candidates = [candidate(job, float(job.serial % 7)) for job in shares]
    asks = waiting(count + 1, gpus=4)
    found = choose_victims(snapshot.fleet, asks, "default", candidates)
    assert found is not None
    assert without(snapshot, found, asks.request)
    assert all(not without(snapshot, [one for one in found if one is not spared], asks.request) for spared in found)


def test_a_whole_cycle_over_more_shares_than_python_recurses() -> None:
    count = sys.getrecursionlimit() + 500
    gpus = 16
    shares = [
        small(number, {"n1": (number % gpus,)}, left=1e6, gpu_milli=10, checkpointed_at=NOW - number)
        for number in range(1, count + 1)
    ]
    urgent = waiting(count + 1, queue="short", gpus=8, predicted=runs_for(10.0))
    snapshot = snapshot_of(rules(), SHORT, node("n1", gpus), *shares, urgent)
    plan = schedule(snapshot, NOW)
    assert {one.for_job for one in plan.preemptions} == {urgent.id}
    assert len(plan.preemptions) == len({one.job_id for one in plan.preemptions})


@given(st.data())
def test_on_small_nodes_no_set_is_cheaper(data: st.DataObject) -> None:
    """Against all sets of candidates: exact for jobs on one node."""
    random = Random(data.draw(st.integers(0, 2**32)))
    gpus = random.randint(1, 4)
    jobs: list[Job] = []
    free = dict.fromkeys(range(gpus), WHOLE)
    for number in range(1, random.randint(2, 9)):
        gpu, milli = random.randrange(gpus), random.choice((100, 250, 500, WHOLE))
        if free[gpu] >= milli:
            free[gpu] -= milli
            share = 0 if milli == WHOLE else milli
            jobs.append(running(number, {"n1": (gpu,)}, gpu_milli=share, allocated_at=float(random.randint(0, 3))))
    snapshot = snapshot_of(node("n1", gpus), *jobs)
    candidates = [candidate(job, float(random.randint(0, 5))) for job in jobs]
    asks = waiting(99, gpus=random.randint(1, gpus)) if random.random() < 0.6 else waiting(99, gpu_milli=400)
    enough = [
        found
        for size in range(len(candidates) + 1)
        for found in combinations(candidates, size)
        if without(snapshot, found, asks.request)
    ]
    found = choose_victims(snapshot.fleet, asks, "default", candidates)
    if not enough:
        assert found is None
    elif min(map(loss_of, enough)).jobs:
        assert found is not None
        assert loss_of(found) == min(map(loss_of, enough))


@given(
    st.integers(0, 2**32), st.sampled_from([3, 30, 300, 1_200]), st.integers(1, 3), st.sampled_from([10, 20, 250, 1000])
)
def test_victims_are_sufficient_and_none_is_superfluous(seed: int, count: int, nodes: int, milli: int) -> None:
    random = Random(seed)
    per_node = 8
    slots = [(place, gpu) for place in range(3) for gpu in range(per_node) for _ in range(WHOLE // milli)]
    random.shuffle(slots)
    jobs = [
        running(number, {f"n{place}": (gpu,)}, gpu_milli=0 if milli == WHOLE else milli)
        for number, (place, gpu) in enumerate(slots[:count], 1)
    ]
    snapshot = snapshot_of(*(node(f"n{place}", per_node) for place in range(3)), *jobs)
    candidates = [candidate(job, float(random.randint(0, 50))) for job in jobs if random.random() < 0.9]
    asks = waiting(9_999, gpus=random.randint(1, per_node), nodes=nodes)
    if without(snapshot, [], asks.request):
        return  # the job would start, and needs no victims
    found = choose_victims(snapshot.fleet, asks, "default", candidates)
    assert (found is not None) == without(snapshot, candidates, asks.request)
    if found:
        assert without(snapshot, found, asks.request)
        some = random.sample(found, min(5, len(found)))
        assert all(not without(snapshot, [one for one in found if one is not spared], asks.request) for spared in some)
