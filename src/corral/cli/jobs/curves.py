"""`corral curves`: numbers that a job's program reports per step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.terminal import Section, Terminal, command

if TYPE_CHECKING:
    from corral.client.views import CurveView

app = typer.Typer()

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="A job's id, or the name of one of yours.")]

TITLES = ("NAME", "STEP>", "LAST>", "LEAST>", "MOST>", "POINTS>", "REPORTED>", "SOURCE~")
NOTHING_REPORTED = (
    "No curves. A program reports numbers with corral.checkpoint.log(step, loss=0.5), or writes TensorBoard event files"
    " into CORRAL_OUTPUT_DIR."
)
#: Marks of a small chart, lowest first.
_MARKS = "▁▂▃▄▅▆▇█"
_WIDTH = 24


@command(
    app,
    "curves",
    section=Section.DAILY,
    examples=["corral curves j-12", "corral curves resnet -o json"],
)
def curves(terminal: Terminal, job: JobArgument) -> None:
    """Show numbers that a job's program reports per step, such as its loss."""
    with terminal.client() as client:
        found = client.jobs.curves(job)
    now = terminal.now()
    terminal.table(TITLES, found["curves"], lambda curve: _row(curve, now), empty=NOTHING_REPORTED)


def spark(values: Sequence[float]) -> str:
    """A curve as one short line of text."""
    if len(values) > _WIDTH:
        values = [values[number * len(values) // _WIDTH] for number in range(_WIDTH)]
    least, most = min(values), max(values)
    span = (most - least) or 1.0
    return "".join(_MARKS[round((value - least) / span * (len(_MARKS) - 1))] for value in values)


def _row(curve: CurveView, now: float) -> Sequence[str]:
    values = [point["value"] for point in curve["points"] if point["value"] is not None]
    last = curve["points"][-1]
    shape = f" {spark(values)}" if values else ""
    return (
        curve["name"] + shape,
        str(last["step"]),
        _number(last["value"]),
        _number(min(values, default=None)),
        _number(max(values, default=None)),
        str(curve["count"]),
        formats.ago(last["at"], now),
        curve["source"] or ".",
    )


def _number(value: float | None) -> str:
    return formats.NOTHING if value is None else f"{value:.5g}"
