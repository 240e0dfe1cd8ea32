"""A replica equals the copy that it follows, whatever was done to it before."""

from __future__ import annotations

from dataclasses import replace

from corral.core.model import Queue
from corral.core.people.scores import Score
from corral.core.snapshot.changes import DropJob, DropNode, PutJob, PutLastNode, PutNode, PutQueue, PutScore
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.journal import Digest
from corral.core.snapshot.replica import Replica, copy_of
from tests.unit.core.builders import node, running, snapshot_of, waiting


def digest(snapshot: ClusterSnapshot) -> str:
    found = Digest()
    found.add(snapshot.contents())
    return found.hex()


def live() -> ClusterSnapshot:
    score = PutScore(user="ann", model="A10", score=Score(value=1.0, usage=2.0, at=3.0))
    return snapshot_of(node("n1", gpus=2), node("n2", gpus=2), running(1, {"n1": (0,)}), waiting(2, gpus=1), score)


def test_a_copy_does_not_change_with_the_snapshot() -> None:
    snapshot = live()
    copy = copy_of(snapshot)
    snapshot.apply([DropJob(id="j-2"), PutNode(node=node("n3", gpus=1))])
    assert set(copy.jobs) == {"j-1", "j-2"}
    assert set(copy.nodes) == {"n1", "n2"}
    assert copy.revision < snapshot.revision


def test_a_replica_follows_changes_of_the_snapshot() -> None:
    snapshot, replica = live(), Replica()
    replica.follow(copy_of(snapshot))
    assert digest(replica.snapshot) == digest(snapshot)
    same = replica.snapshot
    snapshot.apply(
        [
            DropJob(id="j-1"),
            PutJob(job=running(3, {"n1": (0, 1)})),
            PutNode(node=replace(node("n2", gpus=2), labels=(("rack", "a"),))),
            PutLastNode(id="n1"),
        ]
    )
    replica.follow(copy_of(snapshot))
    assert digest(replica.snapshot) == digest(snapshot)
    assert replica.snapshot is same, "only the differences were applied"


def test_a_replica_may_be_changed_and_comes_back() -> None:
    snapshot, replica = live(), Replica()
    copy = copy_of(snapshot)
    replica.follow(copy)
    more = PutScore(user="bob", model="A10", score=Score(value=9.0))
    replica.snapshot.apply([DropJob(id="j-1"), DropJob(id="j-2"), DropNode(id="n2"), more])
    replica.snapshot.apply([PutJob(job=running(4, {"n1": (0, 1)}))])
    replica.follow(copy)
    assert set(replica.snapshot.jobs) == {"j-1", "j-2"}
    assert replica.snapshot.fleet.slot("n1").free_milli == snapshot.fleet.slot("n1").free_milli
    assert replica.snapshot.score("bob", "A10", 3.0) == 0.0


def test_changed_settings_make_a_new_snapshot() -> None:
    snapshot, replica = live(), Replica()
    replica.follow(copy_of(snapshot))
    before = replica.snapshot
    snapshot.apply([PutQueue(queue=Queue(name="night", policy="fcfs"))])
    replica.follow(copy_of(snapshot))
    assert replica.snapshot is not before
    assert digest(replica.snapshot) == digest(snapshot)
