"""Output that changes on the screen, drawn by Rich: lists that are kept up to date, progress bars and states.

Only commands that show such things import this module, because Rich takes longer to load than most commands take to
run. `columns` draws the tables.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from corral.cli.terminal.columns import UNLIMITED_COLUMNS, Column, lines
from corral.core.visible_text import visible


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
        in_colour = console.color_system is not None
        for line in lines(self.columns, self.rows, options.max_width, in_colour=in_colour):
            yield Text.from_ansi(line, no_wrap=True)


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> RenderableType:
    return _FittedTable(columns=columns, rows=[tuple(row) for row in rows])


def watch(draw: Callable[[], RenderableType], interval_seconds: float) -> None:
    """Redraw at an interval until Ctrl-C. `draw` returns what to show."""
    with Live(draw(), console=terminal_console(), auto_refresh=False, vertical_overflow="ellipsis") as live:
        while True:
            time.sleep(interval_seconds)
            live.update(draw(), refresh=True)
