"""`row-unreadable`: a row of the store is damaged, and left out."""

from __future__ import annotations

from corral.core.alerts.facts import RowFact
from corral.core.alerts.signal import Finding


def read(row: RowFact) -> float | None:
    return 1.0


def describe(row: RowFact, value: float) -> Finding:
    return Finding(text=f"the row {row.id} cannot be read and is left out: {row.error}")
