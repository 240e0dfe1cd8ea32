"""The partition and the time limit of a job, on a real Slurm with several partitions."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from corral.control.ports import Instance, LaunchOrder, LaunchRefused
from corral.core.model import EndReason, NodeState
from corral.engines.slurm.cluster import partitions
from corral.engines.slurm.cluster.nodes import FleetRules
from tests.contract.engine_harness import order, script, wait_until
from tests.contract.slurm_harness import SlurmHarness, SlurmRestHarness
from tests.servers.slurm import HOW_TO_INSTALL, SlurmCluster, is_installed

pytest_plugins = ("tests.servers.fixtures",)


@pytest.fixture(params=[SlurmHarness, SlurmRestHarness], ids=["commands", "rest"])
def harness(
    request: pytest.FixtureRequest, tmp_path: Path, slurm_cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SlurmHarness]:
    """Beside `batch`, which is the default and has all nodes: one for the first, and one for the second and third."""
    if request.param is SlurmRestHarness:
        request.getfixturevalue("slurm_rest")
    monkeypatch.setattr(partitions, "FRESH_SECONDS", 0.0)
    create = ("scontrol", "create")
    slurm_cluster.run(*create, "PartitionName=short", "Nodes=node1", "MaxTime=60", "DefaultTime=1")
    slurm_cluster.run(*create, "PartitionName=long", "Nodes=node2,node3", "DefaultTime=1")
    made = request.param(tmp_path / "slurm", slurm_cluster)
    yield made
    made.clean_up()
    wait_until(
        lambda: not slurm_cluster.run("squeue", "-h", "-p", "short,long").strip(), "the partitions are not in use"
    )
    for name in ("short", "long"):
        slurm_cluster.run("scontrol", "update", f"PartitionName={name}", "State=UP")
        slurm_cluster.run("scontrol", "delete", f"PartitionName={name}")


def started(harness: SlurmHarness, attempt_id: str) -> str:
    """Starts a job; returns its node and its time limit."""
    harness.listener.running(attempt_id)
    return harness.slurm.run("squeue", "-h", "-o", "%P %l", "-n", harness.slurm_name(attempt_id)).strip()


def on(node: str, launch_order: LaunchOrder) -> LaunchOrder:
    return replace(launch_order, instances=(Instance(rank=0, node=node),))


def state_of(harness: SlurmHarness, name: str) -> tuple[NodeState, str]:
    (found,) = [node for node in harness.engine.observe().nodes if node.id == name]
    return found.state, found.reason


def use(harness: SlurmHarness, *names: str, **more: object) -> None:
    harness.rules = {"partitions": names, **more}
    harness.restart()


def test_jobs_go_to_the_partition_that_has_their_nodes_for_as_long_as_it_allows(harness: SlurmHarness) -> None:
    use(harness, "short", "long")
    sleeping = script("sleep 600")
    harness.launch(order(*sleeping, attempt_id="j-1.1", gpus=1))
    harness.launch(order(*sleeping, attempt_id="j-2.1", gpus=1, time_limit_seconds=600))
    harness.launch(order(*sleeping, attempt_id="j-3.1", gpus=1, time_limit_seconds=3600))
    harness.launch(on("node2", order(*sleeping, attempt_id="j-4.1")))
    found = {attempt: started(harness, attempt) for attempt in ("j-1.1", "j-2.1", "j-3.1", "j-4.1")}
    # neither of them has the minute that is the default
    assert found == {
        "j-1.1": "short 1:00:00",
        "j-2.1": "short 12:00",
        "j-3.1": "short 1:00:00",
        "j-4.1": "long UNLIMITED",
    }


def test_job_that_no_partition_can_run_is_refused_with_the_reason(harness: SlurmHarness) -> None:
    use(harness, "short", "long")
    with pytest.raises(LaunchRefused, match=r"1h1m is longer than Slurm allows on its nodes \(short 1h\)"):
        harness.launch(order("/bin/true", time_limit_seconds=3660))
    assert harness.listener.ended().reason is EndReason.LAUNCH_ERROR
    with pytest.raises(LaunchRefused, match="node1 is in short; node2 is in long"):
        harness.launch(order("/bin/true", attempt_id="j-2.1", nodes=2))
    # an administrator helps: what was asked before does not count
    harness.slurm.run("scontrol", "update", "PartitionName=short", "MaxTime=UNLIMITED")
    harness.slurm.run("scontrol", "update", "PartitionName=long", "Nodes=node1,node2,node3")
    harness.launch(order("/bin/true", attempt_id="j-3.1", time_limit_seconds=3660))
    harness.launch(order("/bin/true", attempt_id="j-4.1", nodes=2))
    assert harness.listener.ended("j-3.1").exit_code == 0
    assert harness.listener.ended("j-4.1").exit_code == 0


def test_without_a_list_the_default_partition_is_used_if_it_has_the_nodes_and_a_closed_one_is_left_alone(
    harness: SlurmHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.launch(order(*script("sleep 600"), attempt_id="j-1.1", nodes=2))
    assert started(harness, "j-1.1").startswith("batch ")
    use(harness, "long", fleet=FleetRules(partitions=frozenset({"long"})))
    harness.slurm.run("scontrol", "update", "PartitionName=long", "State=DRAIN")
    harness.launch(on("node3", order("/bin/true", attempt_id="j-2.1")))
    ended = harness.listener.ended("j-2.1")
    assert ended.reason is EndReason.PREEMPTED
    closed = "partition long begins no jobs for now (it is in state DRAIN)"
    assert closed in ended.message
    assert state_of(harness, "node3") == (NodeState.CORDONED, closed)
    monkeypatch.setattr(partitions, "CLOSED_SECONDS", 0.0)
    harness.slurm.run("scontrol", "update", "PartitionName=long", "State=UP")
    assert state_of(harness, "node3") == (NodeState.READY, "")
    harness.launch(on("node3", order("/bin/true", attempt_id="j-2.2")))
    assert harness.listener.ended("j-2.2").exit_code == 0


@pytest.fixture(scope="module")
def mixed_cluster() -> Iterator[SlurmCluster]:
    """One node with GPUs of two types, which it does not list by the alphabet."""
    if not is_installed():
        pytest.skip(HOW_TO_INSTALL)
    directory = Path(tempfile.mkdtemp(prefix="corral-mixed-", dir="/tmp"))
    try:
        with SlurmCluster(directory=directory, nodes=1, gpu_types={"v100": 2, "A100": 2}) as started:
            yield started
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def test_a_job_gets_the_type_that_was_planned_and_others_hold_what_they_hold(
    mixed_cluster: SlurmCluster, tmp_path: Path
) -> None:
    mixed = SlurmHarness(tmp_path / "slurm", mixed_cluster)
    mixed.rules = {"fleet": FleetRules(models={"a100": "A100-80G"})}
    mixed.restart()
    gpus = mixed.engine.observe().nodes[0].gpus
    assert [gpu.model for gpu in gpus] == ["V100", "V100", "A100-80G", "A100-80G"]
    # another user has one of the second type, and corral a plan for the other and one of the first
    mixed_cluster.run("sbatch", "--gres=gpu:A100:1", "--output=/dev/null", "--wrap", "sleep 600")
    wait_until(lambda: mixed.engine.observe().nodes[0].taken.gpus == ("node1-gpu2",), "it is seen where it is")
    for attempt_id, gpu in (("j-1.1", 3), ("j-2.1", 0)):
        reported = order(*script('echo "gpus $CUDA_VISIBLE_DEVICES"; sleep 600'), attempt_id=attempt_id)
        instance = Instance(rank=0, node="node1", gpu_ids=(f"node1-gpu{gpu}",), gpu_indexes=(gpu,))
        mixed.launch(replace(reported, instances=(instance,)))
    assert [mixed.number_from_output("gpus", attempt_id) for attempt_id in ("j-1.1", "j-2.1")] == [3, 0]
    assert mixed.engine.observe().nodes[0].taken.gpus == ("node1-gpu2",)
    mixed.clean_up()
