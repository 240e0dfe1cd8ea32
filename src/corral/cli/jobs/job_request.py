"""The requests that commands make of the job options, and the server's objections with the names of the options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from corral.cli.jobs.job_options import JOB_OPTIONS
from corral.cli.terminal.option_groups import Function, with_parameters
from corral.client.http.errors import ApiProblem
from corral.core.jobs.field_types import JobCommand

_FLAGS = {option.field: option.long_flag for option in JOB_OPTIONS}


def with_job_options(command: JobCommand) -> Callable[[Function], Function]:
    """Add the options of a command to a function `(terminal, …, **typed)`."""
    return with_parameters([option.declared(command) for option in JOB_OPTIONS if command in option.help])


def request_body(command: JobCommand, typed: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the request, from the options that were given."""
    body = {}
    for option in JOB_OPTIONS:
        value = typed.get(option.parameter) if command in option.help else None
        if value is not None and value != []:
            body[option.field] = option.value(command, value)
    return body


def flag_of(field: str) -> str:
    """The flag that sets a field, such as `--label` for `labels`."""
    return _FLAGS.get(field, f"--{field}")


def with_flags(error: ApiProblem, places: Mapping[str, str] | None = None) -> ApiProblem:
    """The server's error with the places that the user knows instead of field names: a line of the job file, as in
    `places`, or a flag."""
    named = []
    for field, message in error.field_errors:
        top = field.partition(".")[0].partition("[")[0]
        if places is not None and top in places:
            place = f"{places[top]}: {field}"
        else:
            place = flag_of(top) if top not in ("", "command") else field
        named.append({"field": place, "message": message})
    if not named:
        return error
    return type(error)(error.status, {**error.problem, "errors": named})
