"""`corral wait`: waits until jobs run or have ended, and exits with the code of the first one that did not complete."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.jobs.job_changes import JobsArgument
from corral.cli.jobs.job_texts import state_line
from corral.cli.jobs.submission.submit import still, wait_for_end
from corral.cli.terminal.arguments import seconds
from corral.cli.terminal.failures import Refused
from corral.cli.terminal.terminal import Section, Terminal, command

if TYPE_CHECKING:
    from corral.client.client import Client
    from corral.client.views import JobView

app = typer.Typer()


class WaitFor(StrEnum):
    ENDED = "ended"
    RUNNING = "running"


@command(
    app,
    "wait",
    section=Section.DAILY,
    examples=[
        "corral wait j-12",
        "corral wait prepare train",
        "corral wait $(corral jobs --mine -q)",
        "corral wait resnet --for running --timeout 10m",
    ],
)
def wait(
    terminal: Terminal,
    jobs: JobsArgument,
    wait_for: Annotated[WaitFor, typer.Option("--for", metavar="STATE", help="ended, or running.")] = WaitFor.ENDED,
    timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="The longest wait, such as 10m; then it exits with 1.")
    ] = None,
) -> None:
    """Wait until jobs have ended, and exit like the first one that did not complete.

    The states are notes on stderr. Ctrl-C stops waiting, not the jobs.
    """
    until = None if timeout is None else terminal.now() + seconds("--timeout", timeout)
    with terminal.client() as client:
        found = [client.jobs.get(job) for job in dict.fromkeys(jobs)]
        if wait_for is WaitFor.RUNNING:
            _wait_for_starts(terminal, client, found, until)
        else:
            wait_for_end(terminal, client, found, are_new=False, until=until)


def _wait_for_starts(terminal: Terminal, client: Client, jobs: Sequence[JobView], until: float | None) -> None:
    """Wait until all jobs run. A job that has ended meanwhile did run if it completed, and else gives the exit code."""
    from corral.client.jobs.jobs import exit_status

    found: list[JobView] = []
    code = 0
    for job in jobs:
        if job["state"] == "created":
            raise Refused(f"{job['id']} is held and does not start by itself", hint=f"corral start {job['id']}")
        left = None if until is None else max(0.0, until - terminal.now())
        view = client.jobs.wait_for_start(job, seconds=left)
        if view["state"] in ("queued", "starting"):
            raise still(view)
        found.append(view)
        terminal.note(f"{view['id']} {state_line(view)}")
        if view["state"] not in ("running", "stopping"):
            code = code or exit_status(view["state"], view["exit_code"])
    if terminal.as_json:
        terminal.json(found[0] if len(found) == 1 else {"items": found})
    raise typer.Exit(code)
