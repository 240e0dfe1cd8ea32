"""`corral tunnel`: a port of a job as a port of this machine."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Section, Terminal, command

top = typer.Typer()

MOST_PORT = 65_535


@command(
    top,
    "tunnel",
    section=Section.DAILY,
    examples=["corral tunnel train 8080", "corral tunnel train 5679:5678", "corral tunnel board"],
)
def tunnel(
    terminal: Terminal,
    job: Annotated[str, typer.Argument(metavar="JOB", help="A job's name or id.")],
    port: Annotated[
        str | None,
        typer.Argument(metavar="[LOCAL:]PORT", help="The job's port; default: that of its app."),
    ] = None,
    local: Annotated[
        int | None, typer.Option(metavar="PORT", min=0, max=MOST_PORT, help="This machine's port; 0: a free one.")
    ] = None,
) -> None:
    """Make a port of a job's node a port of this machine, until Ctrl-C.

    Connections go through the server, with your sign-in. The program must belong to the job and listen at the loopback
    address or at all addresses of its node.
    """
    own, there = _ports(port)
    here = next((number for number in (local, own, there) if number is not None), 0)
    with terminal.client() as client:
        carried = client.tunnel(job, there, terminal.note)

        def ready(listens_at: int) -> None:
            target = f"port {there} of {job}" if there is not None else f"the app of {job}"
            terminal.note(f"127.0.0.1:{listens_at} leads to {target}. Stop with Ctrl-C.")

        try:
            asyncio.run(carried.run(here, ready))
        except KeyboardInterrupt:
            raise typer.Exit(0) from None


def _ports(text: str | None) -> tuple[int | None, int | None]:
    """The port of this machine and that of the job, each if it is given."""
    if text is None:
        return None, None
    own, colon, there = text.rpartition(":")
    return (_port(own) if colon else None), _port(there)


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_PORT:
        raise WrongUsage(f"PORT: {text!r} is not a port from 1 to {MOST_PORT}")
    return int(text)
