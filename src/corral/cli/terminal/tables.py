"""Tables for people, drawn by Rich: one line per row, cut at the width of the terminal, not cut in a pipe.

Only commands that print a table import this module, because Rich takes longer to load than most commands take to run.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

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


def terminal_console(*, to_stderr: bool = False, whole: bool = False) -> Console:
    """Draws no wider than the terminal, unless lines are to be `whole`. With NO_COLOR it prints plain text only."""
    stream = sys.stderr if to_stderr else sys.stdout
    width = None if stream.isatty() else int(os.environ.get("COLUMNS") or UNLIMITED_COLUMNS)
    return _VisibleConsole(
        file=stream,
        width=UNLIMITED_COLUMNS if whole else width,
        highlight=False,
        soft_wrap=False,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
    )


class _VisibleConsole(Console):
    """Makes control characters in text of users visible, so that they do not act on the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


@dataclass(frozen=True, kw_only=True, slots=True)
class _FittedTable:
    """A table that is fitted to the width at the time it is drawn."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        kept = fitting(self.columns, self.rows, options.max_width)
        drawn = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold", show_edge=False)
        for place in kept:
            column = self.columns[place]
            drawn.add_column(
                column.title,
                justify="right" if column.is_number else "left",
                # Rich shortens the columns that could wrap first; their cells then refuse to wrap and are cut
                no_wrap=not column.is_flexible,
                overflow="ellipsis",
            )
        for row in self.rows:
            drawn.add_row(*(_cell(self.columns[place], row[place]) for place in kept))
        yield drawn


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> RenderableType:
    return _FittedTable(columns=columns, rows=[tuple(row) for row in rows])


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


def _cell(column: Column, text: str) -> Text:
    style = STYLES.get(text.lower(), "") if column.is_state else ""
    # a line break inside a cell would draw a second line
    text = visible_line(" ".join(text.splitlines()))
    return Text(text or "-", style=style, no_wrap=True, overflow="ellipsis")


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[str]], *, whole: bool = False) -> None:
    console = terminal_console(whole=whole)
    if console.is_terminal and not whole:
        console.print(table(columns, rows))
        return
    with console.capture() as drawn:
        console.print(table(columns, rows))
    # Rich pads the last column with blanks, which a pipe does not need
    console.file.writelines(line.rstrip() + "\n" for line in drawn.get().splitlines())


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """One line for each name and value; an empty value is left out. Values may be longer than a line."""
    shown = [(name, value) for name, value in facts if value]
    width = max((len(name) for name, _ in shown), default=0)
    console = terminal_console()
    for name, value in shown:
        text = Text(f"{name:<{width}}  ", style="bold")
        text.append(visible(value), style=STYLES.get(value.lower(), "not bold"))
        console.print(text, soft_wrap=True)


def watch(draw: Callable[[], RenderableType], interval_seconds: float) -> None:
    """Redraw at an interval until Ctrl-C. `draw` returns what to show."""
    with Live(draw(), console=terminal_console(), auto_refresh=False, vertical_overflow="ellipsis") as live:
        while True:
            time.sleep(interval_seconds)
            live.update(draw(), refresh=True)
