"""`corral leader`: which of several servers leads."""

from __future__ import annotations

import typer

from corral.cli.terminal.terminal import Terminal, command

app = typer.Typer(help="The server that leads, if several share one store (operators).", no_args_is_help=True)


@command(app, "step-down", examples=["corral leader step-down"])
def step_down(terminal: Terminal) -> None:
    """Let another server lead, before maintenance for example. Jobs are untouched (operators)."""
    with terminal.client() as client:
        client.system.step_down()
    terminal.answer({"stepped_down": True}, "The leader steps down. `corral cluster servers` shows the new one.")
