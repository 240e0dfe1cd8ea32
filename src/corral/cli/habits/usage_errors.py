"""Wrong usage as one sentence and one hint, in corral's words: the flag, what is wrong, and what to type instead."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

import typer

from corral.cli.habits.habit_group import TYPED_VERB, suggestion
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
_TAIL = ("--tail", "Use --tail N.")
_NODES = ("--nodes", "Use --nodes N: a job has one instance on each node.")
_FILTERS = ("--queue", "There are no namespaces; --queue and --user filter lists.")
_SEARCH = ("--search", "Use --search TEXT to filter the list.")
_GPUS = ("--gpus", "Use --gpus N: they count on each node.")
_CPUS = ("--cpus", "Use --cpus N: they count on each node.")
_MEMORY = ("--memory", "Use --memory SIZE, such as 16GiB.")
_QUEUE = ("--retries", "Use --queue for the queue of a job.")
_ATTEMPT = ("--attempt", "Use --attempt N for the log of an earlier attempt.")
_TIME = ("--retries", "Use --time, such as 2h.")
_NO_TIMES = ("--tail", "Lines of a log have no times; --tail N begins with the last N lines.")
_NAME = ("--retries", "Use --name NAME.")
_BACKGROUND = ("--retries", "A job always runs in the background; `corral run` waits for it.")
_MOUNT = ("--mount", "Use --mount VOLUME:/path.")
_STAYS = ("--retries", "A job stays until `corral rm`; retention removes old ones.")
_TERMINAL = ("--retries", "Use `corral workbench` for work at a terminal.")
_SHELL = ("--rank", "`corral shell` is interactive by itself.")
#: Flags of other tools, each with an option and a hint; the first one whose option the command has is shown.
FOREIGN_FLAGS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "-n": (_TAIL, _NODES, _FILTERS),
    "-N": (_NODES,),
    "-G": (_GPUS,),
    "-c": (_CPUS,),
    "--ntasks": (_NODES,),
    "--lines": (_TAIL,),
    "--namespace": (_FILTERS,),
    "-l": (_SEARCH, ("--label", "Use --label NAME=VALUE for nodes with a label.")),
    "--selector": (_SEARCH,),
    "--gres": (("--model", "Use --gpus N and --model MODEL."),),
    "--gpus-per-node": (_GPUS,),
    "--gpus-per-task": (_GPUS,),
    "--cpus-per-task": (_CPUS,),
    "--mem": (_MEMORY,),
    "-m": (_MEMORY,),
    "-p": (_QUEUE, _ATTEMPT),
    "--partition": (_QUEUE,),
    "--previous": (_ATTEMPT,),
    "--since": (_NO_TIMES,),
    "--timestamps": (_NO_TIMES,),
    "-t": (_TIME, _NO_TIMES),
    "-J": (_NAME,),
    "--job-name": (_NAME,),
    "--dependency": (("--after", "Use --after JOB."),),
    "-d": (_BACKGROUND,),
    "--detach": (_BACKGROUND,),
    "--rm": (_STAYS,),
    "-e": (("--env", "Use --env NAME=VALUE."),),
    "-i": (_TERMINAL, _SHELL),
    "-it": (_TERMINAL, _SHELL),
    "-v": (_MOUNT,),
    "--volume": (_MOUNT,),
    "-u": (("--mine", "Use --user NAME."),),
    "--me": (("--mine", "Use --mine."),),
    "--format": (("--columns", "Use -o json|yaml|csv|name, and --columns A,B."),),
}
#: The same for commands that ask a question.
QUESTION_FLAGS = dict.fromkeys(("-f", "--force"), (("--yes", "Use -y to skip the question."),))


def usage_error(error: typer.TyperException, path: str = "corral") -> WrongUsage:
    """The error as one sentence with one hint. `path` is the command, where the error does not know it."""
    ctx: Any = getattr(error, "ctx", None)
    text = str(getattr(error, "message", "") or error.format_message())
    path = ctx.command_path if ctx is not None else path
    explained = f"`{path} --help` explains it."
    if option := getattr(error, "option_name", ""):
        return _about_option(option, text, ctx, explained)
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


def _about_option(option: str, text: str, ctx: Any, explained: str) -> WrongUsage:
    if found := _NEEDS_VALUE.match(text):
        return WrongUsage(f"{found['flag']}: the value is missing", hint=explained)
    if text and not text.startswith("No such option"):
        return WrongUsage(_sentence(text), hint=explained)
    known = [name for param in getattr(getattr(ctx, "command", None), "params", ()) for name in param.opts]
    close = difflib.get_close_matches(option, [name for name in known if name.startswith("--")], n=1, cutoff=0.7)
    foreign = {**FOREIGN_FLAGS, **QUESTION_FLAGS}.get(option, ())
    hint = next((text for needed, text in foreign if needed in known), "")
    hint = hint or (f"Did you mean {close[0]}?" if close else explained)
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
