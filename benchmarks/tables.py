"""Rows of measurements, printed alike:

What, the figure with its spread, the target, and the ratio to a peer of the same run.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    what: str
    value: str
    spread: str = ""
    target: str = ""
    #: measured against what, in the same run
    ratio: str = ""


#: The variable that names a file: every printed row is added to it, as one line of JSON.
ROWS_VARIABLE = "CORRAL_BENCH_ROWS"


def print_table(title: str, rows: Sequence[Row]) -> None:
    rows = list(rows)
    if path := os.environ.get(ROWS_VARIABLE):
        with open(path, "a", encoding="utf-8") as kept:
            kept.writelines(json.dumps(asdict(row)) + "\n" for row in rows)
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in ("what", "measured", "spread", "target", "ratio"):
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(row.what, row.value, row.spread, row.target, row.ratio)
    Console(width=150).print(table)


def spread(values: Sequence[float], unit: str, digits: int = 1) -> str:
    """Lowest and highest of several runs."""
    return f"{min(values):.{digits}f} … {max(values):.{digits}f} {unit}"


def percentile(values: Sequence[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)
