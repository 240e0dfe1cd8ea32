"""`corral tunnel`: a port of a job as a port of this machine."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from corral.cli.terminal.terminal import Section, Terminal, command

top = typer.Typer()


@command(
    top,
    "tunnel",
    section=Section.DAILY,
    examples=["corral tunnel train 8080", "corral tunnel train 5678 --local 5679", "corral tunnel board"],
)
def tunnel(
    terminal: Terminal,
    job: Annotated[str, typer.Argument(metavar="JOB", help="A job's name or id.")],
    port: Annotated[
        int | None, typer.Argument(metavar="PORT", min=1, max=65_535, help="The job's port; default: that of its app.")
    ] = None,
    local: Annotated[
        int | None, typer.Option(metavar="PORT", min=0, max=65_535, help="This machine's port; 0: a free one.")
    ] = None,
) -> None:
    """Make a port of a job's node a port of this machine, until Ctrl-C.

    Connections go through the server, with your sign-in. The program must belong to the job and listen at the loopback
    address or at all addresses of its node.
    """
    here = local if local is not None else port or 0
    with terminal.client() as client:
        carried = client.tunnel(job, port, terminal.note)

        def ready(listens_at: int) -> None:
            target = f"port {port} of {job}" if port is not None else f"the app of {job}"
            terminal.note(f"127.0.0.1:{listens_at} leads to {target}. Stop with Ctrl-C.")

        try:
            asyncio.run(carried.run(here, ready))
        except KeyboardInterrupt:
            raise typer.Exit(0) from None
