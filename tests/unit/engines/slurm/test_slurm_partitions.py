"""The partition of Slurm that a job is given to, and its time limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from corral.control.ports import LaunchRefused
from corral.engines.slurm.cluster.partitions import (
    CLOSED_SECONDS,
    FRESH_SECONDS,
    KEPT_SECONDS,
    UNLIMITED,
    Partition,
    PartitionClosed,
    Partitions,
    Place,
    closed_nodes,
    partitions_in,
    partitions_of,
    place_for,
)

#: output of Slurm 22.05, without fields that are not read
TABLE = """PartitionName=batch AllowGroups=ALL Default=YES QoS=N/A DefaultTime=00:10:00 Hidden=NO MaxTime=1-12:00:30 \
Nodes=node[1-2] RootOnly=NO State=UP TRES=cpu=16,mem=62.50G,gres/gpu=8 JobDefaults=(null)
PartitionName=other Default=NO DefaultTime=NONE Hidden=YES MaxTime=UNLIMITED Nodes=(null) RootOnly=NO State=DRAIN
"""
READ = [
    Partition(name="batch", nodes=frozenset({"node1", "node2"}), is_default=True, max_minutes=2161, default_minutes=10),
    Partition(name="other", state="DRAIN", is_special=True),
]
JSON_22 = [
    {
        "name": "batch",
        "nodes": "node[1-2]",
        "flags": ["default"],
        "state": "UP",
        "max_time_limit": 2161,
        "default_time_limit": 10,
    },
    {
        "name": "other",
        "nodes": "",
        "flags": ["hidden"],
        "state": "DRAIN",
        "max_time_limit": -1,
        "default_time_limit": None,
    },
]
JSON_24 = [
    {
        "name": "batch",
        "nodes": {"configured": "node[1-2]", "total": 2},
        "partition": {"state": ["UP"]},
        "maximums": {"time": {"set": True, "infinite": False, "number": 2161}},
        "defaults": {"time": {"set": True, "infinite": False, "number": 10}},
    },
    {
        "name": "other",
        "nodes": {"configured": "", "total": 0},
        "partition": {"state": ["DRAIN"]},
        "maximums": {"time": {"set": False, "infinite": True, "number": 0}},
        "defaults": {"time": {"set": False, "infinite": False, "number": 0}},
    },
]
JSON_26 = [
    {
        "name": "batch",
        "nodes": {"configured": "node[1-2]", "total": 2},
        "flags": ["DEFAULT"],
        "partition": {"exclusive": "NO", "oversubscribe": "NO", "state": ["UP"]},
        "maximums": {"time": {"set": True, "infinite": False, "number": 2161}},
        "defaults": {"time": {"set": True, "infinite": False, "number": 10}},
    },
    {
        "name": "other",
        "nodes": {"configured": "", "total": 0},
        "flags": ["HIDDEN", "ROOT_ONLY"],
        "partition": {"exclusive": "NO", "oversubscribe": "NO", "state": ["DRAIN"]},
        "maximums": {"time": {"set": False, "infinite": True, "number": 0}},
        "defaults": {"time": {"set": False, "infinite": False, "number": 0}},
    },
]
HOUR = 3600.0
SHORT = Partition(name="short", nodes=frozenset("abc"), is_default=True, max_minutes=60, default_minutes=10)
LONG = Partition(name="long", nodes=frozenset("cd"), default_minutes=30)
ROOT = Partition(name="root", nodes=frozenset("abcde"), is_special=True)
PLAIN = Partition(name="plain", nodes=frozenset("e"), max_minutes=90)
ALL = [ROOT, LONG, SHORT, PLAIN]


def placed(nodes: str, *, named: tuple[str, ...] = (), limit: float | None = None, **more: Any) -> Place:
    return place_for(more.pop("among", ALL), nodes, named=named, limit_seconds=limit, spare_seconds=30, **more)


def test_partitions_are_read_from_every_way_of_telling_them() -> None:
    assert partitions_in(TABLE) == READ
    assert partitions_of({"partitions": JSON_22}) == READ
    assert partitions_of({"partitions": JSON_26}) == READ
    batch, other = partitions_of({"partitions": JSON_24})
    assert (batch.nodes, batch.max_minutes, batch.default_minutes, batch.state) == (READ[0].nodes, 2161, 10, "UP")
    assert (other.nodes, other.max_minutes, other.default_minutes, other.state) == (frozenset(), None, None, "DRAIN")


@pytest.mark.parametrize(
    ("nodes", "named", "limit", "partition", "minutes"),
    [
        # the default one first, then those for all users
        ("ab", (), HOUR / 2, "short", 32),
        ("cd", (), HOUR, "long", 62),
        ("e", (), HOUR, "plain", 62),
        ("be", (), HOUR, "root", 62),
        # only those that are named, in their order
        ("c", ("long", "short"), HOUR, "long", 62),
        ("c", ("short", "long"), HOUR, "short", 60),
        # one that allows the time, if there is one
        ("c", ("short", "long"), HOUR + 1, "long", 62),
        # without a limit: the most, and never the default; where that is what Slurm gives, nothing is said
        ("c", ("short",), None, "short", 60),
        ("c", ("long",), None, "long", UNLIMITED),
        ("e", ("plain",), None, "plain", None),
    ],
)
def test_a_job_is_given_to_a_partition_with_all_of_its_nodes(
    nodes: str, named: tuple[str, ...], limit: float | None, partition: str, minutes: int | None
) -> None:
    assert placed(nodes, named=named, limit=limit) == Place(partition=partition, minutes=minutes)


def test_less_than_the_partition_allows_can_be_the_most() -> None:
    assert placed("e", named=("plain",), max_minutes=30).minutes == 30
    assert placed("d", max_minutes=30).minutes == 30
    assert placed("d", limit=60.0, max_minutes=2).minutes == 2
    with pytest.raises(LaunchRefused, match=r"time limit of 1h is longer .*\(plain 30m, root 30m\)"):
        placed("e", limit=HOUR, max_minutes=30)


def test_limits_unknown_to_corral_are_left_to_slurm() -> None:
    assert placed("a", among=[]) == Place(partition="", minutes=None)
    assert placed("a", among=[], named=("x", "y"), limit=HOUR) == Place(partition="x", minutes=62)


def test_nodes_without_a_partition_in_common_are_refused_by_name() -> None:
    with pytest.raises(LaunchRefused) as refusal:
        placed("bd", named=("short", "long"))
    assert "slurm.partitions (short, long)" in str(refusal.value)
    assert "b is in short; d is in long" in str(refusal.value)
    assert "slurm.partition.NAME=yes" in str(refusal.value)
    with pytest.raises(LaunchRefused, match="b is in none; d is in long"):
        placed("bd", named=("long",))
    with pytest.raises(LaunchRefused, match="and 4 nodes more"):
        placed("fghijklmnopq")


def test_a_longer_limit_than_any_of_them_allows_is_refused_with_the_numbers() -> None:
    with pytest.raises(LaunchRefused, match=r"time limit of 2h is longer than Slurm allows on its nodes \(short 1h\)"):
        placed("a", named=("short",), limit=2 * HOUR)


def test_a_partition_that_is_down_is_taken_last_and_one_that_is_closed_never() -> None:
    down = Partition(name="down", nodes=frozenset("a"), state="DOWN", is_default=True)
    closed = Partition(name="closed", nodes=frozenset("a"), state="DRAIN")
    assert placed("a", among=[closed, down, ROOT]).partition == "root"
    assert placed("a", among=[closed, down]).partition == "down"
    with pytest.raises(PartitionClosed, match=r"closed begins no jobs for now .*DRAIN"):
        placed("a", among=[closed])


def test_nodes_are_withheld_while_none_of_their_partitions_is_up() -> None:
    down = Partition(name="down", nodes=frozenset("ab"), state="DOWN")
    drained = Partition(name="drained", nodes=frozenset("bc"), state="DRAIN")
    open_ = Partition(name="open", nodes=frozenset("ad"))
    assert closed_nodes([down, drained, open_], ()).keys() == {"b", "c"}
    assert (
        closed_nodes([down, drained, open_], ())["c"]
        == "partition drained begins no jobs for now (it is in state DRAIN)"
    )
    # only what corral may use counts
    assert closed_nodes([down, drained, open_], ("down",)).keys() == {"a", "b"}
    assert closed_nodes([down, open_], ("open",)) == {}


class Refused(Exception):
    pass


class Controller:
    """Lists its partitions, and counts the calls."""

    def __init__(self) -> None:
        self.now, self.asked = 1000.0, 0
        self.there: list[Partition] | Exception = [SHORT]

    def reported(self) -> list[Partition]:
        self.asked += 1
        if isinstance(self.there, Exception):
            raise self.there
        return self.there

    def known(self) -> Partitions:
        return Partitions(self.reported, refused=Refused, clock=lambda: self.now)


def names(known: Any) -> list[str]:
    return [one.name for one in known]


def failing_unless(name: str, error: Exception) -> Callable[[Any], list[str]]:
    def do(known: Any) -> list[str]:
        if name not in names(known):
            raise error
        return names(known)

    return do


def test_partitions_are_asked_for_seldom() -> None:
    slurm = Controller()
    known = slurm.known()
    for _ in range(10):
        assert known.decide(names) == ["short"]
        slurm.now += 1
    assert slurm.asked == 1
    slurm.now += KEPT_SECONDS
    slurm.there = [replace(LONG, state="DOWN")]
    assert known.decide(names) == ["long"]
    assert slurm.asked == 2
    # one that is closed is looked at sooner
    slurm.now += CLOSED_SECONDS
    slurm.there = [LONG]
    assert [one.state for one in known.now()] == ["UP"]
    assert slurm.asked == 3


@pytest.mark.parametrize("error", [LaunchRefused("no"), PartitionClosed("not now"), Refused("never")])
def test_nothing_is_refused_for_what_was_true_a_while_ago(error: Exception) -> None:
    slurm = Controller()
    known = slurm.known()
    known.decide(names)
    slurm.there = [SHORT, LONG]
    # just asked
    with pytest.raises(type(error)):
        known.decide(failing_unless("long", error))
    slurm.now += FRESH_SECONDS
    assert known.decide(failing_unless("long", error)) == ["short", "long"]
    # nothing changed: it is not done a second time
    tried: list[Any] = []
    slurm.now += FRESH_SECONDS
    with pytest.raises(type(error)):
        known.decide(lambda now: tried.append(now) or failing_unless("x", error)(now))  # type: ignore[func-returns-value]
    assert len(tried) == 1


def test_a_controller_that_does_not_list_its_partitions_is_no_obstacle() -> None:
    slurm = Controller()
    slurm.there = Refused("Access/permission denied")
    assert slurm.known().decide(names) == []
    slurm.there = TimeoutError("away")
    with pytest.raises(TimeoutError):
        slurm.known().decide(names)
