"""Wrong usage as one sentence and one hint, in corral's words: the flag, what is wrong, and what to type instead."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

import typer

from corral.cli.habits.habit_group import suggestion
from corral.cli.terminal.failures import WrongUsage, flag_of

#: Kinds of validation errors, as pydantic names them, with the sentence for each.
_SENTENCES: Mapping[str, str] = {
    "int_parsing": "{input!r} is not a whole number",
    "int_type": "{input!r} is not a whole number",
    "int_from_float": "{input!r} is not a whole number",
    "float_parsing": "{input!r} is not a number",
    "float_type": "{input!r} is not a number",
    "finite_number": "{input!r} is not a finite number",
    "bool_parsing": "{input!r} is neither true nor false",
    "greater_than_equal": "{input} is too small, the least is {ge}",
    "greater_than": "{input} is too small, it must be above {gt}",
    "less_than_equal": "{input} is too large, the most is {le}",
    "less_than": "{input} is too large, it must be below {lt}",
    "path_type": "{input!r} is not a path",
}
_CHOICES = re.compile(r"'(?P<typed>.*)' is not one of (?P<choices>.*?)\.?$")
_COMMAND = re.compile(r"No such command '(?P<typed>.*)'\.")
_EXTRA = re.compile(r"Got unexpected extra argument\(s\) \((?P<words>.*)\)")
_NEEDS_VALUE = re.compile(r"Option '(?P<flag>.*)' requires an argument")
#: Flags of other tools, with corral's way.
FOREIGN_FLAGS: Mapping[str, str] = {
    "-n": "There are no namespaces; --queue and --user filter lists.",
    "--namespace": "There are no namespaces; --queue and --user filter lists.",
    "-l": "Use --search TEXT to filter lists.",
    "--selector": "Use --search TEXT to filter lists.",
    "--gres": "Use --gpus N and --model MODEL.",
    "-p": "Use --queue for the queue of a job.",
    "--partition": "Use --queue for the queue of a job.",
    "-N": "Use --nodes N.",
    "-t": "Use --time, such as 2h.",
    "-J": "Use --name NAME.",
    "--job-name": "Use --name NAME.",
    "-d": "A job always runs in the background; `corral run` waits for it.",
    "--detach": "A job always runs in the background; `corral run` waits for it.",
    "--rm": "A job stays until `corral rm`; retention removes old ones.",
    "-it": "Use `corral workbench` for work at a terminal.",
    "-v": "Use --mount VOLUME:/path.",
    "--volume": "Use --mount VOLUME:/path.",
}
#: The same for commands that ask a question.
QUESTION_FLAGS: Mapping[str, str] = dict.fromkeys(("-f", "--force"), "Use -y to skip the question.")


def usage_error(error: typer.TyperException) -> WrongUsage:
    """The error as one sentence with one hint."""
    ctx: Any = getattr(error, "ctx", None)
    text = str(getattr(error, "message", "") or error.format_message())
    path = ctx.command_path if ctx is not None else "corral"
    explained = f"`{path} --help` explains it."
    if option := getattr(error, "option_name", ""):
        return _about_option(option, text, ctx, explained)
    if found := _COMMAND.match(text):
        return _unknown_command(found["typed"], ctx, path)
    if found := _EXTRA.match(text):
        return WrongUsage(f"{path.removeprefix('corral ')}: {found['words']}: one word too many", hint=explained)
    param: Any = getattr(error, "param", None)
    if param is None:
        return WrongUsage(_sentence(error.format_message()), hint=explained)
    flag = flag_of(param)
    if type(error).__name__ == "MissingParameter":
        examples = _example(ctx)
        return WrongUsage(f"{flag} is missing", hint=f"Such as: {examples}" if examples else explained)
    return _bad_value(error, flag, text, explained)


def _about_option(option: str, text: str, ctx: Any, explained: str) -> WrongUsage:
    if found := _NEEDS_VALUE.match(text):
        return WrongUsage(f"{found['flag']}: the value is missing", hint=explained)
    if text and not text.startswith("No such option"):
        return WrongUsage(_sentence(text), hint=explained)
    known = [name for param in getattr(getattr(ctx, "command", None), "params", ()) for name in param.opts]
    close = difflib.get_close_matches(option, [name for name in known if name.startswith("--")], n=1, cutoff=0.7)
    foreign = QUESTION_FLAGS if "--yes" in known else FOREIGN_FLAGS
    hint = foreign.get(option) or (f"Did you mean {close[0]}?" if close else explained)
    return WrongUsage(f"{option}: there is no such option", hint=hint)


def _unknown_command(typed: str, ctx: Any, path: str) -> WrongUsage:
    close = suggestion(typed, getattr(getattr(ctx, "command", None), "commands", {}))
    hint = f"Did you mean `{path} {close}`?" if close else f"`{path} --help` lists the commands."
    return WrongUsage(f"{typed}: there is no such command", hint=hint)


def _bad_value(error: typer.TyperException, flag: str, text: str, explained: str) -> WrongUsage:
    cause: Any = error.__cause__
    details = cause.errors() if hasattr(cause, "errors") else []
    if details and details[0]["type"] in _SENTENCES:
        values = {"input": details[0].get("input"), **(details[0].get("ctx") or {})}
        return WrongUsage(f"{flag}: {_SENTENCES[details[0]['type']].format(**values)}", hint=explained)
    text = text.removeprefix("Value error, ")
    if found := _CHOICES.search(text):
        choices = found["choices"].replace("'", "")
        return WrongUsage(f"{flag}: {found['typed']!r} is not one of the choices", hint=f"Choose one of {choices}.")
    return WrongUsage(f"{flag}: {_sentence(text)}", hint=explained)


def _example(ctx: Any) -> str:
    epilog = str(getattr(getattr(ctx, "command", None), "epilog", None) or "")
    lines = [line.strip() for line in epilog.splitlines() if line.strip().startswith("corral ")]
    return lines[0] if lines else ""


def _sentence(text: str) -> str:
    first = text.strip().rstrip(".")
    return first[:1].lower() + first[1:]
