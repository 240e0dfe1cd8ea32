"""`corral analyse`: findings about waste, usage, and moves that would free whole nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, YesOption, command, default_command

if TYPE_CHECKING:
    from corral.client.views import (
        AnalysisView,
        DefragmentationRunView,
        FindingView,
        GpuHoursView,
        MoveView,
        RunMoveView,
    )

app = typer.Typer(help="Find waste, and show usage.")

#: Rows of each usage table; the JSON output has all of them.
SHOWN = 10
USAGE_TITLES = ("{}", "GPU-HOURS>", "USE>", "IDLE>", "KWH>", "JOBS>")


@default_command(
    app,
    examples=[
        "corral analyse",
        "corral analyse --period 30d",
        "corral analyse -o json",
        "corral analyse defragmentation",
    ],
)
def analyse(
    terminal: Terminal,
    period: Annotated[str, typer.Option(metavar="DURATION", help="The period until now.")] = "7d",
) -> None:
    """Find idle and oversized jobs, scattered GPUs, hot GPUs, unbalanced pools and starving queues; and show GPU-hours
    and energy by user, group, queue and model (operators)."""
    with terminal.client() as client:
        found = client.analysis.analyse(period=period)
    if terminal.as_json:
        terminal.json(found)
        return
    _say_findings(terminal, found)
    _say_usage(terminal, found)


def _say_findings(terminal: Terminal, found: AnalysisView) -> None:
    since = formats.local_time(found["since"])
    if not found["findings"]:
        terminal.say(f"Nothing to improve was found since {since}.")
    else:
        terminal.say(f"{formats.count(len(found['findings']), 'finding')} since {since}")
    for note in found["notes"]:
        terminal.note(f"Note: {note}")
    for finding in found["findings"]:
        terminal.say(f"\n{_heading(finding)}")
        terminal.say(f"  {finding['text']}")
        terminal.say(f"  → {finding['proposal']}")


def _heading(finding: FindingView) -> str:
    return f"[{finding['severity']}] {finding['title']}"


def _say_usage(terminal: Terminal, found: AnalysisView) -> None:
    usage = found["usage"]
    for name, rows in (
        ("USER", usage["by_user"]),
        ("GROUP", usage["by_group"]),
        ("QUEUE", usage["by_queue"]),
        ("MODEL", usage["by_model"]),
    ):
        if not rows:
            continue
        terminal.say("")
        titles = (USAGE_TITLES[0].format(name), *USAGE_TITLES[1:])
        terminal.table(titles, rows[:SHOWN], _usage_row, empty="")
        if len(rows) > SHOWN:
            terminal.note(f"{len(rows) - SHOWN} more are in the JSON output: -o json")


def _usage_row(row: GpuHoursView) -> Sequence[str]:
    return (
        row["key"] or formats.NOTHING,
        formats.quantity(row["gpu_hours"]),
        formats.percent(row["utilization"]),
        formats.quantity(row["idle_gpu_hours"]) if row["measured_gpu_hours"] else formats.NOTHING,
        formats.quantity(row["energy_kwh"]) if row["measured_gpu_hours"] else formats.NOTHING,
        str(row["jobs"]),
    )


@command(
    app,
    "defragmentation",
    examples=[
        "corral analyse defragmentation",
        "corral analyse defragmentation --apply",
        "corral analyse defragmentation --apply --job j-12 --job j-15 --yes",
        "corral analyse defragmentation --status",
        "corral analyse defragmentation --undo",
    ],
)
def defragmentation(
    terminal: Terminal,
    *,
    apply: Annotated[bool, typer.Option("--apply", help="Carry the moves out, after a confirmation.")] = False,
    job: Annotated[
        list[str] | None, typer.Option("--job", metavar="JOB", help="Move only this job; repeatable.")
    ] = None,
    unsaved: Annotated[
        bool, typer.Option("--unsaved", help="Also move jobs that never saved: they lose their work.")
    ] = False,
    status: Annotated[bool, typer.Option("--status", help="Show the latest defragmentation.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Cancel the moves that have not begun.")] = False,
    yes: YesOption = False,
) -> None:
    """Preview moves of running jobs that would free whole nodes, and carry them out (operators). Without --apply,
    nothing is moved."""
    if sum((apply, status, undo)) > 1:
        raise WrongUsage("--apply, --status and --undo exclude each other")
    with terminal.client() as client:
        if status:
            _say_run(terminal, client.analysis.defragmentation_run())
            return
        if undo:
            _say_run(terminal, client.analysis.cancel_defragmentation())
            return
        plan = client.analysis.defragmentation()
        if apply and plan["moves"]:
            jobs = job or [move["job"] for move in plan["moves"]]
            question = f"Move {', '.join(jobs)}? Each saves, ends and goes on elsewhere."
            terminal.confirm(question, assume_yes=yes, is_reversible=True)
            _say_run(terminal, client.analysis.start_defragmentation(jobs=job, include_unsaved=unsaved))
            return
    if terminal.as_json:
        terminal.json(plan)
        return
    if not plan["moves"]:
        terminal.say("No small set of moves would free a whole node.")
        return
    terminal.table(
        ("#>", "JOB", "NAME~", "USER", "FROM", "TO", "GPUS~", "LOSES>"),
        list(enumerate(plan["moves"], start=1)),
        lambda item: _move_row(*item),
        empty="",
    )
    for freed in plan["frees"]:
        terminal.say(
            f"Frees {freed['node']}: {formats.count(len(freed['gpus']), freed['model'], freed['model'])} of pool"
            f" {freed['pool']}, of which {freed['free_before']} are free now."
        )
    if plan["helps"]:
        terminal.say(f"Could then start: {', '.join(plan['helps'])}")
    terminal.say(
        f"Costs at most {formats.quantity(plan['lost_gpu_hours'])} GPU-hours of work since the last checkpoints."
        " This is a preview: nothing was moved. Carry it out: corral analyse defragmentation --apply"
    )


def _say_run(terminal: Terminal, run: DefragmentationRunView) -> None:
    if terminal.as_json:
        terminal.json(run)
        return
    titles = ("JOB", "NAME~", "USER", "FROM", "TO", "STATE", "RECEIPT>", "DETAIL~")
    terminal.table(titles, run["moves"], _run_row, empty="")
    ended = run["ended_at"]
    by = f"Started {formats.local_time(run['started_at'])} by {run['started_by']}"
    terminal.say(f"{by}, over since {formats.local_time(ended)}." if ended else f"{by}, under way.")


def _run_row(move: RunMoveView) -> Sequence[str]:
    receipt = formats.NOTHING if move["receipt"] is None else str(move["receipt"])
    return (
        move["job"],
        move["name"],
        move["user"],
        move["from_node"],
        move["to_node"],
        move["state"],
        receipt,
        move["detail"],
    )


def _move_row(place: int, move: MoveView) -> Sequence[str]:
    gpus = [gpu for grant in move["after"]["grants"] for gpu in grant["gpus"]]
    return (
        str(place),
        move["job"],
        move["name"],
        move["user"],
        move["from_node"],
        move["to_node"],
        formats.listed(gpus),
        f"{formats.quantity(move['lost_gpu_hours'])} GPU-h",
    )
