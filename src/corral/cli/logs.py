"""`corral logs`: the output of a job, once or as it is written."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from corral.cli.jobs import JobArgument
from corral.cli.terminal import Section, Terminal, command
from corral.client.errors import ServerUnreachable

app = typer.Typer()


@command(
    app,
    "logs",
    section=Section.DAILY,
    examples=["corral logs j-12", "corral logs -f resnet", "corral logs --tail 100 --attempt 1 --rank 3 j-12"],
)
def logs(
    terminal: Terminal,
    job: JobArgument,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the job ends; exit like it.")] = False,
    tail: Annotated[int | None, typer.Option(min=0, metavar="N", help="Begin with the last N lines.")] = None,
    attempt: Annotated[int | None, typer.Option(min=1, metavar="N", help="This attempt; default: the latest.")] = None,
    rank: Annotated[int, typer.Option(min=0, metavar="N", help="This instance of a gang; default: the first.")] = 0,
) -> None:
    """Print a job's output.

    With -f it goes on over restarts of the server and of the job, and exits with the job's own exit code.
    """
    if follow:
        _follow(terminal, job, attempt, rank, tail)
        return
    with terminal.client() as client:
        text = client.jobs.log(job, attempt=attempt, rank=rank, tail=tail)
    if terminal.as_json:
        terminal.json({"job": job, "attempt": attempt, "rank": rank, "text": text})
    elif text:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    else:
        terminal.note(f"No output yet. Wait for it: corral logs -f {job}. How the job is: corral show {job}")


def _follow(terminal: Terminal, job: str, attempt: int | None, rank: int, tail: int | None) -> None:
    """As JSON, every piece is a line of its own and the last one is the end."""
    import json

    from corral.client.following import LogText, Patience
    from corral.client.jobs import exit_status

    def lost(error: ServerUnreachable) -> None:
        terminal.note(f"{error.message} Still trying; the job is not affected.")

    with terminal.client() as client:
        pieces = client.jobs.follow_log(job, attempt=attempt, rank=rank, tail=tail, patience=Patience(on_lost=lost))
        for piece in pieces:
            if isinstance(piece, LogText):
                sys.stdout.write(json.dumps({"text": piece.text}) + "\n" if terminal.as_json else piece.text)
                sys.stdout.flush()
                continue
            if terminal.as_json:
                sys.stdout.write(json.dumps({"state": piece.state, "exit_code": piece.exit_code}) + "\n")
            else:
                code = "" if piece.exit_code is None else f", exit code {piece.exit_code}"
                terminal.note(f"-- {job} {piece.state}{code}")
            raise typer.Exit(exit_status(piece.state, piece.exit_code))
