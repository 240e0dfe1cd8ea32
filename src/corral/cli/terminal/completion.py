"""Completion of names in the shell: the server is asked for the names of jobs, users, queues, volumes and so on.

A shell waits for the answer while a user types: one request with few items is made, and a server that does not answer
gives no names.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import typer

from corral.client.http.errors import ClientError

if TYPE_CHECKING:
    from corral.client.client import Client

MOST_NAMES = 200


def _completer(names: Callable[[Client], Iterable[tuple[str, str]]]) -> Callable[[typer.Context, str], list[Any]]:
    def complete(ctx: typer.Context, incomplete: str) -> list[Any]:
        from corral.client.client import Client

        try:
            with Client.from_environment(_given(ctx, "server"), _given(ctx, "token"), environment=os.environ) as client:
                found = list(names(client))
        except ClientError:
            # the shell shows no names; the command itself will say what is wrong
            return []
        return [(name, detail) for name, detail in found if name.startswith(incomplete)]

    return complete


def _given(ctx: Any, option: str) -> str | None:
    """An option on the command line, before or after the command's name."""
    while ctx is not None:
        if ctx.params.get(option):
            return str(ctx.params[option])
        ctx = ctx.parent
    return None


def _jobs(client: Client) -> Iterable[tuple[str, str]]:
    me = client.people.me()["name"]
    for job in client.jobs.list(sort="-created_at", limit=MOST_NAMES):
        yield job["id"], f"{job['name']}, {job['state']}"
        if job["user"] == me:
            yield job["name"], f"{job['id']}, {job['state']}"


def _users(client: Client) -> Iterable[tuple[str, str]]:
    yield "me", ""
    yield from _accounts(client)


def _accounts(client: Client) -> Iterable[tuple[str, str]]:
    me = client.people.me()
    if me["role"] != "operator":
        yield me["name"], me["role"]
        return
    for user in client.people.users():
        yield user["name"], user["role"]


job_names = _completer(_jobs)
user_names = _completer(_users)
queue_names = _completer(lambda client: ((queue["name"], "") for queue in client.queues.list()))
node_names = _completer(lambda client: ((node["id"], node["state"]) for node in client.fleet.nodes()))

_Names = Callable[["Client"], Iterable[tuple[str, str]]]
#: By noun: what a command of the noun, or an option with a value of this name, completes.
_OF_NOUN: Mapping[str, _Names] = {
    "channel": lambda client: _named(client.channels.list()),
    "cluster": lambda client: _named(client.fleet.clusters(), "engine"),
    "dataset": lambda client: _named(client.datasets.list()),
    "flavor": lambda client: _named(client.catalog.flavors()),
    "gpu": lambda client: _named(client.fleet.gpus(), "model", name="id"),
    "group": lambda client: _named(client.groups.list()),
    "image": lambda client: _named(client.images.list(), "address"),
    "maintenance": lambda client: _named(client.maintenance.list()),
    "model": lambda client: ((model, "") for model in dict.fromkeys(gpu["model"] for gpu in client.fleet.gpus())),
    "object-store": lambda client: _named(client.object_stores.list()),
    "package": lambda client: _named(client.catalog.packages()),
    "pool": lambda client: _named(client.pools.list(), "model"),
    "preset": lambda client: _named(client.presets.list(), "title"),
    "reservation": lambda client: _named(client.reservations.list()),
    "rule": lambda client: _named(client.alerts.rules()),
    "secret": lambda client: _named(client.secrets.list()),
    "simulation": lambda client: _named(client.simulations.list(limit=MOST_NAMES), name="id"),
    "target": lambda client: _named(client.dataset_targets.list()),
    "volume": lambda client: _named(client.volumes.list(), "kind"),
    "workbench": lambda client: _named(client.workbenches.list(limit=MOST_NAMES), "state"),
}
#: Commands of a noun that give a new name.
_NEW = frozenset({"create", "add", "set", "login"})


def _named(found: Iterable[Mapping[str, Any]], detail: str = "", *, name: str = "name") -> Iterable[tuple[str, str]]:
    return ((str(view[name]), str(view.get(detail) or "")) for view in found)


def _own_names(ctx: Any, incomplete: str) -> list[Any]:
    """The names of the noun to which the command belongs: `corral image show` completes images."""
    noun = str(getattr(ctx.parent, "info_name", "") or "")
    if ctx.info_name in _NEW or noun not in _OF_NOUN:
        return []
    return _completer(_OF_NOUN[noun])(ctx, incomplete)


#: By the name of a value in the help. Options and arguments with a completion of their own keep it.
BY_VALUE: Mapping[str, Callable[[typer.Context, str], list[Any]]] = {
    "JOB": job_names,
    "USER": _completer(_accounts),
    "QUEUE": queue_names,
    "NODE": node_names,
    "NAME": _own_names,
    **{noun.upper(): _completer(names) for noun, names in _OF_NOUN.items()},
}


def complete_values(parameters: Iterable[inspect.Parameter]) -> None:
    """Give the options and arguments of a command the completion of their values."""
    for parameter in parameters:
        for info in getattr(parameter.annotation, "__metadata__", ()):
            if getattr(info, "autocompletion", True) is None:
                info.autocompletion = BY_VALUE.get(_value_name(parameter, info))


def _value_name(parameter: inspect.Parameter, info: Any) -> str:
    """The name of the value in the help; where none is declared, that of the option: `--queue` has the value QUEUE."""
    # Typer moves the first name of an annotated option away from the default only later
    declared = [name for name in (info.default, *(info.param_decls or ())) if str(name).startswith("--")]
    name = declared[0].removeprefix("--") if declared else parameter.name.replace("_", "-")
    return str(info.metavar or name.upper())


def prepare_completion() -> None:
    """Register the supported shells with Typer before completion runs."""
    from typer.completion import completion_init  # type: ignore[attr-defined]

    completion_init()
