"""Slurm's daemons as corral sees them: the one that answers, and a slurmd on each node."""

from __future__ import annotations

from corral.engines.slurm.cluster.daemons import Daemons
from corral.engines.slurm.slurm_api.slurm_records import SlurmNode, nodes_of


def slurm_node(name: str, state: str = "IDLE", *flags: str, started_at: float | None = 100.0) -> SlurmNode:
    return SlurmNode(name=name, state=state, flags=frozenset(flags), daemon_started_at=started_at)


def test_before_the_first_answer_nothing_is_healthy() -> None:
    (controller,) = Daemons("slurmctld").parts()
    assert (controller.name, controller.healthy, controller.detail) == ("slurmctld", False, "not asked yet")


def test_a_controller_that_fails_keeps_its_last_error() -> None:
    daemons = Daemons("slurmrestd")
    daemons.failed("Slurm: connection refused")
    assert [(one.healthy, one.detail) for one in daemons.parts()] == [(False, "Slurm: connection refused")]
    daemons.answered([])
    (controller,) = daemons.parts()
    assert (controller.healthy, controller.detail) == (True, "")
    assert controller.last_error == "Slurm: connection refused"


def test_each_node_has_a_slurmd_and_those_that_do_not_answer_are_not_healthy() -> None:
    daemons = Daemons("slurmctld")
    daemons.answered(
        [
            slurm_node("n3", "IDLE", "NOT_RESPONDING"),
            slurm_node("n1"),
            slurm_node("n2", "DOWN"),
            slurm_node("n4", "DOWN", "POWERED_DOWN"),
        ]
    )
    slurmds = daemons.parts()[1:]
    assert [(one.node, one.healthy) for one in slurmds] == [("n1", True), ("n2", False), ("n3", False), ("n4", True)]
    assert slurmds[0].started_at == 100.0
    assert slurmds[2].detail == "idle+not_responding"


def test_a_slurmd_that_was_started_again_is_counted() -> None:
    daemons = Daemons("slurmctld")
    for started_at in (100.0, 100.0, 250.0, None, 250.0, 300.0):
        daemons.answered([slurm_node("n1", started_at=started_at)])
    assert daemons.parts()[1].restarts == 2


def test_the_start_time_is_read_from_old_and_new_versions() -> None:
    old = {"name": "n1", "state": "idle", "slurmd_start_time": 1700000000}
    new = {"name": "n2", "state": ["IDLE"], "slurmd_start_time": {"set": True, "infinite": False, "number": 1700000001}}
    assert [node.daemon_started_at for node in nodes_of({"nodes": [old, new]})] == [1700000000.0, 1700000001.0]
