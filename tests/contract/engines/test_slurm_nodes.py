"""The nodes of a real Slurm that take jobs, while administrators and other users change and use them."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.control.ports import AttemptPhase
from corral.core.model import NodeState
from corral.engines.slurm.cluster import reservation_nodes
from corral.engines.slurm.cluster.nodes import FleetRules
from corral.engines.slurm.slurm_api.commands import SlurmCommands
from tests.contract.engine_harness import order, script, wait_until
from tests.contract.slurm_harness import SlurmHarness, SlurmRestHarness
from tests.servers.slurm import SlurmCluster

pytest_plugins = ("tests.servers.fixtures",)


def states(harness: SlurmHarness) -> dict[str, tuple[NodeState, str]]:
    return {node.id: (node.state, node.reason) for node in harness.engine.observe().nodes}


def test_nodes_are_found_by_whichever_program_of_this_version_reports_of_them(slurm_cluster: SlurmCluster) -> None:
    slurm = SlurmCommands(conf=str(slurm_cluster.conf))
    for _ in range(3):
        assert [node.name for node in slurm.nodes()] == slurm_cluster.node_names
    # What does not work here was tried once.
    assert sorted(slurm.calls.values()) in ([3], [1, 3])


def test_a_job_of_others_with_a_name_that_is_no_text_is_seen_as_any_other(harness: SlurmHarness) -> None:
    name = "训练".encode()[:4].decode(errors="surrogateescape")
    harness.slurm.run("sbatch", f"--job-name={name}", "--gres=gpu:2", "--nodelist=node2", "--wrap=sleep 600")
    try:
        wait_until(lambda: taken_on(harness, "node2") == 2, "its GPUs are taken")
        assert [job.name[-1] for job in harness.access().jobs() if job.holds_nodes] == ["\ufffd"]
    finally:
        harness.slurm.run("scancel", "--user=root")
    wait_until(lambda: taken_on(harness, "node2") == 0, "they are free again")


def taken_on(harness: SlurmHarness, name: str) -> int:
    return next(len(node.taken.gpus) for node in harness.engine.observe().nodes if node.id == name)


def test_corrals_reservation_is_where_its_jobs_run(harness: SlurmHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reservation_nodes, "ASK_SECONDS", 0.5)
    harness.rules = {"extra": ("--reservation=corral",)}
    harness.restart()
    scontrol = ("scontrol", "create", "reservation", "ReservationName=corral", "Users=root", "Flags=IGNORE_JOBS")
    harness.slurm.run(*scontrol, "StartTime=now", "Duration=60", "Nodes=node[1-2]")
    try:
        sinfo = ("sinfo", "-h", "-N", "--nodes=node1", "-O", "StateComplete")
        wait_until(lambda: "reserved" in harness.slurm.run(*sinfo), "its nodes are closed to others")
        wait_until(lambda: states(harness)["node3"][0] is NodeState.CORDONED, "nodes outside are none of corral's")
        seen = states(harness)
        assert {name for name, (state, _) in seen.items() if state is NodeState.READY} == {"node1", "node2"}
        assert seen["node3"][1] == "not in the reservation that corral's jobs are given to"
        harness.launch(order("/bin/true"))
        assert harness.listener.ended().exit_code == 0
    finally:
        wait_until(lambda: not harness.slurm.run("squeue", "-h").strip(), "nothing runs")
        harness.slurm.run("scontrol", "delete", "reservation=corral")
    # Gone, as hidden: sbatch will say what is wrong.
    wait_until(lambda: states(harness)["node3"][0] is NodeState.READY, "all are as before")


def test_a_reservation_is_the_same_through_slurmrestd(tmp_path: Path, slurm_rest: SlurmCluster) -> None:
    made = SlurmRestHarness(tmp_path / "slurm", slurm_rest)
    create = ("scontrol", "create", "reservation", "Users=root", "Flags=IGNORE_JOBS", "Duration=60")
    slurm_rest.run(*create, "ReservationName=corral", "StartTime=now", "Nodes=node[3-4]")
    slurm_rest.run(*create, "ReservationName=later", "StartTime=now+2hours", "Nodes=node1")
    try:
        for way in (made.access(), SlurmCommands(conf=str(slurm_rest.conf))):
            assert (way.reserved("corral"), way.reserved("later")) == (["node3", "node4"], [])
    finally:
        slurm_rest.run("scontrol", "delete", "reservation=corral")
        slurm_rest.run("scontrol", "delete", "reservation=later")
        made.clean_up()


def test_a_node_that_is_taken_out_of_the_partition_keeps_its_job(harness: SlurmHarness) -> None:
    harness.slurm.run("scontrol", "create", "PartitionName=mine", "Nodes=node[1-2]")
    harness.rules = {"fleet": FleetRules(partitions=frozenset({"mine"})), "partitions": ("mine",)}
    harness.restart()
    try:
        assert set(states(harness)) == {"node1", "node2"}
        harness.launch(order(*script("sleep 600"), gpus=1))
        harness.listener.running()
        harness.slurm.run("scontrol", "update", "PartitionName=mine", "Nodes=node2")
        seen = states(harness)
        assert seen["node1"] == (NodeState.CORDONED, "in none of the partitions mine any more")
        assert seen["node2"][0] is NodeState.READY
        status = harness.status()
        assert status is not None
        assert status.phase is AttemptPhase.RUNNING
        harness.engine.stop("j-1.1", 1.0)
        harness.listener.ended()
        wait_until(lambda: set(states(harness)) == {"node2"}, "it is not one of corral's nodes then")
    finally:
        harness.slurm.run("scancel", "--user=root")
        wait_until(lambda: not harness.slurm.run("squeue", "-h").strip(), "nothing runs")
        harness.slurm.run("scontrol", "delete", "PartitionName=mine")
