"""Tables for people, drawn by Rich: one line per row, cut where the terminal ends, whole when piped.

Imported only by commands that draw one, because Rich takes longer to load than most commands take to run.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

#: The colour goes with the word, never instead of it.
STYLES = {
    "running": "green",
    "completed": "green",
    "ready": "green",
    "healthy": "green",
    "start": "green",
    "ok": "green",
    "starting": "cyan",
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
#: No terminal to cut at: rows are as wide as they are.
UNLIMITED_COLUMNS = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    title: str
    #: numbers are aligned at their end
    is_number: bool = False
    #: gives way first when the terminal is narrow
    is_flexible: bool = False
    #: coloured by its word
    is_state: bool = False


def columns(*titles: str) -> list[Column]:
    """Columns from short marks: `GPUS>` is a number, `NAME~` is flexible, `STATE!` is a state."""
    made = []
    for title in titles:
        name, mark = (title[:-1], title[-1]) if title[-1] in ">~!" else (title, "")
        made.append(Column(title=name, is_number=mark == ">", is_flexible=mark == "~", is_state=mark == "!"))
    return made


def terminal_console(*, to_stderr: bool = False) -> Console:
    stream = sys.stderr if to_stderr else sys.stdout
    width = None if stream.isatty() else int(os.environ.get("COLUMNS") or UNLIMITED_COLUMNS)
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> Table:
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    for column in columns:
        drawn.add_column(
            column.title,
            justify="right" if column.is_number else "left",
            # Rich shortens the columns that could wrap first; their cells then refuse to wrap and are cut
            no_wrap=not column.is_flexible,
            overflow="ellipsis",
        )
    for row in rows:
        drawn.add_row(*(_cell(column, text) for column, text in zip(columns, row, strict=True)))
    return drawn


def _cell(column: Column, text: str) -> Text:
    style = STYLES.get(text.lower(), "") if column.is_state else ""
    # a line break inside a cell would draw a second line
    return Text(" ".join(text.splitlines()) or "-", style=style, no_wrap=True, overflow="ellipsis")


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    console = terminal_console()
    if console.is_terminal:
        console.print(table(columns, rows))
        return
    with console.capture() as drawn:
        console.print(table(columns, rows))
    # Rich fills up the last column; a pipe is better off without the blanks
    console.file.writelines(line.rstrip() + "\n" for line in drawn.get().splitlines())


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Names and values below each other; an empty value is left out. Values may be longer than a line."""
    shown = [(name, value) for name, value in facts if value]
    width = max((len(name) for name, _ in shown), default=0)
    console = terminal_console()
    for name, value in shown:
        text = Text(f"{name:<{width}}  ", style="bold")
        text.append(value, style=STYLES.get(value.lower(), "not bold"))
        console.print(text, soft_wrap=True)


def watch(draw: Callable[[], RenderableType], interval_seconds: float) -> None:
    """Draw again and again until Ctrl-C. `draw` gives what to show."""
    with Live(draw(), console=terminal_console(), auto_refresh=False, vertical_overflow="ellipsis") as live:
        while True:
            time.sleep(interval_seconds)
            live.update(draw(), refresh=True)
