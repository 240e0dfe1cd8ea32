"""A cluster that is not: what changes, what stays, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from corral.core.model import Blocking, JobKind, Node, Queue
from corral.core.people.quota import Quota
from corral.core.snapshot.changes import Change, PutNode, PutQueue, PutQuota, PutRules
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import Limits, PreemptionRules
from corral.core.whatif.scenario import BadScenario, check, cluster_of, describe, policies_of, ruled, scenario_of
from tests.unit.core.builders import node

CLUSTER: list[Change] = [
    PutRules(limits=Limits(max_gpus_per_user=8), score_time_constant=60.0),
    PutQueue(queue=Queue(name="default", max_gpus=16)),
    PutQueue(queue=Queue(name="research", policy="fcfs")),
    PutQuota(user="ann", kind=JobKind.TRAINING, quota=Quota(gpu_milli=2000, cpu_milli=5)),
    *(PutNode(node=node(f"n{number}", gpus=4)) for number in range(1, 5)),
]


def snapshot(**plain: Any) -> ClusterSnapshot:
    return ClusterSnapshot(cluster_of(scenario_of(plain), CLUSTER))


def test_an_empty_scenario_is_the_cluster_as_it_is() -> None:
    assert scenario_of({}).is_empty
    assert describe(scenario_of({})) == "as it is"
    assert set(map(repr, cluster_of(scenario_of({}), CLUSTER))) == set(map(repr, CLUSTER))


def test_queues_change_all_together_and_one_by_one() -> None:
    changed = snapshot(
        queues={"*": {"policy": "shortest", "blocking": "strict"}, "research": {"policy": "priority", "max_gpus": 4}}
    )
    assert changed.queues["default"] == Queue(name="default", policy="shortest", blocking=Blocking.STRICT, max_gpus=16)
    assert changed.queues["research"].policy == "priority"
    assert changed.queues["research"].max_gpus == 4
    assert snapshot(queues={"default": {"max_gpus": 0}}).queues["default"].max_gpus is None


def test_rules_quotas_and_limits() -> None:
    changed = snapshot(
        score_memory_seconds=3600,
        preemption={"enabled": True, "min_run_seconds": 5},
        protected_starts=3,
        limits={"max_gpus_per_user": 0, "max_total_gpus": 12},
        quotas={"ann": 16, "bob": -1},
    )
    assert changed.score_time_constant == 3600
    assert changed.preemption == PreemptionRules(enabled=True, min_run_seconds=5)
    assert changed.backfill.protected == 3
    assert changed.limits == Limits(max_gpus_per_user=None, max_total_gpus=12)
    assert changed.quotas["ann", JobKind.TRAINING] == Quota(gpu_milli=16000, cpu_milli=5)
    assert changed.quotas["ann", JobKind.WORKBENCH] == Quota(gpu_milli=16000)
    assert not any(user == "bob" for user, _ in changed.quotas)


def test_the_fleet_grows_shrinks_and_moves() -> None:
    grown = snapshot(fleet={"add": [{"nodes": 2, "gpus": 8, "model": "H100"}]})
    assert len(grown.nodes) == 6
    added = grown.nodes["added-1-2"]
    assert [gpu.model for gpu in added.gpus] == ["H100"] * 8
    # as large as the largest that there is: those who ask for CPUs can run there
    assert added.cpu_milli == max(node.cpu_milli for node in grown.nodes.values())
    assert snapshot(fleet={"remove": ["n1", "n4"]}).nodes.keys() == {"n2", "n3"}
    assert len(snapshot(fleet={"scale": 0.5}).nodes) == 2
    assert len(snapshot(fleet={"scale": 2.5}).nodes) == 10
    moved = snapshot(fleet={"pools": {"n1": "default"}})
    assert {gpu.pool for gpu in moved.nodes["n1"].gpus} == {"default"}


@given(st.floats(0.2, 20.0), st.lists(st.integers(0, 4), min_size=1, max_size=6))
def test_a_scaled_fleet_has_distinct_gpus_and_about_so_many_nodes(scale: float, shapes: list[int]) -> None:
    nodes = [node(f"n{number}", gpus=gpus) for number, gpus in enumerate(shapes)]
    cluster: list[Change] = [PutQueue(queue=Queue(name="default")), *(PutNode(node=one) for one in nodes)]
    assume(any(round(shapes.count(gpus) * scale - 0.01) for gpus in shapes))
    scaled = cluster_of(scenario_of({"fleet": {"scale": scale}}), cluster)
    there = [change.node for change in scaled if isinstance(change, PutNode)]
    gpus = [gpu.id for one in there for gpu in one.gpus]
    assert len(set(gpus)) == len(gpus)
    assert len({one.id for one in there}) == len(there)
    kinds = len(set(shapes))
    assert abs(len(there) - len(nodes) * scale) <= 0.5 * kinds + 1e-6


@pytest.mark.parametrize(
    ("plain", "field", "words_of_it"),
    [
        ({"queues": {"x": {"policy": "fcfs"}}}, "queues.x", "no queue 'x'; there are: default, research"),
        ({"queues": {"*": {"policy": "x"}}}, "queues.*.policy", "no policy 'x'"),
        ({"queues": {"*": {"placement": "x"}}}, "queues.*.placement", "no placement 'x'"),
        ({"queues": {"default": {"guaranteed_gpus": 17}}}, "queues.default.guaranteed_gpus", "17 GPUs cannot"),
        ({"fleet": {"remove": ["n9"]}}, "fleet.remove", "no node 'n9'"),
        ({"fleet": {"pools": {"n1": "x"}}}, "fleet.pools", "no pool 'x'"),
        ({"fleet": {"scale": 101}}, "fleet.scale", "0.01 to 100"),
        ({"fleet": {"add": [{"nodes": 100_000, "gpus": 8, "model": "H"}]}}, "fleet", "800,016 GPUs"),
        ({"fleet": {"add": [{"nodes": 1, "gpus": 8, "model": "H", "pool": "x"}]}}, "fleet.add", "no pool 'x'"),
        ({"fleet": {"remove": ["n1", "n2", "n3", "n4"]}}, "fleet", "no node would be left"),
    ],
)
def test_a_scenario_that_does_not_fit_the_cluster_is_refused(
    plain: dict[str, Any], field: str, words_of_it: str
) -> None:
    with pytest.raises(BadScenario, match=words_of_it) as refused:
        check(scenario_of(plain), CLUSTER)
    assert refused.value.field == field


def test_scenario_names_its_differences() -> None:
    text = describe(
        scenario_of(
            {
                "queues": {"*": {"policy": "shortest", "preempts": True}, "research": {"max_gpus": 0}},
                "quotas": {"ann": 16, "bob": -1},
                "fleet": {"scale": 1.5, "add": [{"nodes": 2, "gpus": 8, "model": "H100"}], "remove": ["n1"]},
                "score_memory_seconds": 7200.0,
                "any_model": True,
            }
        )
    )
    assert text == (
        "every queue: policy shortest, preempts; queue research: no max gpus; score memory 2h; ann: quota 16 GPUs; "
        "bob: no quota; fleet × 1.5; +2x8xH100; without n1; any GPU model will do"
    )


def test_nodes_stay_as_they_are_under_changed_rules() -> None:
    scenario = scenario_of({"queues": {"*": {"policy": "fcfs"}}})
    assert ruled(scenario, PutNode(node=Node(id="n1"))) == PutNode(node=Node(id="n1"))
    queue = Queue(name="default")
    assert ruled(scenario, PutQueue(queue=queue)) == PutQueue(queue=replace(queue, policy="fcfs"))


def test_all_policies_are_scenarios_of_their_own_with_the_other_changes() -> None:
    plain = {"all_policies": True, "queues": {"*": {"blocking": "strict"}}, "fleet": {"scale": 2}}
    found = policies_of(scenario_of(plain))
    assert [(one.policy, one.preempts) for one in found if one.policy in ("fcfs", "shortest")] == [
        ("fcfs", False), ("shortest", False), ("shortest", True),
    ]  # fmt: skip
    last = next(one.scenario for one in found if one.policy == "shortest" and one.preempts)
    assert last == scenario_of(
        {
            "queues": {"*": {"blocking": "strict", "policy": "shortest", "preempts": True}},
            "preemption": {"enabled": True},
            "fleet": {"scale": 2},
        }
    )
    assert describe(scenario_of({"all_policies": True})) == "each policy in turn"


def test_single_policy_beside_all_policies_is_refused() -> None:
    with pytest.raises(BadScenario, match="all policies are compared: leave out policy") as refused:
        check(scenario_of({"all_policies": True, "queues": {"*": {"policy": "fcfs"}}}), CLUSTER)
    assert refused.value.field == "queues.*.policy"
