"""`corral receipts`: preemptions, with victim, preempting job, rule and cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.moments import moment_option
from corral.cli.terminal.terminal import Section, Terminal, command

if TYPE_CHECKING:
    from corral.client.views import ReceiptView

app = typer.Typer()

RULES = ("guarantee", "reservation", "order", "overrun", "move")
TITLES = ("AT", "VICTIM", "USER", "GPUS>", "FOR", "OF", "RULE", "LOST>", "SAVED?", "BACK", "WHY~")
NOTHING = "No job was preempted."


@command(
    app,
    "receipts",
    section=Section.QUEUE,
    examples=[
        "corral receipts",
        "corral receipts j-12",
        "corral receipts --since 7d --rule guarantee",
        "corral receipts --user maria -o json",
    ],
)
def receipts(
    terminal: Terminal,
    job: Annotated[
        str | None, typer.Argument(metavar="[JOB]", help="Only preemptions of this job, or for this job.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="Only since: RFC 3339, or 2h for 2 hours ago.")
    ] = None,
    rule: Annotated[str | None, typer.Option(help="guarantee, reservation, order, overrun or move.")] = None,
    user: Annotated[str | None, typer.Option(help="Only with a job of this user, as victim or preempting job.")] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most N receipts.")] = 50,
) -> None:
    """Show preemptions, newest first. Users see those of their own jobs on either side, operators all."""
    if job is not None and (since or rule or user):
        raise WrongUsage("name a job or give filters, not both")
    if rule is not None and rule not in RULES:
        raise WrongUsage(f"--rule: there is no rule {rule!r}", hint=f"There are: {', '.join(RULES)}.")
    now = terminal.now()
    with terminal.client() as client:
        found: Sequence[ReceiptView]
        if job is not None:
            found = client.receipts.of_job(job)[:limit]
        else:
            begin = moment_option("--since", since, now)
            found = list(client.receipts.list(since=begin, rule=rule, user=user, limit=limit))
    show(terminal, found)


def show(terminal: Terminal, found: Sequence[ReceiptView]) -> None:
    now = terminal.now()
    terminal.table(TITLES, found, lambda receipt: _row(receipt, now), empty=NOTHING)


def _row(receipt: ReceiptView, now: float) -> Sequence[str]:
    return (
        formats.ago(receipt["at"], now),
        receipt["job"],
        receipt["user"],
        formats.number(receipt["gpus"]),
        receipt["for_job"],
        receipt["for_user"],
        receipt["rule"],
        lost_text(receipt),
        {True: "yes", False: "no", None: formats.NOTHING}[receipt["saved"]],
        _back_text(receipt, now),
        receipt["detail"],
    )


def lost_text(receipt: ReceiptView) -> str:
    """Lost GPU time; an upper bound until it is known whether the job saved a checkpoint."""
    lost = formats.duration(receipt["lost_gpu_seconds"])
    return lost if receipt["saved"] is not None else f"≤ {lost}"


def _back_text(receipt: ReceiptView, now: float) -> str:
    if receipt["back_at"] is not None:
        return formats.ago(receipt["back_at"], now)
    expected = receipt["expected_back"]
    if expected is not None:
        return f"expected {formats.ago(expected['p50'], now)}"
    return "stopping" if receipt["ended_at"] is None else formats.NOTHING
