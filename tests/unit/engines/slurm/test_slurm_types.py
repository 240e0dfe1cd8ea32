"""Nodes with several types of GPUs: what is asked of Slurm, and whose GPUs are whose."""

from __future__ import annotations

import pytest

from corral.engines.slurm.cluster.nodes import FleetRules, gpus_asked, model_of, nodes_seen, others_use
from corral.engines.slurm.slurm_api.slurm_records import SlurmJob, SlurmNode, gpus_in

#: as Slurm lists its types, which is also how it numbers the devices
MIXED = SlurmNode(name="n1", state="IDLE", gpus={"V100": 2, "a100": 3})
PLAIN = SlurmNode(name="n2", state="IDLE", gpus={"a100": 4})
UNTYPED = SlurmNode(name="n3", state="IDLE", gpus={"": 4})
NODES = {node.name: node for node in (MIXED, PLAIN, UNTYPED)}


def ids(text: str) -> dict[str, tuple[str, ...]]:
    """`n1:0,1 n2:3` by node."""
    plan = dict(part.split(":") for part in text.split())
    return {node: tuple(f"{node}-gpu{index}" for index in found.split(",") if index) for node, found in plan.items()}


@pytest.mark.parametrize(
    ("plan", "asked"),
    [
        ("n1:0,1", {"V100": 2}),
        ("n1:2", {"a100": 1}),
        # two types that corral calls by one name
        ("n1:1,2,3", {"V100": 1, "a100": 2}),
        # of one type only: nothing needs to be said
        ("n2:0,3", {"": 2}),
        ("n3:0", {"": 1}),
        # a gang is asked for the same everywhere
        ("n1:2,3 n2:0,1", {"a100": 2}),
        ("n1:0 n2:0", {"": 1}),
        ("n1:", {}),
        ("n2:", {}),
        # nothing is known of it
        ("n9:0,1", {"": 2}),
    ],
)
def test_slurm_is_asked_for_the_type_where_a_node_has_several(plan: str, asked: dict[str, int]) -> None:
    assert gpus_asked(ids(plan), NODES) == asked


def test_a_gpu_is_of_the_type_that_slurm_lists_at_its_place() -> None:
    rules = FleetRules(models={"A100": "A100-80G"})
    (node,) = nodes_seen([MIXED], {}, {}, rules)
    assert [(gpu.index, gpu.model) for gpu in node.gpus] == [
        (0, "V100"),
        (1, "V100"),
        (2, "A100-80G"),
        (3, "A100-80G"),
        (4, "A100-80G"),
    ]
    assert [model_of(kind, rules) for kind in ("a100", "A100", "h200", "")] == ["A100-80G", "A100-80G", "H200", "GPU"]


@pytest.mark.parametrize(
    ("theirs", "count", "named", "taken"),
    [
        # as Slurm says
        ({0}, 1, (), {0}),
        ({0, 4}, 2, (), {0, 4}),
        # a plan of corral's has named the very one: another of the same type
        ({0}, 1, (0,), {1}),
        ({2}, 1, (2,), {4}),
        # all of that type are named: none of another type, but what a plan waits for
        ({0}, 1, (0, 1), {0}),
        # some are reported by index, others only counted
        ({0}, 2, (), {0, 4}),
        (set(), 2, (), {3, 4}),
    ],
)
def test_gpus_of_other_jobs_are_counted_by_type(
    theirs: set[int], count: int, named: tuple[int, ...], taken: set[int]
) -> None:
    job = SlurmJob(
        id=1, name="theirs", state="RUNNING", nodes=("n1",), gpus=count, gpu_indexes={"n1": frozenset(theirs)}
    )
    plans = {"n1": frozenset(f"n1-gpu{index}" for index in named)}
    (node,) = nodes_seen([MIXED], others_use([job], own=()), plans, FleetRules())
    assert set(node.taken.gpus) == {f"n1-gpu{index}" for index in taken}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("cpu=1,gres/gpu=8,gres/gpu:a100=8", 8),
        # Slurm counts only the configured types
        ("cpu=1,gres/gpu=8,gres/gpu:a100=4", 8),
        ("cpu=1,gres/gpu=8,gres/gpu:a100=4,gres/gpu:v100=4", 8),
        ("cpu=1,gres/gpu:a100=4", 4),
    ],
)
def test_gpus_of_types_that_slurm_does_not_count_are_counted(text: str, count: int) -> None:
    assert sum(gpus_in(text).values()) == count
