"""`corral top`: the fleet live in a terminal. `top_view` draws the frames."""

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
    from corral.cli.fleet.top_view import Display, Snapshot, Sort
    from corral.client.client import Client

app = typer.Typer()

#: Waiting jobs that are fetched; the others are only counted.
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
        # The first snapshot is fetched here: an unreachable server is an error at the start, and only a notice later.
        first = _fetch_snapshot(client, terminal.now)
        if terminal.as_json:
            terminal.json(_document(first))
            return
        from corral.cli.fleet.top_view import Sort

        if once or not (sys.stdin.isatty() and sys.stdout.isatty()):
            _print_once(first, Sort(sort), terminal.now())
        else:
            _watch(client, first, Sort(sort), interval, terminal.now)


def _fetch_snapshot(client: Client, now: Callable[[], float]) -> Snapshot:
    from corral.cli.fleet.top_view import Snapshot
    from corral.client.jobs.jobs import HOLDING_STATES

    return Snapshot(
        at=now(),
        server=client.server,
        overview=client.fleet.overview(),
        nodes=list(client.fleet.nodes()),
        running=list(client.jobs.list(states=HOLDING_STATES, sort="id")),
        waiting=list(client.jobs.list(states=("queued",), sort="id", limit=WAITING_SHOWN)),
    )


def _document(snapshot: Snapshot) -> dict[str, Any]:
    from corral.cli.terminal import formats

    return {
        "at": formats.rfc3339(snapshot.at),
        "server": snapshot.server,
        "overview": snapshot.overview,
        "nodes": list(snapshot.nodes),
        "running": list(snapshot.running),
        "waiting": list(snapshot.waiting),
    }


def _print_once(snapshot: Snapshot, sort: Sort, now: float) -> None:
    from corral.cli.fleet.top_view import whole
    from corral.cli.terminal.columns import UNLIMITED_COLUMNS
    from corral.cli.terminal.tables import terminal_console

    console = terminal_console()
    # A pipe has no width; the bars would be useless there.
    width = console.width if console.width < UNLIMITED_COLUMNS else 120
    for line in whole(snapshot, sort, width=width, now=now):
        line.rstrip()
        console.print(line, no_wrap=True, crop=False)


class _Watcher:
    """Fetches snapshots in a separate thread, so that keys work while the server does not answer."""

    def __init__(
        self, fetch: Callable[[], Snapshot], first: Snapshot, interval_seconds: float, notify: Callable[[], None]
    ) -> None:
        self._fetch = fetch
        self._interval = interval_seconds
        self._notify = notify
        self._ending = threading.Event()
        self.snapshot = first
        self.trouble = ""
        self._thread = threading.Thread(target=self._run, name="top", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Does not wait for the thread, which may hang in a request."""
        self._ending.set()

    def _run(self) -> None:
        while not self._ending.wait(self._interval):
            try:
                self.snapshot = self._fetch()
                self.trouble = ""
            except ClientError as error:
                self.trouble = error.message
            if not self._ending.is_set():
                self._notify()


def _watch(client: Client, first: Snapshot, sort: Sort, interval: float, now: Callable[[], float]) -> None:
    from rich.console import Group
    from rich.live import Live

    from corral.cli.fleet.keyboard import keyboard
    from corral.cli.fleet.top_view import Display, frame
    from corral.cli.terminal.tables import terminal_console

    console = terminal_console()
    display = Display(sort=sort)
    with keyboard() as keys:
        watcher = _Watcher(lambda: _fetch_snapshot(client, now), first, interval, keys.wake)
        with Live(console=console, screen=True, auto_refresh=False, transient=True) as live:
            watcher.start()
            try:
                while True:
                    width, height = console.size
                    lines, display = frame(
                        watcher.snapshot, display, width=width, height=height, now=now(), trouble=watcher.trouble
                    )
                    live.update(Group(*lines), refresh=True)
                    pressed = keys.wait(max(1.0, interval))
                    if pressed in ("q", "Q", "escape"):
                        return
                    display = _moved(display, pressed, height)
            finally:
                watcher.stop()


def _moved(display: Display, pressed: str | None, height: int) -> Display:
    page = max(1, height // 2)
    match pressed:
        case "j" | "down":
            return display.scrolled(1)
        case "k" | "up":
            return display.scrolled(-1)
        case " " | "page-down":
            return display.scrolled(page)
        case "b" | "page-up":
            return display.scrolled(-page)
        case "g" | "home":
            return display.to_start()
        case "G" | "end":
            return display.to_end()
        case "s":
            return display.next_sort()
        case "tab":
            return display.next_pane()
        case _:
            return display
