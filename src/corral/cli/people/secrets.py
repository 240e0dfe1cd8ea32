"""`corral secret`: values that jobs get as environment variables or files, and that are never shown again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.changes import delete_named
from corral.cli.terminal.failures import WrongUsage
from corral.cli.terminal.terminal import Terminal, YesOption, command
from corral.core.os_errors import unreadable

app = typer.Typer(help="Manage secrets, which jobs get as variables or files.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The secret's name, such as wandb.")]
GroupOption = Annotated[
    str | None, typer.Option(metavar="GROUP", help="A secret of this group instead of your own (operators).")
]


@command(app, "ls", examples=["corral secret ls"])
def ls(terminal: Terminal) -> None:
    """List your secrets and those of your group, without their values."""
    with terminal.client() as client:
        found = list(client.secrets.list())
    now = terminal.now()
    terminal.table(
        ("NAME", "OF", "SET BY", "SET"),
        found,
        lambda view: (
            view["name"],
            f"group {view['group']}" if view["group"] else "you",
            view["set_by"],
            formats.ago(view["set_at"], now),
        ),
        empty="No secrets. Store one: corral secret set NAME",
    )


@command(
    app,
    "set",
    examples=[
        "corral secret set wandb",
        "corral secret set deploy-key --file ~/.ssh/deploy_key",
        'echo "$TOKEN" | corral secret set hub-token --group vision',
    ],
)
def put(
    terminal: Terminal,
    name: NameArgument,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Read the value from this file, unchanged.", dir_okay=False)
    ] = None,
    group: GroupOption = None,
) -> None:
    """Store a secret, or replace its value. The value is typed, piped in or read from a file, never an argument."""
    value = _value(terminal, file)
    with terminal.client() as client:
        view = client.secrets.put(name, value, group=group)
    whose = f" of group {view['group']}" if view["group"] else ""
    terminal.answer(view, f"Stored secret {view['name']}{whose}. Use it: corral submit --secret {view['name']} -- …")


@command(app, "rm", examples=["corral secret rm wandb"])
def rm(terminal: Terminal, name: NameArgument, group: GroupOption = None, yes: YesOption = False) -> None:
    """Delete a secret. Jobs that run keep it; jobs that wait for it will fail."""
    delete_named(terminal, "secret", name, lambda client: client.secrets.delete(name, group=group), yes=yes)


def _value(terminal: Terminal, file: Path | None) -> str:
    """Other users of the machine could read the arguments of a command."""
    if file is not None:
        try:
            value = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise WrongUsage(f"{file} cannot be read: {unreadable(error)}") from None
    elif terminal.is_interactive:
        value = str(typer.prompt("Value", hide_input=True, err=True))
    else:
        value = sys.stdin.read().removesuffix("\n")
    if not value:
        raise WrongUsage("the value is empty", hint="Type it when asked, pipe it in, or name a file with --file.")
    return value
