"""`corral store`: moves the store between SQLite and PostgreSQL, on the machine of the server."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.system.server_settings import ConfigOption, HomeOption, refusals, server_settings
from corral.cli.terminal.failures import Refused
from corral.cli.terminal.terminal import Terminal, command
from corral.core.counts import counted, noun_for

if TYPE_CHECKING:
    from corral.stores.copying.store_move import StoreMove
    from corral.stores.copying.table_sync import CopiedTable

app = typer.Typer(help="Move the server's store to another database.", no_args_is_help=True)

_POLL_SECONDS = 0.2


@command(
    app,
    "move",
    connects=False,
    examples=[
        "corral store move --to postgresql://corral:PASSWORD@db.example.org/corral --copy-only",
        "corral store move --to postgresql://corral:PASSWORD@db.example.org/corral",
        "corral store move --to sqlite",
    ],
)
def move(
    terminal: Terminal,
    to: Annotated[str, typer.Option(metavar="URL", help="The new store: postgresql://… or sqlite (in the home).")],
    copy_only: Annotated[
        bool, typer.Option("--copy-only", help="Copy now, while the server runs; the next run copies the rest.")
    ] = False,
    wait: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="How long to wait for the server to stop.")
    ] = 600.0,
    config: ConfigOption = None,
    home: HomeOption = None,
) -> None:
    """Copy the store while the server runs, wait until the server is stopped, copy the last changes, compare every
    table, and close the old store. Run it again after an interruption: it continues."""
    from corral.stores.copying.store_move import StoreMove
    from corral.stores.database.opening import open_database

    settings = server_settings(config, home)
    target_url = f"sqlite:///{settings.home / 'corral.db'}" if to == "sqlite" else to
    with refusals():
        source, target = open_database(settings.database_url), open_database(target_url)
        try:
            work = StoreMove(source=source, target=target)
            if work.finish_interrupted():
                terminal.note("The copy was complete already; the new store is now open.")
                tables: Sequence[CopiedTable] = ()
            else:
                work.prepare()
                tables = _copied(terminal, work)
                if copy_only:
                    _report(terminal, tables, f"Copied. The store is still {source.place}.", moved=False)
                    return
                with _stopped_server(terminal, settings.home, wait):
                    tables = work.finish()
        finally:
            source.dispose()
            target.dispose()
    setting = "sqlite" if to == "sqlite" else target.place
    _report(terminal, tables, f"Moved. Set storage.database to {setting} and start the server.", moved=True)


def _copied(terminal: Terminal, work: StoreMove) -> list[CopiedTable]:
    """Copy until little changes any more, so that the last step is short."""
    tables = work.copy_while_running()
    changed = sum(table.changed for table in tables)
    terminal.note(f"Copied {counted(changed, 'row')} while the server may run.")
    if changed > 1000:
        again = sum(table.changed for table in work.copy_while_running())
        terminal.note(f"Copied {counted(again, 'row')} that changed meanwhile.")
    return tables


def _report(terminal: Terminal, tables: Sequence[CopiedTable], text: str, *, moved: bool) -> None:
    body = {"moved": moved, "items": [asdict(table) for table in tables]}
    rows = sum(table.rows for table in tables)
    compared = (
        f"{counted(len(tables), 'table')} with {counted(rows, 'row')} {noun_for(len(tables), 'is', 'are')} equal. "
        if moved and tables
        else ""
    )
    terminal.answer(body, compared + text)


@contextmanager
def _stopped_server(terminal: Terminal, home: Path, seconds: float) -> Iterator[None]:
    """Holds the lock of the home, so that no server starts meanwhile."""
    from corral.server.wiring.home_lock import HomeLock, HomeLocked

    until, is_asked = time.monotonic() + seconds, False
    while True:
        try:
            lock = HomeLock(home)
            break
        except HomeLocked as locked:
            if time.monotonic() >= until:
                raise Refused(
                    f"the server (process {locked.pid}) still runs",
                    hint="Stop it and run the same command again: what was copied stays.",
                ) from None
            if not is_asked:
                terminal.note(f"Stop the server now (process {locked.pid}), such as with `systemctl stop corral`.")
                is_asked = True
            time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        lock.release()
