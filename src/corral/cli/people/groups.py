"""`corral group`: groups of users and their pools (operators)."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.changes import delete_named, given_fields
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, YesOption, command

app = typer.Typer(help="Manage groups of users who share a pool (operators).", no_args_is_help=True)

NO_POOL = "none"

GroupArgument = Annotated[str, typer.Argument(metavar="GROUP", help="A group's name.")]
DescriptionOption = Annotated[str | None, typer.Option(help="Who is in the group.")]


@command(app, "ls", examples=["corral group ls", "corral group ls -o json"])
def ls(terminal: Terminal) -> None:
    """List the groups."""
    with terminal.client() as client:
        found = list(client.groups.list())
    terminal.table(
        ("NAME", "POOL", "HELD>", "ASKED>", "USERS>", "MEMBERS~", "DESCRIPTION~?"),
        found,
        lambda view: (
            view["name"],
            view["pool"] or formats.NOTHING,
            formats.number(view["gpus_held"]),
            formats.number(view["gpus_asked"]),
            str(view["users_count"]),
            formats.listed(view["users"]),
            view["description"],
        ),
        empty="No groups. Create one: corral group create NAME --user USER --pool POOL",
    )


@command(app, "show", examples=["corral group show vision"])
def show(terminal: Terminal, name: GroupArgument) -> None:
    """Show one group."""
    with terminal.client() as client:
        view = client.groups.get(name)
    terminal.facts(
        view,
        [
            ("Name", view["name"]),
            ("Description", view["description"]),
            ("Pool", view["pool"] or "none: its users cannot start jobs"),
            ("Users", formats.listed(view["users"])),
            ("GPUs held", formats.number(view["gpus_held"])),
            ("GPUs asked", formats.number(view["gpus_asked"])),
        ],
    )


@command(app, "create", examples=["corral group create vision --user maria --user chen --pool big"])
def create(
    terminal: Terminal,
    name: GroupArgument,
    user: Annotated[
        list[str] | None, typer.Option("--user", metavar="USER", help="A user who is in no group; repeatable.")
    ] = None,
    pool: Annotated[str | None, typer.Option(metavar="POOL", help="A pool that no group has.")] = None,
    description: DescriptionOption = None,
) -> None:
    """Create a group."""
    given = {"users": user, "pool": pool, "description": description}
    with terminal.client() as client:
        view = client.groups.create({"name": name, **given_fields(given)})
    terminal.answer(
        view,
        f"Created group {view['name']}: {formats.count(view['users_count'], 'user')}, pool {view['pool'] or 'none'}",
    )


@command(
    app,
    "edit",
    examples=[
        "corral group edit vision --add maria --remove chen",
        "corral group edit vision --move noor",
        "corral group edit vision --pool big",
        "corral group edit vision --pool none",
    ],
)
def edit(
    terminal: Terminal,
    name: GroupArgument,
    add: Annotated[list[str] | None, typer.Option("--add", metavar="USER", help="A user; repeatable.")] = None,
    move: Annotated[
        list[str] | None,
        typer.Option("--move", metavar="USER", help="A user who leaves their present group; repeatable."),
    ] = None,
    remove: Annotated[list[str] | None, typer.Option("--remove", metavar="USER", help="A user; repeatable.")] = None,
    pool: Annotated[str | None, typer.Option(metavar="POOL", help="The word none detaches the pool.")] = None,
    description: DescriptionOption = None,
) -> None:
    """Change the users of a group, or its pool. Waiting jobs stay; `corral why` shows if they have no pool any more."""
    given: dict[str, Any] = {"add_users": add, "move_users": move, "remove_users": remove, "description": description}
    changes = given_fields(given)
    if pool is not None:
        changes["pool"] = None if pool == NO_POOL else pool
    if not changes:
        raise WrongUsage("nothing to change", hint="Give --add, --move, --remove, --pool or --description.")
    with terminal.client() as client:
        view = client.groups.edit(name, changes)
    terminal.answer(view, f"Group {view['name']}: users {formats.listed(view['users'])}; pool {view['pool'] or 'none'}")


@command(app, "rm", examples=["corral group rm vision"])
def rm(terminal: Terminal, name: GroupArgument, yes: YesOption = False) -> None:
    """Delete a group without users and without a pool."""
    delete_named(terminal, "group", name, lambda client: client.groups.delete(name), yes=yes)
