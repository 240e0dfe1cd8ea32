"""`corral top`: the fleet live in a terminal. What a frame looks like is decided in `topview`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Section, Terminal, command
from corral.client.http.errors import ClientError

if TYPE_CHECKING:
    from corral.cli.fleet.top_view import Look, Picture, Sort
    from corral.client.client import Client

app = typer.Typer()

#: Of the jobs that wait, so many are fetched; the rest is a number.
WAITING_SHOWN = 100
_SORTS = ("node", "use", "memory", "heat")


@command(
    app,
    "top",
    section=Section.CLUSTER,
    examples=["corral top", "corral top --sort heat --interval 5", "corral top --once", "corral top -o json"],
)
def top(
    terminal: Terminal,
    interval: Annotated[float, typer.Option(min=0.2, metavar="SECONDS", help="Between updates.")] = 2.0,
    sort: Annotated[str, typer.Option(help="GPUs by node, or the most first: node, use, memory or heat.")] = "node",
    once: Annotated[bool, typer.Option("--once", help="Print one frame and end.")] = False,
) -> None:
    """Watch GPUs, running jobs and the queue, live; q quits. Without a terminal, one frame is printed."""
    if sort not in _SORTS:
        raise WrongUsage(f"--sort: {sort!r} is none of {', '.join(_SORTS)}")
    with terminal.client() as client:
        # The first one here: a server that was never there is an error, one that goes away later is only news.
        first = _picture(client, terminal.now)
        if terminal.as_json:
            terminal.json(_document(first))
            return
        from corral.cli.fleet.top_view import Sort

        if once or not (sys.stdin.isatty() and sys.stdout.isatty()):
            _print_once(first, Sort(sort), terminal.now())
        else:
            _watch(client, first, Sort(sort), interval, terminal.now)


def _picture(client: Client, now: Callable[[], float]) -> Picture:
    from corral.cli.fleet.top_view import Picture
    from corral.client.jobs.jobs import HOLDING_STATES

    return Picture(
        at=now(),
        server=client.server,
        overview=client.fleet.overview(),
        nodes=list(client.fleet.nodes()),
        running=list(client.jobs.list(states=HOLDING_STATES, sort="id")),
        waiting=list(client.jobs.list(states=("queued",), sort="id", limit=WAITING_SHOWN)),
    )


def _document(picture: Picture) -> dict[str, Any]:
    from corral.cli.terminal import formats

    return {
        "at": formats.rfc3339(picture.at),
        "server": picture.server,
        "overview": picture.overview,
        "nodes": list(picture.nodes),
        "running": list(picture.running),
        "waiting": list(picture.waiting),
    }


def _print_once(picture: Picture, sort: Sort, now: float) -> None:
    from corral.cli.fleet.top_view import whole
    from corral.cli.terminal.tables import UNLIMITED_COLUMNS, terminal_console

    console = terminal_console()
    # Bars as wide as a pipe would allow help nobody.
    width = console.width if console.width < UNLIMITED_COLUMNS else 120
    for line in whole(picture, sort, width=width, now=now):
        line.rstrip()
        console.print(line, no_wrap=True, crop=False)


class _Watcher:
    """Fetches pictures on a thread of its own, so that keys are answered while the server is not."""

    def __init__(
        self, fetch: Callable[[], Picture], first: Picture, interval_seconds: float, tell: Callable[[], None]
    ) -> None:
        self._fetch = fetch
        self._interval = interval_seconds
        self._tell = tell
        self._ending = threading.Event()
        self.picture = first
        self.trouble = ""
        self._thread = threading.Thread(target=self._run, name="top", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Not waited for: it may hang in a request, and has nothing to lose."""
        self._ending.set()

    def _run(self) -> None:
        while not self._ending.wait(self._interval):
            try:
                self.picture = self._fetch()
                self.trouble = ""
            except ClientError as error:
                self.trouble = error.message
            if not self._ending.is_set():
                self._tell()


def _watch(client: Client, first: Picture, sort: Sort, interval: float, now: Callable[[], float]) -> None:
    from rich.console import Group
    from rich.live import Live

    from corral.cli.fleet.top_view import Look, frame
    from corral.cli.terminal.keyboard import keyboard
    from corral.cli.terminal.tables import terminal_console

    console = terminal_console()
    look = Look(sort=sort)
    with keyboard() as keys:
        watcher = _Watcher(lambda: _picture(client, now), first, interval, keys.wake)
        with Live(console=console, screen=True, auto_refresh=False, transient=True) as live:
            watcher.start()
            try:
                while True:
                    width, height = console.size
                    lines, look = frame(
                        watcher.picture, look, width=width, height=height, now=now(), trouble=watcher.trouble
                    )
                    live.update(Group(*lines), refresh=True)
                    pressed = keys.wait(max(1.0, interval))
                    if pressed in ("q", "Q", "escape"):
                        return
                    look = _moved(look, pressed, height)
            finally:
                watcher.stop()


def _moved(look: Look, pressed: str | None, height: int) -> Look:
    page = max(1, height // 2)
    match pressed:
        case "j" | "down":
            return look.scrolled(1)
        case "k" | "up":
            return look.scrolled(-1)
        case " " | "page-down":
            return look.scrolled(page)
        case "b" | "page-up":
            return look.scrolled(-page)
        case "g" | "home":
            return look.to_start()
        case "G" | "end":
            return look.to_end()
        case "s":
            return look.next_sort()
        case "tab":
            return look.next_pane()
        case _:
            return look
