"""Exit codes of commands, and the error messages on stderr."""

from __future__ import annotations

import json
from typing import Any

from corral.client.http.errors import ApiProblem, ClientError, Forbidden, NotFound, NotSignedIn, ServerUnreachable

REFUSED = 1
USAGE = 2
NOT_ALLOWED = 3
NOT_FOUND = 4
UNREACHABLE = 5

#: Exit code and meaning, for the reference and for `corral --help`.
EXIT_CODES = (
    (0, "done"),
    (REFUSED, "the request was refused or failed"),
    (USAGE, "wrong usage: an option, an argument or a job file"),
    (NOT_ALLOWED, "not signed in, or not allowed"),
    (NOT_FOUND, "no such job, queue, node, GPU, user or token"),
    (UNREACHABLE, "the server cannot be reached"),
    (130, "interrupted with Ctrl-C"),
)


class Refused(ClientError):
    """The command itself refuses, not the server."""


class WrongUsage(ClientError):
    """The arguments or a file of the command are wrong."""


def exit_code(error: ClientError) -> int:
    match error:
        case WrongUsage():
            return USAGE
        case NotSignedIn() | Forbidden():
            return NOT_ALLOWED
        case NotFound():
            return NOT_FOUND
        case ServerUnreachable():
            return UNREACHABLE
        case _:
            return REFUSED


def readable(error: ClientError) -> str:
    """The error as text: what is wrong, in which field, and what to do."""
    fields = error.field_errors if isinstance(error, ApiProblem) else []
    if isinstance(error, ApiProblem) and len(fields) > 1:
        lines = [f"Error: {error.title}", *(f"  {field}: {message}" for field, message in fields)]
    elif len(fields) == 1 and fields[0][0]:
        lines = [f"Error: {fields[0][0]}: {fields[0][1]}"]
    else:
        lines = [f"Error: {error.message}"]
    if error.hint:
        lines.append(f"Hint: {error.hint}")
    return "\n".join(lines)


def problem(error: ClientError) -> str:
    """The error as a JSON problem."""
    body: dict[str, Any]
    if isinstance(error, ApiProblem):
        body = {**error.problem, "status": error.status}
    else:
        slug, title = {
            USAGE: ("usage", "Wrong usage"),
            UNREACHABLE: ("server-unreachable", "The server cannot be reached"),
        }.get(exit_code(error), ("failed", "The command failed"))
        body = {"type": f"/problems/{slug}", "title": title, "detail": error.message}
    if error.hint:
        body["hint"] = error.hint
    return json.dumps(body, ensure_ascii=False)
