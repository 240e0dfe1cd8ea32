"""The encoding of the journal: what is written is read again, a history is condensed to what is left of it, and equal
content has equal digests."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.model import Allocation, Grant, JobKind, Queue
from corral.core.people.membership import Membership
from corral.core.people.quota import Quota
from corral.core.people.scores import Score
from corral.core.scheduling.limits.claims import Claim
from corral.core.scheduling.plan.plan import Plan, PlannedStart, Start
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.snapshot.changes import (
    Change,
    DropJob,
    DropMembership,
    DropNode,
    DropQueue,
    DropReservation,
    PutJob,
    PutLastNode,
    PutMembership,
    PutNode,
    PutQueue,
    PutQuota,
    PutReservation,
    PutScore,
)
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.journal import (
    Digest,
    changes_of_plain,
    condensed,
    decode_changes,
    decode_plan,
    encode_changes,
    encode_plan,
    plain_changes,
    seen_at,
)
from corral.core.snapshot.waiting_lines import LineKey
from tests.unit.core.builders import node, running, waiting

EVERY_KIND: list[Change] = [
    PutNode(node=node("n1", 2)),
    PutNode(node=node("n2", 1)),
    DropNode(id="n2"),
    PutQueue(queue=Queue(name="default")),
    PutQueue(queue=Queue(name="night", policy="priority", max_gpus=4)),
    DropQueue(name="night"),
    PutMembership(user="ann", membership=Membership(group="vision", pool="default")),
    PutMembership(user="bob", membership=Membership()),
    DropMembership(user="bob"),
    PutQuota(user="ann", kind=JobKind.TRAINING, quota=Quota(gpu_milli=2000)),
    PutReservation(reservation=Reservation(name="demo", pool="default", gpus=("n1/0",), users=("ann",))),
    PutReservation(reservation=Reservation(name="old", pool="default", gpus=("n1/1",), until=10.0)),
    DropReservation(name="old"),
    PutScore(user="ann", model="A10", score=Score(value=1.5, usage=2.0, at=30.0)),
    PutJob(job=waiting(1, gpus=1)),
    PutJob(job=running(2, {"n1": (0,)})),
    PutJob(job=waiting(3)),
    DropJob(id="j-3"),
    PutLastNode(id="n1"),
]


def test_changes_are_read_as_they_were_written() -> None:
    assert decode_changes(encode_changes(EVERY_KIND)) == EVERY_KIND
    assert changes_of_plain(plain_changes(EVERY_KIND)) == EVERY_KIND
    assert decode_changes(encode_changes([])) == []


@pytest.mark.parametrize("data", [b"", b"no zlib", encode_plan(Plan(at=0.0))])
def test_other_data_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not readable"):
        decode_changes(data)


def test_a_history_is_condensed_to_the_things_that_are_left() -> None:
    entries = [encode_changes([change]) for change in EVERY_KIND]
    found = condensed([*entries, encode_changes([PutJob(job=waiting(1, gpus=2))])])
    assert PutJob(job=waiting(1, gpus=2)) in found
    assert PutJob(job=waiting(1, gpus=1)) not in found
    assert not [change for change in found if type(change).__name__.startswith("Drop")]
    names = {change.queue.name for change in found if isinstance(change, PutQueue)}
    assert names == {"default"}


@given(st.lists(st.sampled_from(EVERY_KIND), max_size=30), st.integers(1, 5))
def test_a_condensed_history_leads_to_the_same_content(changes: list[Change], per_entry: int) -> None:
    entries = [encode_changes(changes[at : at + per_entry]) for at in range(0, len(changes), per_entry)]
    whole, short = Digest(), Digest()
    whole.add(changes)
    short.add(condensed(entries))
    assert short.hex() == whole.hex()


def test_equal_content_has_equal_digests_whatever_led_to_it() -> None:
    one, other = Digest(), Digest()
    one.add([PutJob(job=waiting(1)), PutQueue(queue=Queue(name="default"))])
    other.add([PutJob(job=waiting(2)), PutQueue(queue=Queue(name="default")), DropJob(id="j-2")])
    assert one.hex() != other.hex()
    other.add([PutJob(job=waiting(1, priority=9)), PutJob(job=waiting(1))])
    assert one.hex() == other.hex()
    # A quota without limits is none.
    other.add([PutQuota(user="ann", kind=JobKind.TRAINING, quota=Quota())])
    assert one.hex() == other.hex()
    assert Digest().hex() == "0" * 32


def test_a_snapshot_is_rebuilt_from_its_changes() -> None:
    first, second = ClusterSnapshot(), ClusterSnapshot()
    first.apply(EVERY_KIND)
    second.apply(condensed([encode_changes(EVERY_KIND)]))
    assert second.jobs == first.jobs
    assert second.queues == first.queues
    assert second.reservations == first.reservations
    assert second.fleet.slot("n1").free_milli == first.fleet.slot("n1").free_milli == {"n1/0": 0, "n1/1": 1000}


@pytest.mark.parametrize(
    ("change", "at"),
    [
        (PutJob(job=waiting(1, at=40.0)), 40.0),
        (PutJob(job=replace(running(2, {"n1": (0,)}), started_at=55.0)), 55.0),
        (PutScore(user="ann", model="A10", score=Score(at=30.0)), 30.0),
        (PutQueue(queue=Queue(name="default")), None),
        (DropJob(id="j-1"), None),
    ],
)
def test_the_earliest_time_of_a_change_is_in_its_content(change: Change, at: float | None) -> None:
    assert seen_at(change) == at


def test_a_plan_is_read_as_it_was_written() -> None:
    allocation = Allocation(grants=(Grant(node="n1", gpus=("n1/0",)),), model="A10")
    line = LineKey("default", "A10", False)
    plan = Plan(
        at=5.0,
        wake_at=9.0,
        starts=(Start(job_id="j-1", allocation=allocation),),
        planned=(
            PlannedStart(job_id="j-2", line=line, at=60.0, nodes=("n1",), held=allocation),
            PlannedStart(job_id="j-3", line=line, at=math.inf, nodes=(), held=allocation, is_firm=False),
        ),
        claims=(
            Claim(job_id="j-4", rule="queue-limit", queue="default", at=7.0),
            Claim(job_id="j-5", rule="volume", queue="default", at=math.inf, volume="v-1", writes=True),
        ),
    )
    assert decode_plan(encode_plan(plan)) == plan
    with pytest.raises(ValueError, match="not readable"):
        decode_plan(encode_changes(EVERY_KIND))
