"""`corral permission-group`: permissions of users (operators). `corral key`: your own SSH public keys."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.changes import delete_named
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, YesOption, command
from corral.core.os_errors import unreadable

group_app = typer.Typer(help="Manage permissions of users (operators).", no_args_is_help=True)
key_app = typer.Typer(help="Manage your own SSH public keys.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A permission group's name.")]
FunctionsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--function",
        metavar="FUNCTION",
        help="train, distribute, workbench, tasks, volumes, datasets, images, see-others-jobs or tokens; repeatable.",
    ),
]
DescriptionOption = Annotated[str | None, typer.Option(help="What the group is for.")]


@command(group_app, "ls", examples=["corral permission-group ls", "corral permission-group ls -o json"])
def list_groups(terminal: Terminal) -> None:
    """List the permission groups with their functions."""
    with terminal.client() as client:
        found = list(client.people.permission_groups())
    terminal.table(
        ("NAME", "USERS>", "FUNCTIONS~", "DESCRIPTION~?"),
        found,
        lambda view: (view["name"], str(view["users_count"]), formats.listed(view["functions"]), view["description"]),
        empty="No permission groups.",
    )


@command(
    group_app,
    "create",
    examples=["corral permission-group create students --function train --function tasks"],
)
def create_group(
    terminal: Terminal,
    name: NameArgument,
    function: FunctionsOption = None,
    description: DescriptionOption = None,
) -> None:
    """Create a permission group."""
    with terminal.client() as client:
        view = client.people.create_permission_group(
            {"name": name, "functions": function or [], "description": description or ""}
        )
    terminal.answer(view, f"Created permission group {name}: {formats.listed(view['functions'])}")


@command(
    group_app,
    "edit",
    examples=[
        "corral permission-group edit students --function train --function workbench",
        "corral permission-group edit students --none",
    ],
)
def edit_group(
    terminal: Terminal,
    name: NameArgument,
    function: FunctionsOption = None,
    none: Annotated[bool, typer.Option("--none", help="Remove all functions.")] = False,
    description: DescriptionOption = None,
) -> None:
    """Replace a permission group's functions or description. The change applies at once."""
    if function and none:
        raise WrongUsage("--function and --none exclude each other")
    changes: dict[str, Any] = {}
    if function or none:
        changes["functions"] = function or []
    if description is not None:
        changes["description"] = description
    if not changes:
        raise WrongUsage("nothing to change", hint="Give --function, --none or --description.")
    with terminal.client() as client:
        view = client.people.edit_permission_group(name, changes)
    terminal.answer(view, f"Permission group {name}: {formats.listed(view['functions'])}")


@command(group_app, "assign", examples=["corral permission-group assign students maria noah"])
def assign_group(
    terminal: Terminal,
    name: NameArgument,
    users: Annotated[list[str], typer.Argument(metavar="USER", help="Users to put into the group.")],
) -> None:
    """Put users into a permission group, all of them or none."""
    with terminal.client() as client:
        view = client.people.assign_permission_group(name, users)
    terminal.answer(view, f"{formats.listed(users)}: {formats.listed(view['functions'])}")


@command(group_app, "rm", examples=["corral permission-group rm students"])
def delete_group(terminal: Terminal, name: NameArgument, yes: YesOption = False) -> None:
    """Delete a permission group without users."""
    delete_named(
        terminal, "permission group", name, lambda client: client.people.delete_permission_group(name), yes=yes
    )


@command(key_app, "ls", examples=["corral key ls"])
def list_keys(terminal: Terminal) -> None:
    """List your SSH public keys."""
    with terminal.client() as client:
        found = list(client.people.ssh_keys())
    now = terminal.now()
    terminal.table(
        ("ID", "NAME~", "TYPE", "FINGERPRINT", "ADDED"),
        found,
        lambda view: (
            view["id"],
            view["name"],
            view["public_key"].split()[0],
            view["fingerprint"],
            formats.ago(view["created_at"], now),
        ),
        empty="No keys. Add one: corral key add ~/.ssh/id_ed25519.pub",
    )


@command(
    key_app,
    "add",
    examples=["corral key add ~/.ssh/id_ed25519.pub", "corral key add --name laptop - < id_ed25519.pub"],
)
def add_key(
    terminal: Terminal,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file that ends in .pub, or - for stdin.")],
    name: Annotated[str | None, typer.Option(help="The key's name.  [default: the key's comment]")] = None,
) -> None:
    """Add an SSH public key."""
    text = _read(file)
    if "PRIVATE KEY" in text:
        # A private key is not even sent: it must not leave this machine.
        raise WrongUsage(f"{file} is a private key: never give it away", hint=f"Add the public one: {file}.pub")
    parts = text.split(None, 2)
    comment = parts[2].strip() if len(parts) > 2 else ""
    with terminal.client() as client:
        view = client.people.add_ssh_key(name or comment[:63] or Path(file).stem, text)
    terminal.answer(view, f"Added key {view['name']} ({view['fingerprint']})")


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUsage(f"{file} cannot be read: {unreadable(error)}") from error


@command(key_app, "rm", examples=["corral key rm -y k-1f2e3d4c5b6a7988"])
def remove_key(
    terminal: Terminal,
    key_id: Annotated[str, typer.Argument(metavar="ID", help="A key's id, from `corral key ls`.")],
    yes: YesOption = False,
) -> None:
    """Remove one of your SSH public keys."""
    terminal.confirm(f"Remove key {key_id}?", assume_yes=yes)
    with terminal.client() as client:
        client.people.remove_ssh_key(key_id)
    terminal.answer({"id": key_id, "deleted": True}, f"Removed key {key_id}")
