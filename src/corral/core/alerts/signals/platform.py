"""Signals about the platform itself: `row-unreadable`, a row of the store is damaged and left out; `no-standby`, no
other server could lead."""

from __future__ import annotations

from corral.core.alerts.facts import RowFact, ServerFact
from corral.core.alerts.signal import Finding


def read_row(row: RowFact) -> float | None:
    return 1.0


def describe_row(row: RowFact, value: float) -> Finding:
    return Finding(text=f"the row {row.id} cannot be read and is left out: {row.error}")


def read_standby(leader: ServerFact) -> float | None:
    return 0.0 if leader.standbys else 1.0


def describe_standby(leader: ServerFact, value: float) -> Finding:
    if not value:
        return Finding(text=f"another server could lead beside {leader.id}")
    return Finding(text=f"server {leader.id} leads, and no other server could take over")
