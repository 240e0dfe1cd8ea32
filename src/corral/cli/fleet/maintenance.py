"""`corral maintenance`: times in which nodes have no jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.fleet.drain_preview import show_preview
from corral.cli.terminal import completion, formats
from corral.cli.terminal.changes import check_changes, delete_named
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.moments import coming_window
from corral.cli.terminal.terminal import Terminal, YesOption, command

if TYPE_CHECKING:
    from corral.client.views import MaintenanceView

app = typer.Typer(help="See planned maintenance; plan it (operators).", no_args_is_help=True)

ONCE = "once"
#: Days by the words of --every.
PERIODS = {"day": 1, "week": 7, "2-weeks": 14, "4-weeks": 28}
PERIOD_WORDS = ", ".join([*PERIODS, ONCE])

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name of a maintenance window.")]
NodeOption = Annotated[
    list[str] | None,
    typer.Option("--node", metavar="NODE", help="This node; repeatable.", autocompletion=completion.node_names),
]
FromOption = Annotated[
    str | None,
    typer.Option("--from", metavar="WHEN", help="When the nodes are to be empty: 18:00, 2h from now, or a date."),
]
UntilOption = Annotated[
    str | None, typer.Option("--until", metavar="WHEN", help="20:00, 2h after --from, or a date and time.")
]
EveryOption = Annotated[
    str | None, typer.Option("--every", metavar="PERIOD", help=f"{PERIOD_WORDS}, or a number of days; default: once.")
]
DrainOption = Annotated[
    str | None,
    typer.Option(
        "--drain-before", metavar="TIME", help="The nodes take no new jobs for this time before it; default: 1h."
    ),
]
NoteOption = Annotated[str | None, typer.Option(help="What is done.")]


@command(app, "ls", examples=["corral maintenance ls", "corral maintenance ls -o json"])
def ls(
    terminal: Terminal,
    over: Annotated[bool, typer.Option("--over", help="With windows that are over.")] = False,
) -> None:
    """List maintenance windows; a repeated one with its next time."""
    now = terminal.now()
    with terminal.client() as client:
        found = [view for view in client.maintenance.list() if over or view["state"] != "over"]
    terminal.table(
        ("NAME", "STATE!", "NODES~", "FROM", "UNTIL", "EVERY", "DRAINS", "NOTE~?"),
        sorted(found, key=lambda view: (view["since"], view["name"])),
        lambda view: _row(view, now),
        empty="No maintenance is planned. Plan it: corral maintenance create NAME --node NODE --from 22:00 --until 2h",
    )


def _row(view: MaintenanceView, now: float) -> Sequence[str]:
    return (
        view["name"],
        view["state"],
        formats.listed(view["nodes"]),
        formats.ago(view["since"], now),
        formats.ago(view["until"], now),
        _every(view),
        formats.ago(view["drains_at"], now),
        view["note"],
    )


@command(app, "show", examples=["corral maintenance show fans", "corral maintenance show fans -o json"])
def show(terminal: Terminal, name: NameArgument) -> None:
    """Show one maintenance window with the nodes that still have jobs."""
    now = terminal.now()
    with terminal.client() as client:
        view = client.maintenance.get(name)
    terminal.facts(
        view,
        [
            ("Name", view["name"]),
            ("State", view["state"]),
            ("Nodes", ", ".join(view["nodes"])),
            ("From", formats.at_and_ago(view["since"], now)),
            ("Until", formats.at_and_ago(view["until"], now)),
            ("Every", _every(view)),
            ("Drains", formats.at_and_ago(view["drains_at"], now)),
            ("With jobs", ", ".join(view["nodes_left"])),
            ("Note", view["note"]),
            ("Created", f"{formats.at_and_ago(view['created_at'], now)} by {view['created_by']}"),
        ],
    )


@command(
    app,
    "create",
    examples=[
        "corral maintenance create fans --node gpu-03 --from 22:00 --until 2h",
        "corral maintenance create fans --node gpu-03 --from 22:00 --until 2h --preview",
        "corral maintenance create updates --node gpu-03 --node gpu-04 --from 02:00 --until 4h --every week",
    ],
)
def create(
    terminal: Terminal,
    name: NameArgument,
    node: NodeOption = None,
    since: FromOption = None,
    until: UntilOption = None,
    every: EveryOption = None,
    drain_before: DrainOption = None,
    note: NoteOption = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Only show which jobs it would displace; nothing changes.")
    ] = False,
) -> None:
    """Plan maintenance: nodes are drained before it and take jobs again after it (operators)."""
    if not node:
        raise WrongUsage("--node is missing", hint="Give it once for each node.")
    if until is None:
        raise WrongUsage("--until is missing", hint="Give an end, such as 23:30, or a length, such as 2h.")
    body = {"name": name, "nodes": node, **_given(terminal, since, until, every, drain_before, note)}
    if preview:
        show_preview(terminal, node, body.get("since"))
        return
    with terminal.client() as client:
        view = client.maintenance.create(body)
    terminal.answer(view, f"Planned {_text(view)}")


@command(
    app,
    "edit",
    examples=[
        "corral maintenance edit fans --until 23:30",
        "corral maintenance edit updates --every once",
    ],
)
def edit(
    terminal: Terminal,
    name: NameArgument,
    node: NodeOption = None,
    since: FromOption = None,
    until: UntilOption = None,
    every: EveryOption = None,
    drain_before: DrainOption = None,
    note: NoteOption = None,
) -> None:
    """Change a maintenance window (operators). --node replaces the nodes."""
    with terminal.client() as client:
        begins = None
        if until is not None and since is None:
            # "2h" counts from its beginning.
            begins = formats.moment(client.maintenance.get(name)["since"])
        changes = _given(terminal, since, until, every, drain_before, note, begins)
        if node:
            changes["nodes"] = node
        check_changes(changes, "maintenance edit")
        view = client.maintenance.edit(name, changes)
    terminal.answer(view, f"Changed: {_text(view)}")


@command(app, "rm", examples=["corral maintenance rm fans"])
def rm(terminal: Terminal, name: NameArgument, yes: YesOption = False) -> None:
    """Delete a maintenance window; nodes that are drained for it take jobs again (operators)."""
    delete_named(terminal, "maintenance window", name, lambda client: client.maintenance.delete(name), yes=yes)


def _given(
    terminal: Terminal,
    since: str | None,
    until: str | None,
    every: str | None,
    drain_before: str | None,
    note: str | None,
    begins: float | None = None,
) -> dict[str, Any]:
    found: dict[str, Any] = coming_window(since, until, terminal.now(), begins)
    if every is not None:
        found["every_days"] = _days(every)
    if drain_before is not None:
        found["drain_before"] = drain_before
    if note is not None:
        found["note"] = note
    return found


def _days(every: str) -> int | None:
    if every == ONCE:
        return None
    days = PERIODS.get(every) or (int(every) if every.isascii() and every.isdigit() and len(every) < 4 else 0)
    if not days:
        raise WrongUsage(f"--every: {every!r} is no period", hint=f"Write {PERIOD_WORDS}, or a number of days.")
    return days


def _every(view: MaintenanceView) -> str:
    days = view["every_days"]
    if days is None:
        return ONCE
    names = [name for name, length in PERIODS.items() if length == days]
    return names[0] if names else formats.count(days, "day")


def _text(view: MaintenanceView) -> str:
    repeated = "" if view["every_days"] is None else f", every {_every(view)}"
    return (
        f"maintenance of {formats.listed(view['nodes'])} from {formats.local_time(view['since'])} until "
        f"{formats.local_time(view['until'])}{repeated}; no new jobs from {formats.local_time(view['drains_at'])} on"
    )
