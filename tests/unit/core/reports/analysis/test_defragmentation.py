"""A plan against fragmentation can be carried out as it stands, and frees what it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import WHOLE, Job, JobKind, Queue
from corral.core.reports.analysis.defragmentation import MOVABLE_KINDS, plan_everywhere
from corral.core.reports.analysis.model import AnalysisInput, DefragmentationPlan
from corral.core.reports.analysis.present_fleet import fleet_now
from corral.core.scheduling.placement.search import find_place
from corral.core.snapshot.node_index import Fleet
from tests.unit.core.builders import node, running, waiting
from tests.unit.searching import between, pick

NOW = 100_000.0


def seen(nodes: list[Any], jobs: list[Job], most_moves: int = 10) -> AnalysisInput:
    found = AnalysisInput(
        since=0.0, until=NOW, nodes=tuple(nodes), jobs=tuple(jobs), queues={"default": Queue(name="default")}
    )
    return replace(found, rules=replace(found.rules, most_moves=most_moves))


def moves_of(plan: DefragmentationPlan) -> list[tuple[str, str, str]]:
    return [(move.job_id, move.from_node, move.to_node) for move in plan.moves]


def test_the_least_work_is_moved() -> None:
    nodes = [node("n1", gpus=4), node("n2", gpus=4)]
    jobs = [running(1, {"n1": (0, 1, 2)}), running(2, {"n2": (3,)}), waiting(3, gpus=4)]
    plan = plan_everywhere(seen(nodes, jobs))
    assert moves_of(plan) == [("j-2", "n2", "n1")]
    (freed,) = plan.frees
    assert (freed.node, len(freed.gpus), freed.free_before) == ("n2", 4, 3)
    assert plan.helps == ("j-3",)
    assert plan.lost_gpu_hours == 600 / 3600


def test_a_job_that_has_just_begun_loses_little() -> None:
    nodes = [node("n1", gpus=4), node("n2", gpus=4)]
    jobs = [running(1, {"n1": (0, 1)}), running(2, {"n2": (0, 1)}, started_at=NOW - 36)]
    plan = plan_everywhere(seen(nodes, jobs))
    assert moves_of(plan) == [("j-2", "n2", "n1")]
    assert plan.lost_gpu_hours == 2 * 36 / 3600


def test_immovable_jobs_stay() -> None:
    nodes = [node("n1", gpus=4), node("n2", gpus=4), node("n3", gpus=4)]
    jobs = [
        running(1, {"n1": (0, 1)}, kind=JobKind.WORKBENCH),
        running(2, {"n2": (0,), "n3": (0,)}, kind=JobKind.DISTRIBUTED),
    ]
    assert plan_everywhere(seen(nodes, jobs)) == DefragmentationPlan()


def test_labels_and_nodes_to_avoid_are_kept() -> None:
    nodes = [node("n1", gpus=4), node("n2", gpus=4), node("n3", gpus=4, labels=(("zone", "a"),))]
    jobs = [running(1, {"n1": (0, 1, 2)}), running(2, {"n2": (0,)}, avoid_nodes=("n1",)), running(3, {"n3": (0, 1, 2)})]
    plan = plan_everywhere(seen(nodes, jobs))
    assert moves_of(plan) == [("j-2", "n2", "n3")]


def test_never_more_moves_than_allowed() -> None:
    nodes = [node(f"n{place}", gpus=4) for place in range(1, 9)]
    jobs = [running(place, {f"n{place}": (0,)}) for place in range(1, 9)]
    assert len(plan_everywhere(seen(nodes, jobs)).moves) == 6
    assert len(plan_everywhere(seen(nodes, jobs, most_moves=3)).moves) == 3


@st.composite
def fleets(draw: st.DrawFn) -> AnalysisInput:
    """Nodes with jobs scattered over them as luck has it."""
    nodes = [
        node(f"n{place}", gpus=draw(pick(1, 4, 8)), cpu_milli=8000, memory_bytes=100)
        for place in range(draw(between(1, 7)))
    ]
    fleet = Fleet(nodes)
    jobs: list[Job] = []
    for serial in range(1, draw(between(0, 14)) + 1):
        kind = draw(pick(JobKind.TRAINING, JobKind.TRAINING, JobKind.PRESET, JobKind.WORKBENCH))
        home = draw(st.sampled_from(nodes))
        share = draw(pick(0, 0, 0, 250, 500))
        free = [
            index for index, gpu in enumerate(home.gpus) if fleet.slot(home.id).free_milli[gpu.id] >= (share or WHOLE)
        ]
        count = 1 if share else draw(between(1, 4))
        if len(free) < count:
            continue
        chosen = tuple(draw(st.permutations(free))[:count])
        job = running(
            serial,
            {home.id: chosen},
            kind=kind,
            gpu_milli=share,
            cpu_milli=draw(pick(0, 1000, 4000)),
            started_at=draw(st.floats(0, NOW)),
        )
        assert job.allocation is not None
        slot = fleet.slot(home.id)
        if slot.free_cpu_milli < job.request.cpu_milli:
            continue
        fleet.take(job.allocation)
        jobs.append(job)
    jobs += [waiting(100 + size, gpus=size) for size in draw(st.sets(st.sampled_from([1, 2, 4, 8])))]
    return seen(nodes, jobs)


@given(found=fleets())
def test_a_plan_can_be_carried_out_and_frees_what_it_claims(found: AnalysisInput) -> None:
    plan = plan_everywhere(found)
    jobs = {job.id: job for job in found.jobs}
    fleet = fleet_now(found)
    stuck = {
        job.id for job in found.jobs if job.allocation is None and find_place(fleet, job, "default", "pack") is None
    }
    assert len(plan.moves) <= found.rules.most_moves
    assert len({move.job_id for move in plan.moves}) == len(plan.moves), "no job is moved twice"
    for move in plan.moves:
        job = jobs[move.job_id]
        assert job.allocation == move.before
        assert job.kind in MOVABLE_KINDS
        (grant,) = move.after.grants
        assert (move.from_node, move.to_node) == (move.before.grants[0].node, grant.node)
        assert move.from_node != move.to_node
        assert move.after.total_gpu_milli == move.before.total_gpu_milli
        assert (grant.cpu_milli, grant.memory_bytes) == (job.request.cpu_milli, job.request.memory_bytes)
        # First the place is taken, then the old one given back: `take` raises when it is not free.
        slot = fleet.slot(grant.node)
        assert slot.free_cpu_milli >= grant.cpu_milli
        fleet.take(move.after)
        fleet.give_back(move.before)
    for freed in plan.frees:
        slot = fleet.slot(freed.node)
        assert slot.whole_gpus((freed.pool, freed.model)) == list(freed.gpus)
        assert freed.free_before < len(freed.gpus)
    assert {move.from_node for move in plan.moves} == {freed.node for freed in plan.frees}
    now_fit = {job_id for job_id in stuck if find_place(fleet, jobs[job_id], "default", "pack") is not None}
    assert set(plan.helps) == now_fit
