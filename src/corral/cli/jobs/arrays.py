"""Arrays on the command line: the text after a submission, dry runs, and the jobs of an array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.terminal import formats
from corral.cli.terminal.terminal import Terminal
from corral.client.http.errors import NotFound

if TYPE_CHECKING:
    from corral.client.client import Client
    from corral.client.views import JobView

ArrayOption = Annotated[str | None, typer.Option("--array", metavar="NAME", help="All jobs of this array of yours.")]


def submitted(array: Sequence[JobView]) -> str:
    first, last = array[0], array[-1]
    name = first["array"]["name"] if first["array"] else first["name"]
    items = sum(len(job["array"].get("items", ())) for job in array if job["array"])
    packed = f" for {formats.count(items, 'item')}" if items else ""
    return (
        f"Submitted {formats.count(len(array), 'job')}{packed}: "
        f"{first['name']} ({first['id']}) to {last['name']} ({last['id']})."
        f" See them: corral jobs --name {name}-"
    )


def plan_body(terminal: Terminal, body: Mapping[str, Any]) -> dict[str, Any]:
    """The request of a dry run: one job of an array, because all of them are equal."""
    if "array" in body:
        terminal.note(f"The plan is for one job of array {body['array']}.")
    return {key: value for key, value in body.items() if key not in ("array", "pack", "name")}


def jobs_of(client: Client, array: str) -> list[JobView]:
    user = client.people.me()["name"]
    found = [job for job in client.jobs.list(user=user, name=f"{array}-", sort="id") if _belongs(job, array)]
    if not found:
        raise NotFound(404, {"title": "There is no such thing", "detail": f"there is no array {array!r}"})
    return found


def _belongs(job: JobView, array: str) -> bool:
    """Whether the job is of the array. A clone has the index of its original, but another name."""
    of = job.get("array")
    return of is not None and of["name"] == array and job["name"] == f"{array}-{of['index']}"
