"""Arrays on the command line: submitted in one go, waited for together, found again by their name."""

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
YesOption = Annotated[bool, typer.Option("-y", "--yes", help="Don't ask.")]


def submitted(array: Sequence[JobView]) -> str:
    first, last = array[0], array[-1]
    name = first["array"]["name"] if first["array"] else first["name"]
    return (
        f"Submitted {formats.count(len(array), 'job')}: "
        f"{first['name']} ({first['id']}) to {last['name']} ({last['id']})."
        f" See them: corral jobs --name {name}-"
    )


def plan_body(terminal: Terminal, body: Mapping[str, Any]) -> dict[str, Any]:
    """One of the jobs stands for all: they are alike."""
    if "array" in body:
        terminal.note(f"Of array {body['array']} one job is tried out.")
    return {key: value for key, value in body.items() if key not in ("array", "name")}


def jobs_of(client: Client, array: str) -> list[JobView]:
    user = client.people.me()["name"]
    found = [job for job in client.jobs.list(user=user, name=f"{array}-", sort="id") if _belongs(job, array)]
    if not found:
        raise NotFound(404, {"title": "There is no such thing", "detail": f"there is no array {array!r}"})
    return found


def _belongs(job: JobView, array: str) -> bool:
    """A clone has the index of its original, but another name."""
    of = job.get("array")
    return of is not None and of["name"] == array and job["name"] == f"{array}-{of['index']}"
