"""Changes and deletions: the fields that options set, and commands for several names, where one
refusal does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from corral.cli.terminal.failures import WrongUsage, exit_code, problem, readable
from corral.cli.terminal.terminal import Terminal
from corral.client.http.errors import ClientError

if TYPE_CHECKING:
    from corral.client.client import Client

View = TypeVar("View", bound=Mapping[str, Any])


def given_fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, by the field that they set."""
    return {field: value for field, value in options.items() if value is not None}


def check_changes(changes: Mapping[str, Any], command: str) -> None:
    """Raises WrongUsage if `command`, such as `queue edit`, has no option that changes something."""
    if not changes:
        raise WrongUsage("nothing to change", hint=f"`corral {command} --help` lists what can be changed.")


def change_each(
    terminal: Terminal, names: Sequence[str], change: Callable[[Client, str], View], text: Callable[[View], str]
) -> None:
    """Change things in order. The first refusal gives the exit code."""
    done, failed = list[View](), list[ClientError]()
    with terminal.client() as client:
        for name in names:
            try:
                view = change(client, name)
            except ClientError as error:
                if len(names) == 1:
                    raise
                own = terminal.explained(error)
                failed.append(own)
                terminal.note(problem(own) if terminal.has_json_errors else f"{name}: {readable(own)}")
            else:
                done.append(view)
                terminal.say(text(view))
    if terminal.as_json:
        terminal.json(done[0] if len(names) == 1 else {"items": done})
    if failed:
        raise typer.Exit(exit_code(failed[0]))


def delete_each(
    terminal: Terminal, names: Sequence[str], delete: Callable[[Client, str], Any], text: Callable[[str], str]
) -> None:
    """Delete things in order; `text` says of each that it is deleted."""

    def deleted(client: Client, name: str) -> dict[str, Any]:
        delete(client, name)
        return {"name": name, "deleted": True}

    change_each(terminal, list(dict.fromkeys(names)), deleted, lambda view: text(view["name"]))


def delete_named(terminal: Terminal, noun: str, name: str, delete: Callable[[Client], Any], *, yes: bool) -> None:
    """Delete one thing after the question whether to; `noun` is its kind, such as `group`."""
    terminal.confirm(f"Delete {noun} {name}?", assume_yes=yes)
    with terminal.client() as client:
        delete(client)
    terminal.answer({"name": name, "deleted": True}, f"Deleted {noun} {name}")
