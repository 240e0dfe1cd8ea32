"""`corral search`: anything by a part of its id or name."""

from __future__ import annotations

from typing import Annotated

import typer

from corral.cli.terminal.terminal import Section, Terminal, command

app = typer.Typer()

TITLES = ("WHAT", "ID", "NAME~", "DETAIL~")


@command(app, "search", section=Section.DAILY, examples=["corral search resnet", "corral search j-12 -o json"])
def search(
    terminal: Terminal,
    text: Annotated[str, typer.Argument(help="A part of an id or a name.")],
    limit: Annotated[int, typer.Option(min=1, max=50, metavar="N", help="At most so many.")] = 20,
) -> None:
    """Find jobs, nodes, GPUs, queues, images and all else that you may see, what matches best first."""
    with terminal.client() as client:
        found = client.system.search(text, limit=limit)
    terminal.table(
        TITLES,
        found,
        lambda item: (item["type"], item["id"], item["title"] if item["title"] != item["id"] else "", item["detail"]),
        empty=f"Nothing that you may see has {text!r} in its id or name.",
    )
