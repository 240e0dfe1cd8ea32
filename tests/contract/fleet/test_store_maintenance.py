"""Maintenance windows as they were, on every database."""

from __future__ import annotations

from dataclasses import replace

from corral.control.live.state import load_state
from corral.control.ports import Store
from corral.control.records import MaintenanceRecord
from corral.control.system.policies import Policies

pytest_plugins = ("tests.servers.fixtures",)

WEEKLY = MaintenanceRecord(
    name="fans",
    nodes=("größe", "n1"),
    since=1700000000.125,
    until=1700003600.25,
    every_days=7,
    drain_seconds=1800.5,
    note="die Lüfter\0",
    created_by="root",
    created_at=1699990000.5,
    begun=("n1",),
)
ONCE = MaintenanceRecord(name="always", nodes=("n2",), since=5.0, until=6.0)


def test_a_window_comes_back_as_it_was_and_is_part_of_the_state(store: Store) -> None:
    with store.write() as transaction:
        transaction.maintenance.save(WEEKLY)
        transaction.maintenance.save(ONCE)
    with store.read() as transaction:
        assert transaction.maintenance.all() == [ONCE, replace(WEEKLY, note=transaction.maintenance.all()[1].note)]
        assert transaction.maintenance.all()[1].note.startswith("die Lüfter")
        assert set(load_state(transaction, Policies()).maintenance) == {"always", "fans"}


def test_maintenance_window_is_replaced_by_name_and_deleted(store: Store) -> None:
    changed = replace(ONCE, every_days=1, begun=("n2",), note="")
    with store.write() as transaction:
        transaction.maintenance.save(ONCE)
        transaction.maintenance.save(changed)
        transaction.maintenance.delete("unknown")
        assert transaction.maintenance.all() == [changed]
        transaction.maintenance.delete("always")
        assert transaction.maintenance.all() == []
