"""Nodes of Slurm that take jobs, that only keep running jobs, and that have lost them."""

from __future__ import annotations

import pytest

from corral.core.model import NodeState
from corral.engines.slurm.cluster.nodes import FleetRules, gpus_asked, nodes_seen, vanished
from corral.engines.slurm.cluster.reservation_nodes import ASK_SECONDS, ReservationNodes, reservations_in
from corral.engines.slurm.slurm_api.commands import SlurmRefused, SlurmUnavailable
from corral.engines.slurm.slurm_api.slurm_records import SlurmNode, gpus_in, reserved_in
from tests.unit.engines.slurm.unused_slurm import UnusedSlurm

READY, CORDONED, DOWN = NodeState.READY, NodeState.CORDONED, NodeState.DOWN


def a_node(name: str = "gpu1", state: str = "IDLE", flags: str = "", **more: object) -> SlurmNode:
    return SlurmNode(name=name, state=state, flags=frozenset(flags.split()), partitions=("gpu",), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "flags", "expected", "reason"),
    [
        ("IDLE", "", READY, ""),
        ("MIXED", "PLANNED", READY, ""),
        ("ALLOCATED", "COMPLETING", READY, ""),
        ("IDLE", "REBOOT_REQUESTED", READY, ""),
        # jobs run on there, and Slurm starts no more
        ("MIXED", "DRAIN", CORDONED, "drained in Slurm"),
        ("ALLOCATED", "NOT_RESPONDING", CORDONED, "does not answer Slurm at the moment"),
        ("IDLE", "NOT_RESPONDING", CORDONED, "does not answer Slurm at the moment"),
        ("MIXED", "FAIL", CORDONED, "about to fail, according to Slurm"),
        ("IDLE", "INVALID_REG", CORDONED, "has less than Slurm's settings say"),
        ("IDLE", "RESERVED", CORDONED, "reserved in Slurm"),
        ("MIXED", "MAINTENANCE", CORDONED, "in maintenance"),
        ("UNKNOWN", "NOT_RESPONDING", CORDONED, "does not answer Slurm at the moment"),
        ("UNKNOWN", "", CORDONED, "in state UNKNOWN"),
        # powered off, and started for a job
        ("IDLE", "CLOUD POWERED_DOWN", READY, ""),
        ("IDLE", "POWERED_DOWN NOT_RESPONDING", READY, ""),
        ("ALLOCATED", "POWERING_UP NOT_RESPONDING", READY, ""),
        ("IDLE", "POWERED_DOWN DRAIN", CORDONED, "drained in Slurm"),
        ("IDLE", "POWERING_DOWN", CORDONED, "being powered down"),
        ("MIXED", "POWER_DOWN", CORDONED, "about to be powered down"),
        # only here jobs are lost
        ("DOWN", "", DOWN, ""),
        ("DOWN", "NOT_RESPONDING", DOWN, "does not answer Slurm at the moment"),
        ("DOWN", "REBOOT_ISSUED", DOWN, "being rebooted"),
        ("DOWN", "POWERED_DOWN", DOWN, ""),
        ("FUTURE", "", DOWN, ""),
    ],
)
def test_only_a_node_that_slurm_calls_down_has_lost_its_jobs(
    state: str, flags: str, expected: NodeState, reason: str
) -> None:
    (node,) = nodes_seen([a_node(state=state, flags=flags)], {}, {}, FleetRules())
    assert node.state is expected
    if expected is not DOWN or reason:
        assert node.reason == reason


def test_amds_gpus_are_a_type_as_any_other() -> None:
    node = a_node(gpus=gpus_in("gpu:mi300x:8(S:0-1)"))
    (built,) = nodes_seen([node], {}, {}, FleetRules())
    assert [gpu.model for gpu in built.gpus] == ["MI300X"] * 8
    assert gpus_asked({"gpu1": ["gpu1-gpu0", "gpu1-gpu1"]}, {"gpu1": node}) == {"": 2}


def test_slurms_own_reason_comes_first() -> None:
    (node,) = nodes_seen([a_node(flags="DRAIN", reason="disk")], {}, {}, FleetRules())
    assert (node.state, node.reason) == (CORDONED, "disk")
    (node,) = nodes_seen([a_node(reason="an old one")], {}, {}, FleetRules())
    assert (node.state, node.reason) == (READY, "")


def test_a_node_that_left_the_partitions_keeps_what_runs_there_and_gets_no_more() -> None:
    rules = FleetRules(partitions=frozenset({"train", "debug"}))
    assert nodes_seen([a_node()], {}, {}, rules) == ()
    (node,) = nodes_seen([a_node()], {}, {"gpu1": frozenset({"gpu1-gpu0"})}, rules)
    assert (node.state, node.reason) == (CORDONED, "in none of the partitions debug, train any more")
    # also without GPUs; and what is down is down
    (node,) = nodes_seen([a_node(state="DOWN")], {}, {"gpu1": frozenset()}, rules)
    assert node.state is DOWN


def test_a_node_that_slurm_no_longer_lists_is_reported_while_a_plan_uses_it() -> None:
    known = {name: a_node(name, gpus={"a100": 8}) for name in ("gpu1", "gpu2", "gpu3")}
    gone = vanished([known["gpu1"]], known, {"gpu1", "gpu3", "never-seen"})
    (node,) = nodes_seen(gone, {}, {}, FleetRules())
    assert (node.id, node.state, node.reason, len(node.gpus)) == ("gpu3", CORDONED, "in state UNKNOWN", 8)
    assert vanished(known.values(), known, known) == []


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ((), ()),
        (("--qos=high", "--reservation=corral"), ("corral",)),
        (("--reservation", "corral", "--exclusive"), ("corral",)),
        (("--reservation=a,b",), ("a", "b")),
        (("--reservations=a", "--reservation="), ()),
    ],
)
def test_the_reservation_is_found_among_the_options(options: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert reservations_in(options) == names


def test_corrals_own_reservation_is_no_hindrance_and_all_other_nodes_are() -> None:
    seen = [a_node("in", flags="RESERVED"), a_node("maint", flags="MAINTENANCE RESERVED"), a_node("out")]
    seen += [a_node("drained", flags="RESERVED DRAIN"), a_node("theirs", flags="RESERVED")]
    nodes = nodes_seen(seen, {}, {}, FleetRules(), reserved={"in", "maint", "drained"})
    assert {node.id for node in nodes if node.state is READY} == {"in", "maint"}
    reasons = {node.id: node.reason for node in nodes}
    assert reasons["out"] == reasons["theirs"] == "not in the reservation that corral's jobs are given to"
    assert reasons["drained"] == "drained in Slurm"


@pytest.mark.parametrize(
    "of",
    [
        lambda at: at,
        # since 23.11
        lambda at: {"set": True, "infinite": False, "number": at},
    ],
)
def test_a_reservation_has_its_nodes_from_its_beginning_to_its_end(of: object) -> None:
    times = {"start_time": of(100), "end_time": of(200)}  # type: ignore[operator]
    document = {"reservations": [{"name": "corral", "node_list": "gpu[1-2]", **times}], "errors": []}
    found = [reserved_in(document, now) for now in (99.0, 100.0, 199.0, 200.0)]
    assert found == [[], ["gpu1", "gpu2"], ["gpu1", "gpu2"], []]


class Reservations(UnusedSlurm):
    """A Slurm that is asked for reservations only."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer: list[str] | Exception = ["gpu1"]

    def reserved(self, name: str) -> list[str]:
        self.asked.append(name)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_reservations_are_asked_for_seldom_and_what_is_known_stays_while_slurm_is_away() -> None:
    slurm, seen = Reservations(), [a_node("gpu1"), a_node("gpu2")]
    assert ReservationNodes(slurm, ["--qos=high"]).nodes(seen, 0.0) is None
    ours = ReservationNodes(slurm, ["--reservation=corral"])
    assert ours.nodes(seen, 0.0) == ours.nodes(seen, ASK_SECONDS - 1) == frozenset({"gpu1"})
    assert slurm.asked == ["corral"]
    slurm.answer = SlurmUnavailable("away")
    assert ours.nodes(seen, ASK_SECONDS) == frozenset({"gpu1"})
    # it has not begun: no node is corral's
    slurm.answer = []
    assert ours.nodes(seen, 2 * ASK_SECONDS) == frozenset()
    # hidden from this account, or not there: sbatch reports it
    slurm.answer = SlurmRefused("Reservation corral not found")
    assert ours.nodes(seen, 3 * ASK_SECONDS) == frozenset({"gpu1", "gpu2"})
    assert len(slurm.asked) == 4
