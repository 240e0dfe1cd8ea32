"""The strategy `hybrid` reserves its share by itself, and operators can take GPUs from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.errors import Invalid, WrongState
from corral.control.fleet import pools
from corral.control.ports import Store
from corral.control.scheduling import reservations
from corral.control.scheduling.reserved_gpus import ReservationDraft
from corral.control.system.policies import HybridShare, Policies
from corral.core.fleet.free_gpus import free_gpus
from corral.core.model import JobKind
from corral.core.snapshot.installation import AllocationRules, Strategy
from tests.unit.control.tenants import MIXED_NODES
from tests.unit.control.world import ANN, ROOT, Desk, draft
from tests.unit.core.builders import node

HALF = Policies(
    allocation=AllocationRules(strategy=Strategy.HYBRID, reserved_ratio=0.5), hybrid_share=HybridShare(users=("root",))
)


def shares(desk: Desk) -> dict[str, tuple[str, ...]]:
    with desk.store.read() as tx:
        stored = {one.name: one.reservation for one in tx.reservations.all() if one.reservation.is_share}
    assert stored == {name: one for name, one in desk.state.snapshot.reservations.items() if one.is_share}
    return {name: one.gpus for name, one in stored.items()}


def test_each_pool_and_model_has_its_share_from_the_start(store: Store) -> None:
    desk = Desk(store, HALF, nodes=MIXED_NODES)
    assert {name: len(gpus) for name, gpus in shares(desk).items()} == {"share-default-a10": 4, "share-default-a100": 4}
    assert len(free_gpus(desk.state.snapshot, desk.now).free) == 8
    assert len(free_gpus(desk.state.snapshot, desk.now, "root").free) == 16
    before = shares(desk)
    desk.observe(*MIXED_NODES)
    assert shares(desk) == before, "nothing has changed"
    desk.observe(*MIXED_NODES, node("n9", gpus=4))
    assert len(shares(desk)["share-default-a10"]) == 6, "it grows with the pool"


def test_without_the_setting_nothing_is_reserved(store: Store) -> None:
    desk = Desk(store, replace(HALF, hybrid_share=None), nodes=MIXED_NODES)
    assert shares(desk) == {}
    later = Desk(store, HALF, nodes=MIXED_NODES)
    later.observe(*MIXED_NODES, node("n9", gpus=4))
    assert shares(later)
    off = Desk(store, replace(HALF, hybrid_share=None), nodes=MIXED_NODES)
    off.do(reservations.tidy)
    assert shares(off) == {}, "the share goes with the setting"


def test_a_reservation_of_an_operator_takes_its_gpus_from_the_share(store: Store) -> None:
    desk = Desk(store, HALF, nodes=(node("n1", gpus=4), node("n2", gpus=4)))
    (mine,) = shares(desk).values()
    wanted = ReservationDraft(gpu_ids=mine[:3], users=(), groups=("default",), since=desk.now)
    desk.do(reservations.create, ROOT, "vision", "default", wanted)
    (left,) = shares(desk).values()
    assert len(left) == 1
    assert not set(left) & set(mine[:3])
    desk.do(reservations.delete, ROOT, "vision")
    (again,) = shares(desk).values()
    assert len(again) == 4


def test_the_share_lets_gpus_change_pools_and_is_not_edited_by_hand(store: Store) -> None:
    desk = Desk(store, HALF, nodes=(node("n1", gpus=4), node("n2", gpus=4)))
    (mine,) = shares(desk).values()
    desk.do(pools.create, ROOT, "night", gpus=mine)
    assert {name: len(gpus) for name, gpus in shares(desk).items()} == {"share-default-a10": 2, "share-night-a10": 2}
    with pytest.raises(WrongState, match="reserved_ratio"):
        desk.do(reservations.delete, ROOT, "share-default-a10")
    with pytest.raises(Invalid, match="hybrid"):
        desk.do(reservations.create, ROOT, "share-mine", "default", ReservationDraft(count=1, users=("root",)))


def test_only_preemptible_jobs_borrow_from_the_share(store: Store) -> None:
    desk = Desk(store, HALF, nodes=(node("n1", gpus=4),))
    (mine,) = shares(desk).values()
    desk.submit(*(draft(f"bench-{n}", gpus=1, kind=JobKind.WORKBENCH) for n in range(3)), caller=ANN)
    assert len(desk.cycle()) == 2
    held = {gpu for job in desk.state.snapshot.jobs.values() if job.allocation for gpu in job.allocation.gpus}
    assert not held & set(mine)
    desk.submit(draft("training", gpus=1), caller=ANN)
    assert len(desk.cycle()) == 1
