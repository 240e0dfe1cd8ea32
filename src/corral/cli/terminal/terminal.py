"""What every command shares: the output format, the server and token to use, and how answers and errors are shown.

`command` registers a function as a command with these options and turns its errors into exit codes. Nothing heavy is
imported here: `corral --help` has to answer at once.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.terminal.failures import WrongUsage, exit_code, problem, readable
from corral.client.http.errors import ClientError
from corral.core.visible_text import visible, visible_json, visible_log

if TYPE_CHECKING:
    from corral.client.client import Client
    from corral.client.http.credentials import CredentialFile

#: Where the options given before a command's name wait for the command.
OPTIONS_KEY = "corral.options"


class Section(StrEnum):
    """The headings of `corral --help`."""

    DAILY = "Daily work"
    QUEUE = "Queue"
    CLUSTER = "Cluster"
    TASKS = "Tasks that hold GPUs"
    PEOPLE = "People"
    SETUP = "Set-up"


class Output(StrEnum):
    TABLE = "table"
    JSON = "json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """As typed; None where nothing was typed."""

    output: Output | None = None
    server: str | None = None
    token: str | None = None

    def over(self, outer: Options) -> Options:
        """The options nearer to the command's own arguments win."""
        return Options(
            output=self.output or outer.output, server=self.server or outer.server, token=self.token or outer.token
        )


OutputOption = Annotated[
    Output | None, typer.Option("-o", "--output", help="How to print: table for people, json for programs.")
]
ServerOption = Annotated[
    str | None,
    typer.Option("--server", metavar="URL", help="The server.  [env: CORRAL_SERVER; default: http://127.0.0.1:8470]"),
]
TokenOption = Annotated[
    str | None,
    typer.Option("--token", metavar="TOKEN", help="Use this token, not the stored one.  [env: CORRAL_TOKEN]"),
]
_SHARED: dict[str, Any] = {"output": OutputOption, "server": ServerOption, "token": TokenOption}


class Terminal:
    """The person or the script in front of a command."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.as_json = options.output is Output.JSON

    @property
    def server(self) -> str:
        from corral.client.http.credentials import default_server

        return self._options.server or default_server(os.environ)

    @property
    def is_interactive(self) -> bool:
        """Someone is there to answer a question."""
        return sys.stdin.isatty() and sys.stderr.isatty()

    def now(self) -> float:
        return time.time()

    def credentials(self) -> CredentialFile:
        from corral.client.http.credentials import CredentialFile, default_path

        return CredentialFile(default_path(os.environ))

    def client(self, *, token: str | None = None, anonymous: bool = False) -> Client:
        from corral.client.client import Client

        if anonymous:
            return Client(self.server)
        return Client.from_environment(self.server, token or self._options.token)

    def say(self, text: str) -> None:
        """An answer in words, for people; programs have asked for JSON instead."""
        if not self.as_json:
            typer.echo(visible(text))

    def note(self, text: str) -> None:
        """Beside the answer, so that a pipe does not get it."""
        typer.echo(visible(text), err=True)

    def json(self, value: Any) -> None:
        typer.echo(visible_json(json.dumps(value, indent=2, ensure_ascii=False)))

    def json_line(self, value: Any) -> None:
        """One of many, as it comes."""
        typer.echo(visible_json(json.dumps(value, ensure_ascii=False)))
        sys.stdout.flush()

    def raw(self, text: str) -> None:
        """What a program or a person wrote, without a line break of our own: as it is in a pipe, visible to people."""
        sys.stdout.write(visible_log(text) if sys.stdout.isatty() else text)
        sys.stdout.flush()

    def answer(self, value: Any, text: str) -> None:
        """The thing itself as JSON, or what happened in words."""
        if self.as_json:
            self.json(value)
        else:
            typer.echo(visible(text))

    def table(
        self, titles: Sequence[str], items: Sequence[Any], row: Callable[[Any], Sequence[str]], *, empty: str
    ) -> None:
        """Items as JSON or as a table (see `tables.columns` for the marks); `empty` says what to do next."""
        if self.as_json:
            self.json({"items": list(items)})
        elif not items:
            self.note(empty)
        else:
            from corral.cli.terminal import tables

            tables.print_table(tables.columns(*titles), [row(item) for item in items])

    def facts(self, value: Any, facts: Iterable[tuple[str, str]]) -> None:
        """One thing as JSON, or its properties below each other."""
        if self.as_json:
            self.json(value)
        else:
            from corral.cli.terminal import tables

            tables.print_facts(facts)

    def confirm(self, question: str, *, assume_yes: bool) -> None:
        """Ask before something that cannot be undone. A script is not asked: it has no one to answer."""
        if assume_yes or not self.is_interactive:
            return
        if not typer.confirm(visible(question), err=True):
            raise typer.Exit(1)

    def password(self, prompt: str, *, from_stdin: bool, confirm: bool = False) -> str:
        """Never an argument: other users of the machine could read it there."""
        if from_stdin:
            given = sys.stdin.readline().rstrip("\r\n")
        elif self.is_interactive:
            given = str(typer.prompt(prompt, hide_input=True, confirmation_prompt=confirm, err=True))
        else:
            raise WrongUsage("there is no terminal to ask for a password", hint="Pipe it in with --password-stdin.")
        if not given:
            raise WrongUsage("the password is empty", hint="Pipe it in with --password-stdin, or type it when asked.")
        return given

    def fail(self, error: ClientError) -> typer.Exit:
        self.note(visible_json(problem(error)) if self.as_json else readable(error))
        return typer.Exit(exit_code(error))


def command(
    app: typer.Typer,
    name: str | None = None,
    *,
    examples: Sequence[str],
    section: Section | None = None,
    connects: bool = True,
    free_arguments: bool = False,
    all_words: bool = False,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function `(terminal, …)` as a command. `free_arguments` leaves everything from the first argument on
    to the command that is to be run; `all_words` leaves it everything but `--help`, whatever it looks like: the shared
    options are given before its name then."""
    settings: dict[str, Any] = {"allow_interspersed_args": False} if free_arguments or all_words else {}
    if all_words:
        settings |= {"ignore_unknown_options": True, "help_option_names": ["--help"]}

    def register(function: Callable[..., None]) -> Callable[..., None]:
        app.command(name, epilog=_examples(examples), rich_help_panel=section, context_settings=settings or None)(
            _with_terminal(function, shared={} if all_words else _SHARED if connects else {"output": OutputOption})
        )
        return function

    return register


def default_command(
    app: typer.Typer, *, examples: Sequence[str]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register what a group does when no command of it is named."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        app.callback(invoke_without_command=True, epilog=_examples(examples))(_with_terminal(function, shared=_SHARED))
        return function

    return register


def _examples(lines: Sequence[str]) -> str:
    # \b keeps the help formatter from joining the lines
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def _with_terminal(function: Callable[..., None], *, shared: Mapping[str, Any]) -> Callable[..., None]:
    """The function with the shared options added to its signature, called with a Terminal."""

    @functools.wraps(function)
    def run(ctx: typer.Context, **arguments: Any) -> None:
        typed = Options(**{key: arguments.pop(key) for key in shared})
        options = typed.over(ctx.meta.get(OPTIONS_KEY, Options()))
        if ctx.invoked_subcommand is not None:
            keep_options(ctx, options)
            return
        terminal = Terminal(options)
        try:
            function(terminal, **arguments)
        except ClientError as error:
            raise terminal.fail(error) from error

    keyword = inspect.Parameter.KEYWORD_ONLY
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    parameters = [
        inspect.Parameter("ctx", keyword, annotation=typer.Context),
        *(parameter.replace(kind=keyword) for parameter in own),
        *(inspect.Parameter(key, keyword, default=None, annotation=kind) for key, kind in shared.items()),
    ]
    # Typer reads the wrapper's signature, so both ways of asking for it have to agree
    del run.__wrapped__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def keep_options(ctx: typer.Context, options: Options) -> None:
    """Options given before the command's name hold for the command."""
    ctx.meta[OPTIONS_KEY] = options
