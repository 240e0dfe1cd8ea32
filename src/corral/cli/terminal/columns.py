"""Tables and properties for people, as lines of text: one line per row, cut at the width of the terminal, not cut in a
pipe.

This module draws by itself, because Rich takes longer to load than most commands take to run. `tables` shows the same
lines where they change on the screen.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from corral.core.visible_text import visible, visible_line

#: The colour is shown with the text, never instead of it.
STYLES = {
    "running": "green",
    "completed": "green",
    "ready": "green",
    "healthy": "green",
    "start": "green",
    "ok": "green",
    "starting": "cyan",
    "sent": "green",
    "resolved": "green",
    "info": "cyan",
    "waiting": "yellow",
    "pending": "yellow",
    "warning": "yellow",
    "firing": "red",
    "critical": "red",
    "queued": "yellow",
    "stopping": "yellow",
    "cordoned": "yellow",
    "draining": "yellow",
    "suspect": "yellow",
    "wait": "yellow",
    "warn": "yellow",
    "failed": "red",
    "down": "red",
    "refuse": "red",
    "fail": "red",
    "stopped": "dim",
    "created": "dim",
}
_CODES = {"green": "32", "cyan": "36", "yellow": "33", "red": "31", "dim": "2", "bold": "1"}
#: The width without a terminal: rows are not cut.
UNLIMITED_COLUMNS = 10_000
#: Blanks between two columns.
GAP = 2
#: A flexible cell is not cut to less than this.
SHORTEST_FLEXIBLE = 14


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    title: str
    #: numbers are aligned at their end
    is_number: bool = False
    #: cut first when the terminal is narrow
    is_flexible: bool = False
    #: coloured by its text
    is_state: bool = False
    #: left out first when even short cells do not fit
    is_extra: bool = False


def columns(*titles: str, whole: bool = False) -> list[Column]:
    """Columns from short marks: `GPUS>` is a number, `NAME~` is flexible, `STATE!` is a state, `PRIO>?` an extra.
    If the table is to be `whole`, no column is an extra."""
    made = []
    for title in titles:
        name = title.rstrip(">~!?")
        marks = title[len(name) :]
        made.append(
            Column(
                title=name,
                is_number=">" in marks,
                is_flexible="~" in marks,
                is_state="!" in marks,
                is_extra="?" in marks and not whole,
            )
        )
    return made


def width_of_output() -> int:
    """The width of the terminal; in a pipe `COLUMNS`, or no limit."""
    if sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return int(os.environ.get("COLUMNS") or UNLIMITED_COLUMNS)


def has_colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in ("dumb", "unknown")


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[str]], *, whole: bool = False) -> None:
    width = UNLIMITED_COLUMNS if whole else width_of_output()
    drawn = lines(columns, [tuple(row) for row in rows], width, in_colour=has_colours())
    sys.stdout.write("".join(f"{line}\n" for line in drawn))


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """One line for each name and value; an empty value is left out. Values may be longer than a line."""
    shown = [(name, value) for name, value in facts if value]
    width = max((len(name) for name, _ in shown), default=0)
    in_colour = has_colours()
    for name, value in shown:
        title = _styled(f"{name:<{width}}", "bold", in_colour)
        text = _styled(visible(value), STYLES.get(value.lower(), ""), in_colour)
        sys.stdout.write(f"{title}  {text}\n")


def lines(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int, *, in_colour: bool) -> list[str]:
    """The heading and a line for each row, no wider than this."""
    # a line break inside a cell would draw a second line
    cells = [[visible_line(" ".join(text.splitlines())) or "-" for text in row] for row in rows]
    kept = fitting(columns, cells, width)
    widths = _widths(columns, cells, kept, width)
    drawn = []
    for number, row in enumerate([[column.title for column in columns], *cells]):
        parts = []
        for place in kept:
            column, text = columns[place], row[place]
            style = "bold" if number == 0 else STYLES.get(text.lower(), "") if column.is_state else ""
            cut, blanks = _cut(text, widths[place])
            shown = _styled(cut, style, in_colour)
            parts.append(f"{blanks}{shown}" if column.is_number else f"{shown}{blanks}")
        drawn.append((" " * GAP).join(parts).rstrip())
    return drawn


def fitting(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """The indexes of the columns to draw: a few readable ones instead of all of them cut short. Extra columns are
    dropped first, then the last ones; the first column and states stay."""
    floors = []
    for place, column in enumerate(columns):
        widest = max([cell_len(column.title), *(cell_len(row[place]) for row in rows)])
        floors.append(min(widest, SHORTEST_FLEXIBLE) if column.is_flexible else widest)
    kept = list(range(len(columns)))
    last_first = list(reversed(kept))
    for place in [p for p in last_first if columns[p].is_extra] + [p for p in last_first if not columns[p].is_extra]:
        if sum(floors[p] + GAP for p in kept) - GAP <= width:
            break
        if place and not columns[place].is_state:
            kept = [p for p in kept if p != place]
    return kept


def _widths(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], kept: Sequence[int], width: int
) -> dict[int, int]:
    """The width of each column; the widest flexible ones are cut first."""
    widths = {place: max([cell_len(columns[place].title), *(cell_len(row[place]) for row in rows)]) for place in kept}
    excess = sum(widths.values()) + GAP * (len(kept) - 1) - width
    for group in ([place for place in kept if columns[place].is_flexible], list(kept)):
        while excess > 0 and group:
            widest = max(group, key=lambda place: widths[place])
            if widths[widest] <= 1:
                break
            widths[widest] -= 1
            excess -= 1
    return widths


def _cut(text: str, width: int) -> tuple[str, str]:
    """The text, cut if it is wider, and the blanks that fill it up."""
    if cell_len(text) > width:
        text = set_cell_size(text, width - 1) + "…"
    return text, " " * (width - cell_len(text))


def _styled(text: str, style: str, in_colour: bool) -> str:
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if in_colour and style else text
