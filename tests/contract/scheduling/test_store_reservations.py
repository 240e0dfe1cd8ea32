"""Reservations as they were, on every database."""

from __future__ import annotations

from dataclasses import replace

from corral.control.live.state import load_state
from corral.control.ports import Store
from corral.control.records import ReservationRecord
from corral.control.system.policies import Policies
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.snapshot.installation import AllocationRules, Strategy

pytest_plugins = ("tests.servers.fixtures",)

WINDOW = ReservationRecord(
    reservation=Reservation(
        name="vision-demo",
        pool="a100",
        gpus=("GPU-1", "node-2/3", "größe"),
        users=("zoë", "ann"),
        groups=("视觉",),
        since=1700000000.123456,
        until=1700003600.25,
        lends=False,
    ),
    model="A100",
    is_over=True,
    note="die Vorführung",
    created_by="root",
    created_at=1699990000.5,
)
STANDING = ReservationRecord(reservation=Reservation(name="always", pool="default", gpus=("GPU-7",), users=("eve",)))


def test_a_reservation_comes_back_as_it_was(store: Store) -> None:
    with store.write() as transaction:
        transaction.reservations.save(WINDOW)
        transaction.reservations.save(STANDING)
    with store.read() as transaction:
        assert transaction.reservations.all() == [STANDING, WINDOW]
        assert transaction.reservations.get("vision-demo") == WINDOW
        assert transaction.reservations.get("unknown\0") is None


def test_reservation_is_replaced_by_name_and_deleted(store: Store) -> None:
    changed = replace(WINDOW, note="", reservation=replace(WINDOW.reservation, until=None, lends=True, groups=()))
    with store.write() as transaction:
        transaction.reservations.save(WINDOW)
        transaction.reservations.save(changed)
        transaction.reservations.delete("unknown")
        assert transaction.reservations.all() == [changed]
        transaction.reservations.delete("vision-demo")
        assert transaction.reservations.all() == []


def test_only_what_ended_long_ago_is_pruned(store: Store) -> None:
    with store.write() as transaction:
        transaction.reservations.save(WINDOW)
        transaction.reservations.save(STANDING)
        assert transaction.reservations.prune(1700003600.25) == 0
        assert transaction.reservations.prune(1700003600.5) == 1
        assert transaction.reservations.all() == [STANDING]


def test_the_snapshot_has_them_when_it_is_loaded_with_the_strategy_of_the_settings(store: Store) -> None:
    rules = AllocationRules(strategy=Strategy.STATIC, reserved_ratio=0.5)
    with store.write() as transaction:
        transaction.reservations.save(WINDOW)
        transaction.reservations.save(STANDING)
    with store.read() as transaction:
        snapshot = load_state(transaction, Policies(allocation=rules)).snapshot
    assert snapshot.reservations == {"always": STANDING.reservation}
    assert snapshot.allocation == rules
