"""`corral simulate`: replays a trace through the scheduler in virtual time, one run for every set of policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.failures import Refused, WrongUsage
from corral.cli.terminal.option_groups import group_of, with_options
from corral.cli.terminal.terminal import Section, Terminal, command
from corral.cli.whatif.simulation_options import SimulationOptions
from corral.core.os_errors import placed_reason

if TYPE_CHECKING:
    from corral.cli.whatif.simulation_setup import Prepared, Simulated
    from corral.simulator.replay import Progress

app = typer.Typer()

#: Users and groups in the tables; all of them are in the JSON output.
SHOWN = 10
#: Steps between two updates of the progress bar: an update costs more than most steps.
STEPS = 100


@command(
    app,
    "simulate",
    section=Section.CLUSTER,
    examples=[
        "corral simulate trace.csv",
        "corral simulate trace.csv --policy fair-share,fcfs,priority --plots plots",
        "corral simulate jobs.sacct --nodes 16x8xA100 --blocking strict,backfill --csv results",
        "corral simulate log.swf.gz --limit 10000 -o json",
        "corral simulate trace.csv --policy shortest --preempt no,yes --preemption-cost 60s --time-limits known",
        "corral simulate history --policy fcfs,fair-share",
    ],
)
@with_options(SimulationOptions)
def simulate(
    terminal: Terminal,
    trace: Annotated[
        str,
        typer.Argument(metavar="TRACE", help="A file, plain or .gz; or the word history: this server's finished jobs."),
    ],
    **typed: Any,
) -> None:
    """Run a trace through the scheduler in virtual time, and compare policies on it. Nothing is submitted."""
    from corral.cli.whatif.simulation_setup import prepare, run
    from corral.simulator.traces.job import UnreadableTrace

    options = group_of(SimulationOptions, typed)
    try:
        prepared = prepare(terminal, trace, options)
        _say_workload(terminal, prepared)
        done = []
        for name, rules in prepared.runs:
            with _progress(terminal, name, len(prepared.workload.jobs)) as on_progress:
                done.append(run(prepared, name, rules, on_progress))
        written = prepared.written(done)
    except UnreadableTrace as error:
        raise WrongUsage(str(error)) from error
    except OSError as error:
        raise Refused(f"cannot write {placed_reason(error)}") from error
    _answer(terminal, prepared, done, written)


def _say_workload(terminal: Terminal, prepared: Prepared) -> None:
    workload = prepared.workload
    terminal.say(
        f"{formats.count(len(workload.jobs), 'job')} of {prepared.trace} ({prepared.format_name}) on "
        f"{formats.count(len(workload.nodes), 'node')} with {formats.count(workload.gpus, 'GPU')}"
    )
    for reason, count in sorted(prepared.left_out.items()):
        if count:
            terminal.note(f"Left out: {formats.count(count, 'job')} ({reason})")


@contextmanager
def _progress(terminal: Terminal, name: str, jobs: int) -> Iterator[Callable[[Progress], None]]:
    """A bar on a terminal: jobs that have ended, and how far the virtual time has come."""
    from corral.cli.terminal import tables

    console = tables.terminal_console(to_stderr=True)
    if terminal.as_json or not console.is_terminal:
        yield lambda progress: None
        return
    from rich import progress as rich

    bar = rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[virtual]}"),
        rich.TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task(name, total=jobs, virtual="")
    seen = 0

    def update(progress: Progress) -> None:
        nonlocal seen
        seen += 1
        if seen % STEPS == 0:
            bar.update(task, completed=progress.ended_jobs, virtual=f"{formats.duration(progress.at)} simulated")

    with bar:
        yield update


def _answer(terminal: Terminal, prepared: Prepared, done: Sequence[Simulated], written: Sequence[str]) -> None:
    if terminal.as_json:
        terminal.json(
            {
                "jobs": len(prepared.workload.jobs),
                "left_out": dict(prepared.left_out),
                "nodes": len(prepared.workload.nodes),
                "gpus": prepared.workload.gpus,
                "runs": [{"name": result.name, "seconds": result.seconds, **result.summary} for result in done],
                "files": list(written),
            }
        )
        return
    terminal.say("")
    _say_figures(terminal, done)
    _say_usage(terminal, "USER", [result.summary["users"]["gpu_hours"] for result in done], done)
    if any(result.summary["groups"]["gpu_hours"].keys() - {""} for result in done):
        _say_usage(terminal, "GROUP", [result.summary["groups"]["gpu_hours"] for result in done], done)
    for path in written:
        terminal.note(f"Wrote {path}")


def _say_figures(terminal: Terminal, done: Sequence[Simulated]) -> None:
    """One column for every run, side by side."""
    figures: list[list[str]] = []
    for result in done:
        found = result.summary
        wait, completion = found["wait_seconds"], found["completion_seconds"]
        figures.append(
            [
                *(formats.duration(wait[key]) for key in ("mean", "p50", "p90", "p99")),
                *(formats.duration(completion[key]) for key in ("mean", "p50", "p90", "p99")),
                formats.number(found["slowdown"]["mean"]),
                formats.duration(found["makespan_seconds"]),
                f"{found['utilization'] * 100:.1f}%",
                formats.number(found["gpu_hours"]),
                f"{found['users']['jain']:.4f}",
                str(found["preemptions"]),
                formats.number(found["lost_gpu_hours"]),
                str(found["cut_jobs"]),
                str(found["unfinished_jobs"]),
                f"{found['jobs'] / result.seconds:,.0f}/s" if result.seconds else formats.NOTHING,
            ]
        )
    names = (
        *(f"waiting {key}" for key in ("mean", "p50", "p90", "p99")),
        *(f"completion {key}" for key in ("mean", "p50", "p90", "p99")),
        "slowdown mean",
        "makespan",
        "utilisation",
        "GPU-hours",
        "Jain's index of users",
        "preemptions",
        "GPU-hours lost",
        "cut at the time limit",
        "never started",
        "simulated jobs",
    )
    rows = [[name, *(column[place] for column in figures)] for place, name in enumerate(names)]
    terminal.table(("RUN", *(f"{result.name}>" for result in done)), rows, lambda row: row, empty="")


def _say_usage(terminal: Terminal, title: str, hours: Sequence[dict[str, float]], done: Sequence[Simulated]) -> None:
    """GPU-hours by user or group; a single one is not shown, because there is nothing to compare."""
    names = sorted(
        {name for hour in hours for name in hour}, key=lambda name: (-max(h.get(name, 0) for h in hours), name)
    )
    if len(names) < 2:
        return
    terminal.say("")
    rows = [
        [name or formats.NOTHING, *(formats.number(hour.get(name, 0.0)) for hour in hours)] for name in names[:SHOWN]
    ]
    terminal.table((f"GPU-HOURS OF {title}", *(f"{result.name}>" for result in done)), rows, lambda row: row, empty="")
    if len(names) > SHOWN:
        terminal.note(f"{len(names) - SHOWN} more are in the JSON output: -o json")
