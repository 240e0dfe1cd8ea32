"""`corral checkpoints` and `corral checkpoint`: what a job's program has saved, and asking it to save now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.terminal import Section, Terminal, command

if TYPE_CHECKING:
    from corral.client.views import CheckpointView, JobView

app = typer.Typer()

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="A job's id, or the name of one of yours.")]

TITLES = ("NAME", "STEP>", "SAVED>", "SIZE>", "ATTEMPT>", "GOOD~")
NOTHING_SAVED = "Nothing was saved with the checkpoint helper. How a program saves: docs/how-to/jobs/checkpoints.md"


@command(
    app,
    "checkpoints",
    section=Section.DAILY,
    examples=["corral checkpoints j-12", "corral checkpoints resnet -o json"],
)
def checkpoints(terminal: Terminal, job: JobArgument) -> None:
    """List what a job's program has saved, the newest first: the next attempt resumes from the first good one."""
    with terminal.client() as client:
        saved = list(client.jobs.checkpoints(job))
    now = terminal.now()
    terminal.table(TITLES, saved, lambda item: _row(item, now), empty=NOTHING_SAVED)


@command(app, "checkpoint", section=Section.DAILY, examples=["corral checkpoint j-12"])
def checkpoint(terminal: Terminal, job: JobArgument) -> None:
    """Ask a running job to save its work now; a program with the checkpoint helper does so after its present step."""
    with terminal.client() as client:
        view = client.jobs.request_checkpoint(job)
    terminal.answer(view, f"{view['id']} was asked to save. See it: corral checkpoints {view['id']}")


def last_checkpoint(job: JobView, saved: Sequence[CheckpointView], now: float) -> str:
    """A line of `corral show`: `3m20s ago (step 1200)`. Programs with formats of their own have no steps to tell."""
    at = job.get("checkpointed_at")
    if at is None:
        return ""
    newest = next((item for item in saved if item["good"]), None)
    if newest is None:
        return formats.ago(at, now)
    return f"{formats.ago(newest['saved_at'] or at, now)} (step {newest['step']})"


def _row(saved: CheckpointView, now: float) -> Sequence[str]:
    return (
        saved["name"],
        str(saved["step"]),
        formats.ago(saved["saved_at"], now),
        formats.size(saved["size_bytes"]) if saved["good"] else formats.NOTHING,
        formats.NOTHING if saved["attempt"] is None else str(saved["attempt"]),
        "yes" if saved["good"] else f"no: {saved['problem']}",
    )
