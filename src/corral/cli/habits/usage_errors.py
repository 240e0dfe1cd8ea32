"""Wrong usage as one sentence and one hint, in corral's words: the flag, what is wrong, and what to type instead."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from corral.cli.habits.aliases import VERBS
from corral.cli.habits.foreign_flags import hint_for
from corral.cli.habits.habit_group import TYPED_VERB, similar, suggestion
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
    "list_type": "{input!r} is not a list",
    "dict_type": "{input!r} is not an object",
    "string_type": "{input!r} is not a text",
    "missing": "it is missing",
}
_CHOICES = re.compile(r"'(?P<typed>.*)' is not one of (?P<choices>.*?)\.?$")
_COMMAND = re.compile(r"No such command '(?P<typed>.*)'\.")
_EXTRA = re.compile(r"Got unexpected extra argument\(s\) \((?P<words>.*)\)")
_NEEDS_VALUE = re.compile(r"Option '(?P<flag>.*)' requires an argument")
_NEGATIVE = re.compile(r"-\d+")


def usage_error(error: typer.TyperException, path: str = "corral", typed: Sequence[str] = ()) -> WrongUsage:
    """The error as one sentence with one hint. `path` is the command, where the error does not know it, and `typed` the
    command line."""
    ctx: Any = getattr(error, "ctx", None)
    text = str(getattr(error, "message", "") or error.format_message())
    path = ctx.command_path if ctx is not None else path
    explained = f"`{path} --help` explains it."
    if option := getattr(error, "option_name", ""):
        return _about_option(option, text, ctx, explained, typed)
    if found := _COMMAND.match(text):
        return _unknown_command(found["typed"], ctx, path)
    if found := _EXTRA.match(text):
        return _one_too_many(found["words"], ctx, path, explained)
    param: Any = getattr(error, "param", None)
    if param is None:
        return WrongUsage(_sentence(error.format_message()), hint=explained)
    flag = flag_of(param)
    if type(error).__name__ == "MissingParameter":
        examples = _example(ctx)
        return WrongUsage(f"{flag} is missing", hint=f"Such as: {examples}" if examples else explained)
    return _bad_value(error, flag, text, explained)


def _about_option(option: str, text: str, ctx: Any, explained: str, typed: Sequence[str]) -> WrongUsage:
    if found := _NEEDS_VALUE.match(text):
        return WrongUsage(f"{found['flag']}: the value is missing", hint=explained)
    if text and not text.startswith("No such option"):
        return WrongUsage(_sentence(text), hint=explained)
    if _NEGATIVE.fullmatch(option):
        return WrongUsage(f"{option}: there is no such option", hint="A negative number as an argument comes after --.")
    known = [name for param in getattr(getattr(ctx, "command", None), "params", ()) for name in param.opts]
    long = [name for name in known if name.startswith("--")]
    # the parser reads `-gpus` as the letters -g -p -u -s
    one_dash = next((word for word in typed if word.startswith(option) and f"-{word.partition('=')[0]}" in long), None)
    if one_dash is not None and not option.startswith("--"):
        name = one_dash.partition("=")[0]
        return WrongUsage(f"{name}: there is no such option", hint=f"Did you mean -{name}?")
    close = similar(option, long)
    hint = hint_for(option, known) or (f"Did you mean {close}?" if close else explained)
    return WrongUsage(f"{option}: there is no such option", hint=hint)


#: By command: the meaning of a word that it does not take.
_HINTS_FOR_WORDS = {
    "corral jobs": "`corral show {word}` shows one job, `corral jobs --search {word}` filters the list.",
    "corral login": "`corral login --user {word}` signs in as this user, `corral login --server URL` elsewhere.",
}


def _one_too_many(words: str, ctx: Any, path: str, explained: str) -> WrongUsage:
    """A word behind all arguments. A verb that stands for another one is named as it was typed."""
    known = getattr(getattr(getattr(ctx, "parent", None), "command", None), "commands", {})
    typed = getattr(ctx, "meta", {}).get(TYPED_VERB)
    word = words.split()[0]
    if path in _HINTS_FOR_WORDS:
        hint = _HINTS_FOR_WORDS[path].format(word=word)
        return WrongUsage(f"{path.removeprefix('corral ')}: {words}: one word too many", hint=hint)
    if typed is None or not known:
        return WrongUsage(f"{path.removeprefix('corral ')}: {words}: one word too many", hint=explained)
    own = path.rpartition(" ")[0]
    message = f"{own.removeprefix('corral ')} {typed}: {words}: one word too many"
    if typed == "add" and "edit" in known and any("--add" in param.opts for param in known["edit"].params):
        return WrongUsage(message, hint=f"`{own} edit NAME --add {word}` adds one; `{path}` creates.")
    return WrongUsage(message, hint=f"`{own} {typed}` is `{path}` here. {explained}")


def _unknown_command(typed: str, ctx: Any, path: str) -> WrongUsage:
    known = getattr(getattr(ctx, "command", None), "commands", {})
    close = suggestion(typed, known)
    hint = f"Did you mean `{path} {close}`?" if close else f"`{path} --help` lists the commands."
    if close is None and path != "corral" and "show" in known and typed not in VERBS:
        hint = f"`{path} show {typed}` shows one; `{path} --help` lists the commands."
    return WrongUsage(f"{typed}: there is no such command", hint=hint)


def _bad_value(error: typer.TyperException, flag: str, text: str, explained: str) -> WrongUsage:
    cause: Any = error.__cause__
    details = cause.errors() if hasattr(cause, "errors") else []
    if details and (sentence := sentence_of(details[0])):
        return WrongUsage(f"{flag}: {sentence}", hint=explained)
    text = text.removeprefix("Value error, ")
    if found := _CHOICES.search(text):
        choices = found["choices"].replace("'", "")
        hint = f"Choose one of {choices}."
        if flag == "--output" and re.search(r"[./]", found["typed"]):
            hint = f"-o is the format of the answer: {choices}; `corral logs JOB` has the output of a job."
        return WrongUsage(f"{flag}: {found['typed']!r} is not one of the choices", hint=hint)
    return WrongUsage(f"{flag}: {_sentence(text)}", hint=explained)


def sentence_of(detail: Mapping[str, Any]) -> str:
    """A validation error without the name of the value; empty for a kind of error that has no sentence."""
    values = {"input": detail.get("input"), **(detail.get("ctx") or {})}
    return _SENTENCES.get(detail["type"], "").format(**values)


def _example(ctx: Any) -> str:
    epilog = str(getattr(getattr(ctx, "command", None), "epilog", None) or "")
    lines = [line.strip() for line in epilog.splitlines() if "corral " in line]
    # the explanation behind an example is left out
    return lines[0].partition("   ")[0] if lines else ""


def _sentence(text: str) -> str:
    first = text.strip().rstrip(".")
    return first[:1].lower() + first[1:]
