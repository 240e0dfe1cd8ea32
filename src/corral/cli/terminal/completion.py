"""Completion of names in the shell: the server is asked for the names of jobs, users, queues and nodes.

A shell waits for the answer while a user types: one request with few items is made, and a server that does not answer
gives no names.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
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
    me = client.people.me()
    yield "me", me["name"]
    if me["role"] != "operator":
        yield me["name"], me["role"]
        return
    for user in client.people.users():
        yield user["name"], user["role"]


job_names = _completer(_jobs)
user_names = _completer(_users)
queue_names = _completer(lambda client: ((queue["name"], "") for queue in client.queues.list()))
node_names = _completer(lambda client: ((node["id"], node["state"]) for node in client.fleet.nodes()))


def prepare_completion() -> None:
    """Register the supported shells with Typer before completion runs."""
    from typer.completion import completion_init  # type: ignore[attr-defined]

    completion_init()
