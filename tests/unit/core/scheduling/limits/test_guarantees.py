"""The held, borrowed and owed GPUs of queues."""

from __future__ import annotations

import pytest

from corral.core.model import Queue
from corral.core.scheduling.limits.guarantees import borrowers, guarantee_use, is_entitled, owed_to_others_milli
from corral.core.snapshot.changes import DropQueue, PutQueue, PutRules
from corral.core.snapshot.installation import Limits, PreemptionRules
from tests.unit.core.builders import node, running, snapshot_of, waiting

LAB, REST = Queue(name="lab", guaranteed_gpus=4), Queue(name="rest", guaranteed_gpus=1)


def rules(enabled: bool = True) -> PutRules:
    return PutRules(limits=Limits(), score_time_constant=1.0, preemption=PreemptionRules(enabled=enabled))


def test_held_borrowed_and_owed_are_counted_per_queue() -> None:
    snapshot = snapshot_of(
        rules(),
        LAB,
        REST,
        node("n1", 8),
        running(1, {"n1": (0,)}, queue="lab"),
        running(2, {"n1": (1, 2, 3)}, queue="rest"),
    )
    lab, rest = guarantee_use(snapshot, LAB), guarantee_use(snapshot, REST)
    assert (lab.held_milli, lab.borrowed_milli, lab.owed_milli) == (1_000, 0, 3_000)
    assert (rest.held_milli, rest.borrowed_milli, rest.owed_milli) == (3_000, 2_000, 0)
    assert owed_to_others_milli(snapshot, REST) == 3_000
    assert owed_to_others_milli(snapshot, LAB) == 0


def test_without_preemption_no_queue_borrows_and_nothing_is_owed() -> None:
    snapshot = snapshot_of(rules(enabled=False), LAB, REST, node("n1", 8), running(1, {"n1": (0, 1)}, queue="rest"))
    assert guarantee_use(snapshot, REST).borrowed_milli == 0
    assert guarantee_use(snapshot, LAB).owed_milli == 0
    assert not is_entitled(snapshot, waiting(2, queue="lab", gpus=1))


@pytest.mark.parametrize(("gpus", "entitled"), [(0, False), (1, True), (3, True), (4, False)])
def test_jobs_within_the_guarantee_are_entitled(gpus: int, entitled: bool) -> None:
    snapshot = snapshot_of(rules(), LAB, REST, node("n1", 8), running(1, {"n1": (0,)}, queue="lab"))
    assert is_entitled(snapshot, waiting(2, queue="lab", gpus=gpus)) is entitled


def test_the_guarantee_covers_those_who_cannot_be_preempted_then_the_oldest() -> None:
    snapshot = snapshot_of(
        rules(), LAB, REST, node("n1", 8),
        running(1, {"n1": (0, 1)}, queue="lab", allocated_at=1.0),
        running(2, {"n1": (2, 3)}, queue="lab", allocated_at=2.0),
        running(3, {"n1": (4, 5)}, queue="lab", allocated_at=3.0, preemptible=False),
    )  # fmt: skip
    assert [job.id for job in borrowers(snapshot, LAB, leaving=())] == ["j-2"]
    assert borrowers(snapshot, LAB, leaving={"j-1"}) == [], "who leaves anyway is not counted"


def test_a_guarantee_ends_with_its_queue_or_its_number() -> None:
    snapshot = snapshot_of(LAB, REST)
    snapshot.apply([PutQueue(queue=Queue(name="lab"))])
    assert snapshot.guaranteeing == {"default": {"rest"}}
    snapshot.apply([DropQueue(name="rest")])
    assert snapshot.guaranteeing == {}
