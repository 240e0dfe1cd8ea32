"""`corral whatif`: replays past jobs with another policy, quota or fleet, without effect on the live system."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.changes import given_fields
from corral.cli.terminal.failures import Refused, WrongUsage
from corral.cli.terminal.moments import moment_option
from corral.cli.terminal.option_groups import group_of, with_options
from corral.cli.terminal.terminal import Terminal, YesOption, command, default_command
from corral.cli.whatif import scenarios
from corral.cli.whatif.policy_table import say_policies

if TYPE_CHECKING:
    from corral.client.client import Client
    from corral.client.views import ResultView, ShareView, SimulationView

app = typer.Typer(help="Replay past jobs with other rules or another fleet (operators).")

#: Groups and users in the tables; the JSON output has all of them.
SHOWN = 10
UNSUCCESSFUL = {"failed": "failed", "interrupted": "was interrupted", "cancelled": "was cancelled"}

SimulationArgument = Annotated[str, typer.Argument(metavar="SIMULATION", help="A simulation's id, such as s-12.")]


@default_command(
    app,
    examples=[
        "corral whatif --policy shortest",
        "corral whatif --all-policies",
        "corral whatif --days 30 --nodes +2x8xH100 --name 'two more nodes'",
        "corral whatif --scale 0.75 --blocking strict",
        "corral whatif --quota ann:16 --guarantee research:8",
        "corral whatif --since 2026-09-01T00:00:00Z --until 2026-09-08T00:00:00Z --policy fcfs -o json",
        "corral whatif --trace jobs.csv --policy fair-share --no-wait",
        "corral whatif ls",
    ],
)
@with_options(scenarios.RuleOptions, scenarios.FleetOptions)
def whatif(
    terminal: Terminal,
    days: Annotated[float | None, typer.Option(metavar="N", help="How far back, until now.  [default: 7]")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="The beginning: a time, or 3d for 3 days ago.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="WHEN", help="The end; default: now.")] = None,
    trace: Annotated[str | None, typer.Option(metavar="FILE", help="Jobs of a trace instead of the history.")] = None,
    *,
    all_policies: Annotated[
        bool, typer.Option("--all-policies", help="Compare all policies, with a recommendation and its price.")
    ] = False,
    name: Annotated[str, typer.Option(metavar="TEXT", help="A name for the simulation.")] = "",
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Don't wait for the result.")] = False,
    **typed: Any,
) -> None:
    """Replay past jobs with changed rules or another fleet, and compare both runs; with a command, show the results."""
    candidate = scenarios.rule_changes(group_of(scenarios.RuleOptions, typed))
    candidate |= scenarios.fleet_changes(group_of(scenarios.FleetOptions, typed))
    if all_policies:
        candidate["all_policies"] = True
    if not candidate:
        raise WrongUsage("a simulation needs a change", hint="Give one, such as --policy shortest or --scale 1.5.")
    body: dict[str, Any] = {"candidate": candidate, "name": name}
    if trace is not None:
        if days is not None or since or until:
            raise WrongUsage("a trace has its own times: leave out --days, --since and --until")
        body["jobs"] = _traced(terminal, trace)
    else:
        body |= _window(terminal, days, since, until)
    with terminal.client() as client:
        asked = client.simulations.create(body)
        if no_wait:
            terminal.answer(asked, f"Asked as {asked['id']}. Show it: corral whatif show {asked['id']}")
            return
        _show_result(terminal, _waited(terminal, client, asked))


def _window(terminal: Terminal, days: float | None, since: str | None, until: str | None) -> dict[str, Any]:
    if days is not None and (since or until):
        raise WrongUsage("give --days, or --since (and --until), not both")
    window = {
        "days": days,
        "since": moment_option("--since", since, terminal.now()),
        "until": moment_option("--until", until, terminal.now()),
    }
    return given_fields(window)


def _traced(terminal: Terminal, trace: str) -> list[dict[str, Any]]:
    """The jobs of a file in any format that `corral simulate` reads."""
    from corral.simulator.traces import detect
    from corral.simulator.traces.job import LeftOut, UnreadableTrace

    path, left_out = Path(trace), LeftOut()
    try:
        jobs = list(detect(path).read(path, left_out))
    except UnreadableTrace as error:
        raise WrongUsage(str(error)) from error
    for reason, count in sorted(left_out.items()):
        if count:
            terminal.note(f"Left out: {formats.count(count, 'job')} ({reason})")
    bodies = []
    for job in jobs:
        spread = max(1, job.nodes or 1)
        bodies.append(
            {
                "name": job.name[:253],
                "user": job.user,
                "group": job.group,
                "submitted_at": max(0.0, job.submitted_at),
                "run_seconds": job.run_seconds,
                "gpus": job.gpu_milli / 1000 if job.gpu_milli else -(-job.gpus // spread),
                "nodes": spread,
                "cpus": job.cpu_milli / 1000 / spread,
                "memory_bytes": -(-job.memory_bytes // spread),
                "models": list(job.models),
                "time_limit_seconds": job.time_limit_seconds,
                "priority": job.priority,
            }
        )
    return bodies


def _waited(terminal: Terminal, client: Client, asked: SimulationView) -> SimulationView:
    with _progress(terminal, asked) as update:
        try:
            done = client.simulations.wait(asked["id"], on_poll=update)
        except KeyboardInterrupt:
            terminal.note(f"\nIt continues. Show it: corral whatif show {asked['id']}")
            raise typer.Exit(130) from None
    if done["state"] in UNSUCCESSFUL:
        raise Refused(f"simulation {done['id']} {UNSUCCESSFUL[done['state']]}: {done['error'] or 'by an operator'}")
    return done


@contextmanager
def _progress(terminal: Terminal, asked: SimulationView) -> Iterator[Callable[[SimulationView], None]]:
    """A progress bar on a terminal, for both runs together."""
    from corral.cli.terminal import tables

    console = tables.terminal_console(to_stderr=True)
    if terminal.as_json or not console.is_terminal:
        yield lambda simulation: None
        return
    from rich import progress as rich

    bar = rich.Progress(
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TaskProgressColumn(),
        rich.TextColumn("{task.fields[phase]}"),
        rich.TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task(asked["id"], total=1.0, phase=asked["state"])

    def update(simulation: SimulationView) -> None:
        progress = simulation["progress"]
        bar.update(task, completed=progress["fraction"], phase=progress["phase"])

    with bar:
        yield update


@command(app, "ls", examples=["corral whatif ls", "corral whatif ls -o json"])
def ls(
    terminal: Terminal,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most N simulations.")] = 50,
) -> None:
    """List simulations, newest first, with the mean wait in both runs."""
    now = terminal.now()
    with terminal.client() as client:
        found = list(client.simulations.list(limit=limit))
    terminal.table(
        ("ID", "STATE!", "ASKED", "BY", "WAIT NOW>", "WAIT THEN>", "NAME~"),
        found,
        lambda view: (
            view["id"],
            view["state"] if view["state"] != "working" else f"{view['progress']['fraction'] * 100:.0f}%",
            formats.ago(view["created_at"], now),
            view["created_by"],
            *_waits(view),
            view["name"],
        ),
        empty="No simulations yet. Start one: corral whatif --policy shortest",
    )


def _waits(view: SimulationView) -> tuple[str, str]:
    if view["headline"] is None:
        return formats.NOTHING, formats.NOTHING
    wait = view["headline"]["wait_mean_seconds"]
    return formats.duration(wait["base"]), formats.duration(wait["candidate"])


@command(app, "show", examples=["corral whatif show s-12", "corral whatif show s-12 -o json"])
def show(terminal: Terminal, simulation: SimulationArgument) -> None:
    """Show a result, or the progress."""
    with terminal.client() as client:
        view = client.simulations.get(simulation)
    if view["result"] is not None:
        _show_result(terminal, view)
        return
    progress = view["progress"]
    terminal.facts(
        view,
        [
            ("Id", view["id"]),
            ("Name", view["name"]),
            ("State", view["state"]),
            ("Error", view["error"]),
            ("Changed", view["words"]["candidate"]),
            ("From", formats.local_time(view["since"])),
            ("Until", formats.local_time(view["until"])),
            ("Asked", formats.at_and_ago(view["created_at"], terminal.now())),
            ("By", view["created_by"]),
            ("Done", f"{progress['fraction'] * 100:.0f}% ({progress['phase']})" if view["state"] == "working" else ""),
        ],
    )


@command(app, "cancel", examples=["corral whatif cancel s-12"])
def cancel(terminal: Terminal, simulation: SimulationArgument) -> None:
    """Cancel a simulation that waits or runs."""
    with terminal.client() as client:
        view = client.simulations.cancel(simulation)
    terminal.answer(view, f"Cancelled {view['id']}")


@command(app, "again", examples=["corral whatif again s-12", "corral whatif again s-12 --no-wait"])
def again(
    terminal: Terminal,
    simulation: SimulationArgument,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Don't wait for the result.")] = False,
) -> None:
    """Run the same simulation again, with the current state of the cluster."""
    with terminal.client() as client:
        asked = client.simulations.again(simulation)
        if no_wait:
            terminal.answer(asked, f"Asked as {asked['id']}. Show it: corral whatif show {asked['id']}")
            return
        _show_result(terminal, _waited(terminal, client, asked))


@command(app, "rm", examples=["corral whatif rm s-12"])
def rm(
    terminal: Terminal,
    simulations: Annotated[list[str], typer.Argument(metavar="SIMULATION", help="One or more ids.")],
    yes: YesOption = False,
) -> None:
    """Delete simulations with their results; a running one is cancelled."""
    terminal.confirm(
        f"Delete {formats.count(len(simulations), 'simulation')}: {formats.listed(simulations)}?", assume_yes=yes
    )
    with terminal.client() as client:
        for simulation in simulations:
            client.simulations.delete(simulation)
    terminal.answer({"deleted": simulations}, f"Deleted {formats.listed(simulations)}")


# ---------------------------------------------------------------- the result


def _show_result(terminal: Terminal, view: SimulationView) -> None:
    result = view["result"]
    assert result is not None
    if terminal.as_json:
        terminal.json(view)
        return
    terminal.say(
        f"{view['id']}: {formats.count(result['jobs'], 'job')} from "
        f"{formats.local_time(view['history_since'] or view['since'])} to "
        f"{formats.local_time(view['until'])}, replayed {_times(result)} in {formats.duration(result['seconds'])}"
    )
    if view["history_since"]:
        terminal.note(_coverage(view))
    terminal.say(f"Changed: {view['words']['candidate']}")
    if result["fidelity"] is not None:
        terminal.say(result["fidelity"]["words"])
    notes = Counter({item["reason"]: item["jobs"] for item in result["left_out"]})
    for reason, count in notes.items():
        terminal.note(f"Left out: {formats.count(count, 'job')} ({reason})")
    if result["estimated_jobs"]:
        terminal.note(f"The run time of {formats.count(result['estimated_jobs'], 'job')} is a prediction.")
    say_policies(terminal, result)
    terminal.say("")
    rows = [
        (item["label"], _amount(item["unit"], item["base"]), _amount(item["unit"], item["candidate"]), _change(item))
        for item in result["differences"]
        if item["base"] is not None or item["candidate"] is not None
    ]
    terminal.table(("", f"{_base_title(view)}>", "CHANGED>", "DIFFERENCE>"), rows, lambda row: row, empty="")
    _say_shares(terminal, "SIZE", result.get("sizes", []))
    _say_shares(terminal, "GROUP", result["groups"])
    _say_shares(terminal, "USER", result["users"])
    if len(result["queues"]) > 1:
        _say_shares(terminal, "QUEUE", result["queues"])


def _times(result: ResultView) -> str:
    policies = result.get("policies")
    return f"with {formats.count(len(policies), 'policy', 'policies')}" if policies else "twice"


def _base_title(view: SimulationView) -> str:
    return "BASE" if view["base"] else "AS IT IS"


def _amount(unit: str, value: float | None) -> str:
    if value is None:
        return formats.NOTHING
    match unit:
        case "seconds":
            return formats.duration(value)
        case "fraction":
            return f"{value * 100:.1f}%"
        case "index":
            return f"{value:.4f}"
        case _:
            return formats.number(value)


def _change(item: Any) -> str:
    """The change in percent, and whether it is an improvement."""
    if not item["change"]:
        return "="
    amount = f"{item['percent']:+.1f}%" if item["percent"] is not None else f"{item['change']:+g}"
    return amount + {True: " better", False: " worse", None: ""}[item["better"]]


def _say_shares(terminal: Terminal, title: str, shares: Sequence[ShareView]) -> None:
    """Both runs side by side for each user, group or queue; a single one is not shown."""
    if len(shares) < 2:
        return
    terminal.say("")
    rows = [
        (
            share["name"] or formats.NOTHING,
            str(share["jobs"]),
            *(
                formats.duration(share[run][key])
                for key in ("wait_mean_seconds", "wait_p90_seconds", "completion_mean_seconds")
                for run in ("base", "candidate")
            ),
            formats.number(share["base"]["gpu_hours"]),
            formats.number(share["candidate"]["gpu_hours"]),
        )
        for share in shares[:SHOWN]
    ]
    titles = (title, "JOBS>", "WAIT>", "THEN>", "P90>", "THEN>", "COMPLETION>", "THEN>", "GPU-HOURS>", "THEN>")
    terminal.table(titles, rows, lambda row: row, empty="")
    if len(shares) > SHOWN:
        terminal.note(f"{len(shares) - SHOWN} more are in the JSON output: -o json")


def _coverage(view: SimulationView) -> str:
    """How much of the window has history."""
    since, until = formats.moment(view["since"]), formats.moment(view["until"])
    covered = until - formats.moment(view["history_since"] or view["since"])
    return (
        f"The history of jobs begins {formats.duration(covered)} before the end of the window: only those of its "
        f"{formats.duration(until - since)} are replayed."
    )
