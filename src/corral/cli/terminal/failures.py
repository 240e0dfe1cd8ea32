"""Exit codes of commands, and the error messages on stderr."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from corral.cli.habits.listings import listing
from corral.client.http.errors import (
    ApiProblem,
    BadAddress,
    ClientError,
    Forbidden,
    NotFound,
    NotSignedIn,
    ServerUnreachable,
)

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


#: A field of the API, maybe with a place inside it; places that are named already are left alone.
_FIELD = re.compile(r"[a-z_]+([.\[][^:]*)?")
#: A field with a name of several words, in a sentence.
_MENTIONED = re.compile(r"\b[a-z]+(_[a-z]+)+\b")
_UNIT = re.compile(r"_(micro|seconds|bytes)$")
#: Fields of the API whose options have another name.
_OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "q": ("search", "text"),
    "duration": ("time",),
    "address": ("mail",),
    "kinds": ("kind",),
}
#: Options of every command, which set no field of a request.
_OF_EVERY_COMMAND = ("output", "server", "token", "no_color")
#: The server's sentence for a request without a token: how programs sign in, which a user of the command need not know.
_NO_TOKEN = "Sign in first: send a bearer token"
#: The HTTP status for a value that is not valid.
BAD_VALUE = 422


class Refused(ClientError):
    """The command itself refuses, not the server."""


class WrongUsage(ClientError):
    """The arguments or a file of the command are wrong."""


def exit_code(error: ClientError) -> int:
    match error:
        case WrongUsage() | BadAddress():
            return USAGE
        case ApiProblem() if error.status == BAD_VALUE and error.field_errors:
            return USAGE
        case NotSignedIn() | Forbidden():
            return NOT_ALLOWED
        case NotFound():
            return NOT_FOUND
        case ServerUnreachable():
            return UNREACHABLE
        case _:
            return REFUSED


def explained_for(error: ClientError, ctx: Any) -> ClientError:
    """The server's error with the command's own flags and arguments instead of fields, and with a hint."""
    explained = f"`{ctx.command_path} --help` explains it."
    if isinstance(error, WrongUsage) and not error.hint:
        return WrongUsage(error.message, hint=explained)
    if not isinstance(error, ApiProblem):
        return error
    if isinstance(error, NotSignedIn) and error.detail.startswith(_NO_TOKEN):
        return NotSignedIn(error.status, {**error.problem, "detail": "You are not signed in."})
    if isinstance(error, NotFound):
        problem = {key: value for key, value in error.problem.items() if key != "errors"}
        return type(error)(error.status, {"hint": listing(error.message, ctx.command_path), **problem})
    if not error.field_errors:
        return error
    flags = {param.name: flag_of(param) for param in ctx.command.params if param.name not in (None, *_OF_EVERY_COMMAND)}
    named = [
        {"field": _shown_field(field, message, flags, error.status), "message": _in_flags(message, flags)}
        for field, message in error.field_errors
    ]
    changed = {**error.problem, "errors": named}
    if error.status == BAD_VALUE and not error.hint:
        changed["hint"] = listing(named[0]["message"], ctx.command_path) if len(named) == 1 else explained
        changed["hint"] = changed["hint"] or explained
    return type(error)(error.status, changed)


def check_arguments(ctx: Any) -> None:
    """Raises WrongUsage for an argument that is an empty text: a variable of a script that is not set."""
    for param in ctx.command.params:
        is_default = ctx.get_parameter_source(param.name).name != "COMMANDLINE"
        if param.param_type_name == "argument" and ctx.params.get(param.name) == "" and not is_default:
            raise WrongUsage(f"{flag_of(param)} is empty")


def _shown_field(field: str, message: str, flags: Mapping[str, str], status: int) -> str:
    """The flag of a field. A field that no option of the command sets is a word of the API: it is left out where the
    message is a sentence without it."""
    flag = _flag_for(field, flags)
    is_sentence = status != BAD_VALUE or message.startswith("there is no ")
    is_option = flag.startswith("--") or not _FIELD.fullmatch(field)
    return flag if is_option or not is_sentence else ""


def _flag_for(field: str, flags: Mapping[str, str]) -> str:
    """The flag that sets a field of the API. Places that are named already, such as `job.yaml:3`, are left alone."""
    if not _FIELD.fullmatch(field):
        return field
    names = re.findall(r"[a-z_]+", field)
    # settings of queues are options of their own; the keys of other mappings are chosen by users
    for name in (names[-1], names[0]) if names[0] == "queues" else (names[0], names[-1]):
        plain = _UNIT.sub("", name)
        # a repeatable flag has the singular of its field: --label for labels
        for spelling in (name, name.removesuffix("s"), f"{name}s", plain, *_OTHER_NAMES.get(name, ())):
            if spelling in flags:
                return flags[spelling]
    return field


def _in_flags(message: str, flags: Mapping[str, str]) -> str:
    """The message with flags instead of the fields that it mentions, such as --min-gpus for min_gpus."""
    return _MENTIONED.sub(lambda found: flags.get(found[0], found[0]), message)


def flag_of(param: Any) -> str:
    """The long flag of an option, or an argument's name in capitals."""
    long = [name for name in param.opts if name.startswith("--")]
    shown = str(long[0] if long else (param.metavar or param.name or "").upper())
    return shown.removesuffix("...").removesuffix("…").replace("... ", " or ")


def readable(error: ClientError) -> str:
    """The error as text: what is wrong, in which field, and what to do."""
    fields = error.field_errors if isinstance(error, ApiProblem) else []
    if isinstance(error, ApiProblem) and len(fields) > 1:
        lines = [f"Error: {error.title}", *(f"  {_placed(field, message)}" for field, message in fields)]
    elif len(fields) == 1:
        lines = [f"Error: {_placed(*fields[0])}"]
    else:
        lines = [f"Error: {error.message}"]
    if error.hint:
        lines.append(f"Hint: {error.hint}")
    return "\n".join(lines)


def _placed(field: str, message: str) -> str:
    return f"{field}: {message}" if field else message


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
