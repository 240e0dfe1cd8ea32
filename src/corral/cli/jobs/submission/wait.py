"""`corral wait`: waits until jobs have ended, and exits with the code of the first one that did not complete."""

from __future__ import annotations

import typer

from corral.cli.jobs.job_changes import JobsArgument
from corral.cli.jobs.submission.submit import wait_for_end
from corral.cli.terminal.terminal import Section, Terminal, command

app = typer.Typer()


@command(
    app,
    "wait",
    section=Section.DAILY,
    examples=["corral wait j-12", "corral wait prepare train", "corral wait $(corral jobs --mine -q)"],
)
def wait(terminal: Terminal, jobs: JobsArgument) -> None:
    """Wait until jobs have ended, and exit like the first one that did not complete.

    The states are notes on stderr. Ctrl-C stops waiting, not the jobs.
    """
    with terminal.client() as client:
        found = [client.jobs.get(job) for job in dict.fromkeys(jobs)]
        wait_for_end(terminal, client, found, are_new=False)
