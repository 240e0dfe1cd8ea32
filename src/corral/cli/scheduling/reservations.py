"""`corral reservation`: GPUs reserved for users and groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.changes import check_changes, delete_named
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.hints import none_found
from corral.cli.terminal.moments import coming_window
from corral.cli.terminal.terminal import Terminal, YesOption, command

if TYPE_CHECKING:
    from corral.client.views import ReservationView

app = typer.Typer(help="See reserved GPUs; reserve them for users and groups (operators).", no_args_is_help=True)

ALWAYS = "always"
NONE = "none"

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A reservation's name.")]
GpusOption = Annotated[
    int | None, typer.Option("--gpus", min=1, metavar="N", help="The number of GPUs; corral chooses which.")
]
GpuOption = Annotated[
    list[str] | None, typer.Option("--gpu", metavar="GPU", help="Exactly this GPU (see corral gpus); repeatable.")
]
ModelOption = Annotated[str | None, typer.Option(metavar="MODEL", help="Of this GPU model.")]
UserOption = Annotated[list[str] | None, typer.Option("--user", metavar="USER", help="For this user; repeatable.")]
GroupOption = Annotated[
    list[str] | None, typer.Option("--group", metavar="GROUP", help="For this group's users; repeatable.")
]
FromOption = Annotated[
    str | None, typer.Option("--from", metavar="WHEN", help="18:00, in 2h, or a date and time; default: now.")
]
UntilOption = Annotated[
    str | None,
    typer.Option("--until", metavar="WHEN", help="20:00, 2h after --from, or a date and time; or always."),
]
LendOption = Annotated[
    bool | None,
    typer.Option(
        "--lend/--no-lend", help="Whether preemptible jobs of other users may use GPUs that the owners do not use."
    ),
]
NoteOption = Annotated[str | None, typer.Option(help="What the reservation is for.")]


@command(
    app, "ls", examples=["corral reservation ls", "corral reservation ls --pool big", "corral reservation ls -o json"]
)
def ls(
    terminal: Terminal,
    pool: Annotated[str | None, typer.Option(metavar="POOL", help="Only of this pool.")] = None,
    over: Annotated[bool, typer.Option("--over", help="With reservations that are over.")] = False,
) -> None:
    """List reservations and how many of their GPUs are in use."""
    now = terminal.now()
    with terminal.client() as client:
        found = [view for view in client.reservations.list(pool=pool) if over or view["state"] != "over"]
        hint = "Reserve: corral reservation create NAME --gpus 8 --group GROUP --until 20:00"
        empty = "" if terminal.as_json else none_found(client, found, "Nothing is reserved.", hint)
    terminal.table(
        ("NAME", "STATE!", "POOL", "GPUS>", "MODEL", "FOR~", "FROM", "UNTIL", "LENDS", "USED>", "LENT>", "NOTE~?"),
        sorted(found, key=lambda view: (view["since"], view["name"])),
        lambda view: _row(view, now),
        empty=empty,
    )


def _row(view: ReservationView, now: float) -> Sequence[str]:
    return (
        view["name"],
        view["state"],
        view["pool"],
        str(view["gpu_count"]),
        view["model"],
        _owners(view),
        formats.ago(view["since"], now),
        formats.ago(view["until"], now) if view["until"] else ALWAYS,
        "yes" if view["lends"] else "no",
        str(view["used_by_owners"]),
        str(view["lent"]),
        view["note"],
    )


def _owners(view: ReservationView) -> str:
    return formats.listed([*view["users"], *(f"group {group}" for group in view["groups"])])


@command(app, "show", examples=["corral reservation show demo", "corral reservation show demo -o json"])
def show(terminal: Terminal, name: NameArgument) -> None:
    """Show one reservation with its GPUs."""
    now = terminal.now()
    with terminal.client() as client:
        view = client.reservations.get(name)
    gpus = [f"{node or 'not there'}: {', '.join(ids)}" for node, ids in view["nodes"].items()]
    terminal.facts(
        view,
        [
            ("Name", view["name"]),
            ("State", view["state"] + ("" if view["in_force"] or view["state"] == "over" else ", without effect")),
            ("For", _owners(view)),
            ("Pool", view["pool"]),
            ("GPUs", f"{view['gpu_count']} {view['model']}; {'; '.join(gpus)}"),
            ("From", formats.at_and_ago(view["since"], now)),
            ("Until", formats.at_and_ago(view["until"], now) if view["until"] else "it is deleted"),
            ("Lends", "to preemptible jobs" if view["lends"] else "no"),
            ("In use", f"{view['used_by_owners']} by owners, {view['lent']} by others"),
            ("Note", view["note"]),
            ("Created", f"{formats.at_and_ago(view['created_at'], now)} by {view['created_by']}"),
        ],
    )


@command(
    app,
    "create",
    examples=[
        "corral reservation create demo --gpus 8 --pool big --group vision --from 18:00 --until 20:00 --no-lend",
        "corral reservation create sprint --gpus 4 --user maria --until 3d",
        "corral reservation create robots --gpu node-1/0 --gpu node-1/1 --group robots",
    ],
)
def create(
    terminal: Terminal,
    name: NameArgument,
    gpus: GpusOption = None,
    gpu: GpuOption = None,
    pool: Annotated[str, typer.Option(metavar="POOL", help="Of this pool.")] = "default",
    model: ModelOption = None,
    user: UserOption = None,
    group: GroupOption = None,
    since: FromOption = None,
    until: UntilOption = None,
    lend: LendOption = None,
    note: NoteOption = None,
) -> None:
    """Reserve GPUs: for a window of time, or standing without --until (operators)."""
    if not gpus and not gpu:
        raise WrongUsage("--gpus is missing", hint="Give --gpus 8, or --gpu ID for certain GPUs.")
    if not user and not group:
        raise WrongUsage("--user is missing", hint="Give --user or --group: the GPUs are reserved for their jobs.")
    given = _given(gpus, gpu, model, user, group, lend, note)
    body = {"name": name, "pool": pool, **given, **_window(terminal, since, until)}
    with terminal.client() as client:
        view = client.reservations.create(body)
    terminal.answer(view, f"Reserved {_reservation_text(view, terminal.now())}")


@command(
    app,
    "edit",
    examples=[
        "corral reservation edit demo --until 22:00",
        "corral reservation edit demo --gpus 16 --lend",
        "corral reservation edit robots --until always",
    ],
)
def edit(
    terminal: Terminal,
    name: NameArgument,
    gpus: GpusOption = None,
    gpu: GpuOption = None,
    model: ModelOption = None,
    user: UserOption = None,
    group: GroupOption = None,
    since: FromOption = None,
    until: UntilOption = None,
    lend: LendOption = None,
    note: NoteOption = None,
) -> None:
    """Change a reservation (operators). --user and --group replace the owners; the word none removes all of them."""
    changes = _given(gpus, gpu, model, user, group, lend, note)
    with terminal.client() as client:
        if until is not None and since is None:
            # "2h" counts from the beginning of the reservation, or from now if it has begun.
            begins = max(terminal.now(), formats.moment(client.reservations.get(name)["since"]))
            changes |= _window(terminal, None, until, begins)
        else:
            changes |= _window(terminal, since, until)
        check_changes(changes, "reservation edit")
        view = client.reservations.edit(name, changes)
    terminal.answer(view, f"Changed: {_reservation_text(view, terminal.now())}")


@command(app, "rm", examples=["corral reservation rm demo"])
def rm(terminal: Terminal, name: NameArgument, yes: YesOption = False) -> None:
    """Delete a reservation; jobs on its GPUs continue (operators)."""
    delete_named(terminal, "reservation", name, lambda client: client.reservations.delete(name), yes=yes)


def _given(
    gpus: int | None,
    gpu: list[str] | None,
    model: str | None,
    user: list[str] | None,
    group: list[str] | None,
    lend: bool | None,
    note: str | None,
) -> dict[str, Any]:
    given = {
        "gpus": gpus, "gpu_ids": gpu, "model": model, "users": user, "groups": group, "lends": lend, "note": note,
    }  # fmt: skip
    return {key: [] if value == [NONE] else value for key, value in given.items() if value is not None}


def _window(terminal: Terminal, since: str | None, until: str | None, begins: float | None = None) -> dict[str, Any]:
    if until == ALWAYS:
        return {**coming_window(since, None, terminal.now()), "until": None}
    return coming_window(since, until, terminal.now(), begins)


def _reservation_text(view: ReservationView, now: float) -> str:
    until = f"until {formats.local_time(view['until'])}" if view["until"] else "until it is deleted"
    begins = "from now on" if formats.moment(view["since"]) <= now else f"from {formats.local_time(view['since'])}"
    gpus = formats.count(view["gpu_count"], f"{view['model']} GPU")
    return (
        f"{gpus} of pool {view['pool']} for {_owners(view)}"
        f" {begins} {until}: {formats.listed([node for node in view['nodes'] if node])}"
    )
