"""Pools, the catalog, and scores as they were, on every database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corral.control.ports import Store, StoreConflict
from corral.control.records import FlavorRecord, PackageRecord, PoolRecord, ScorePoint
from corral.core.model import Gpu, GpuHealth, JobKind, Node, Queue
from corral.core.people.scores import Score

pytest_plugins = ("tests.servers.fixtures",)


# ------------------------------------------------------------------------------------------------ pools


def test_pools_are_replaced_by_name_and_sorted(store: Store) -> None:
    with store.write() as transaction:
        for pool in (PoolRecord(name="视觉"), PoolRecord(name="a100", description="x\0y", created_at=5.0)):
            transaction.fleet.save_pool(pool)
        transaction.fleet.save_pool(PoolRecord(name="视觉", description="new", created_at=1.0))
        transaction.fleet.delete_pool("unknown")
    with store.read() as transaction:
        first, default, last = transaction.fleet.pools()
    assert first == PoolRecord(name="a100", description="x\ufffdy", created_at=5.0)
    assert default.name == "default"
    assert last == PoolRecord(name="视觉", description="new", created_at=1.0)
    with store.write() as transaction:
        transaction.fleet.delete_pool("a100")
        assert [pool.name for pool in transaction.fleet.pools()] == ["default", "视觉"]


def test_many_gpus_change_together_or_not_at_all(store: Store) -> None:
    gpus = [Gpu(id=f"n/{index}", index=index, model="A10") for index in range(1200)]
    with store.write() as transaction:
        transaction.fleet.save_nodes([Node(id="n", gpus=tuple(gpus))])
        moved = [replace(gpu, pool="vision", health=GpuHealth.SUSPECT) for gpu in gpus[:1100]]
        transaction.fleet.save_gpus(moved)
        transaction.fleet.save_gpus([])
    after = (*moved, *gpus[1100:])
    with store.read() as transaction:
        assert transaction.fleet.nodes()[0].gpus == after
    gone = [replace(gpus[0], pool="night"), Gpu(id="x", index=0, model="A10"), Gpu(id="y", index=0, model="A10")]
    with pytest.raises(StoreConflict, match="no GPU x, y"), store.write() as transaction:
        transaction.fleet.save_gpus(gone)
    with pytest.raises(StoreConflict), store.write() as transaction, pytest.raises(StoreConflict):
        transaction.fleet.save_gpus(gone)
    with store.read() as transaction:
        assert transaction.fleet.nodes()[0].gpus == after


def test_a_queue_may_be_open_to_more_groups(store: Store) -> None:
    queue = Queue(name="shared", pool="a100", groups=("vision", "speech", "größe"))
    with store.write() as transaction:
        transaction.fleet.save_queue(queue)
        assert transaction.fleet.queues() == [Queue(name="default"), queue]


# ------------------------------------------------------------------------------------------------ flavors, packages

BIG = FlavorRecord(
    name="big", models=("H200", "A100 80G"), labels=(("rack", "r 1"), ("zone", "")), description="大", created_at=2.0
)
SHARE = PackageRecord(
    name="share",
    gpu_milli=250,
    cpu_milli=4000,
    memory_bytes=1 << 40,
    flavor="big",
    rdma=True,
    kinds=(JobKind.WORKBENCH, JobKind.PRESET),
    description="a quarter",
    created_at=3.0,
)


def test_flavors_and_packages_are_replaced_by_name(store: Store) -> None:
    with store.write() as transaction:
        assert transaction.catalog.flavors() == []
        assert transaction.catalog.packages() == []
        for flavor in (BIG, FlavorRecord(name="any"), replace(BIG, models=()), BIG):
            transaction.catalog.save_flavor(flavor)
        for package in (replace(SHARE, kinds=()), PackageRecord(name="cpu"), SHARE):
            transaction.catalog.save_package(package)
    with store.read() as transaction:
        assert transaction.catalog.flavors() == [FlavorRecord(name="any"), BIG]
        assert transaction.catalog.packages() == [PackageRecord(name="cpu"), SHARE]


def test_a_flavor_stays_while_a_package_needs_it(store: Store) -> None:
    with store.write() as transaction:
        for flavor in (BIG, FlavorRecord(name="any")):
            transaction.catalog.save_flavor(flavor)
        transaction.catalog.save_package(SHARE)
    with pytest.raises(StoreConflict), store.write() as transaction:
        transaction.catalog.delete_flavors(["any", "big"])
    with pytest.raises(StoreConflict), store.write() as transaction:
        transaction.catalog.save_package(PackageRecord(name="cpu", flavor="unknown"))
    with store.write() as transaction:
        assert len(transaction.catalog.flavors()) == 2
        transaction.catalog.delete_packages(["share", "unknown"])
        transaction.catalog.delete_flavors(["big", "any", "unknown"])
        transaction.catalog.delete_packages([])
        transaction.catalog.delete_flavors([])
        assert transaction.catalog.packages() == []
        assert transaction.catalog.flavors() == []


# ------------------------------------------------------------------------------------------------ score history


def point(at: float, user: str = "ada", model: str = "A10") -> ScorePoint:
    return ScorePoint(user=user, model=model, at=at, value=at / 10, usage=at)


def save(store: Store, *points: ScorePoint) -> None:
    with store.write() as transaction:
        for each in points:
            score = Score(value=each.value, usage=each.usage, at=each.at)
            transaction.scores.save({(each.user, each.model): score})


def test_every_saved_score_is_a_point_of_its_history(store: Store) -> None:
    save(store, point(1), point(2), point(3), point(2, user="bob"), point(2, model=""))
    with store.read() as transaction:
        history = transaction.scores.history
        assert history("ada", "A10", 0.0) == [point(1), point(2), point(3)]
        assert history("ada", "", 0.0) == [point(2, model="")]
        assert history("ada", "H200", 0.0) == history("cyd", "A10", 0.0) == history("\0", "", 0.0) == []
        assert transaction.scores.all()["ada", "A10"] == Score(value=0.3, usage=3, at=3)


def test_a_history_begins_with_the_last_point_before_it(store: Store) -> None:
    save(store, point(1), point(2), point(3))
    with store.read() as transaction:
        for since, expected in ((2.0, [1, 2, 3]), (2.5, [2, 3]), (1.0, [1, 2, 3]), (9.0, [3])):
            assert transaction.scores.history("ada", "A10", since) == [point(at) for at in expected], since


def test_last_of_two_points_at_the_same_time_counts(store: Store) -> None:
    later = replace(point(1), usage=7.0)
    save(store, point(1), later)
    with store.read() as transaction:
        assert transaction.scores.history("ada", "A10", 0.0) == [later]


def test_pruning_keeps_what_a_history_begins_with(store: Store) -> None:
    old = [point(at, user=user) for user in ("ada", "bob") for at in (1, 2, 3)]
    save(store, *old, point(8), point(9), point(5, user="cyd"))
    with store.write() as transaction:
        assert transaction.scores.prune(1.0) == 0
        assert transaction.scores.prune(5.0) == 4
        assert transaction.scores.prune(5.0) == 0
    with store.read() as transaction:
        history = transaction.scores.history
        assert history("ada", "A10", 5.0) == [point(3), point(8), point(9)]
        assert history("bob", "A10", 0.0) == [point(3, user="bob")]
        assert history("cyd", "A10", 0.0) == [point(5, user="cyd")]
        assert len(transaction.scores.all()) == 3
    with store.write() as transaction:
        assert transaction.scores.prune(100.0) == 2
        assert transaction.scores.history("ada", "A10", 0.0) == [point(9)]
