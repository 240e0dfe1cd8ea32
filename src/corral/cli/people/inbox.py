"""`corral inbox`: what happened to one's own jobs, volumes and shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.habits.habit_group import HabitGroup
from corral.cli.people import inbox_channels
from corral.cli.terminal import formats
from corral.cli.terminal.terminal import Terminal, default_command

if TYPE_CHECKING:
    from corral.client.views import InboxItemView

app = typer.Typer(help="Show what happened to your jobs, volumes and shares.")
app.add_typer(inbox_channels.app, name="channels", cls=HabitGroup)

TITLES = ("AT", "NEW!", "WHAT", "SUBJECT", "NAME~", "TEXT~")


@default_command(
    app,
    examples=[
        "corral inbox",
        "corral inbox --all",
        "corral inbox --keep",
        "corral inbox --mute started --mute ended",
        "corral inbox channels",
    ],
)
def inbox(
    terminal: Terminal,
    every: Annotated[bool, typer.Option("--all", help="Also items that you have read.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Do not mark the shown items as read.")] = False,
    mute: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="Never show items of this kind; repeatable. `--mute none` shows all again."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, metavar="N", help="At most N items.")] = 50,
) -> None:
    """Show what happened to your jobs, volumes and shares since you last looked, newest first."""
    now = terminal.now()
    with terminal.client() as client:
        if mute:
            state = client.inbox.mute([kind for kind in mute if kind != "none"])
            terminal.answer(state, f"Not shown: {formats.listed(state['muted'])}")
            return
        found = client.inbox.get(unread=not every, limit=limit)
        if found["items"] and not keep:
            client.inbox.read(found["items"][0]["id"])
    if terminal.as_json:
        terminal.json(found)
        return
    terminal.table(TITLES, found["items"], lambda item: _row(item, now), empty="Nothing new. Older: corral inbox --all")


def _row(item: InboxItemView, now: float) -> Sequence[str]:
    event = item["action"].partition(".")[2]
    receipt = f" (receipt {item['receipt']})" if item["receipt"] is not None else ""
    expected = f"expected start {formats.local_time(item['expected_at'])}" if item["expected_at"] is not None else ""
    return (
        formats.ago(item["at"], now),
        "" if item["read"] else "new",
        event,
        item["subject"],
        item["name"],
        item["text"] + receipt + expected,
    )
