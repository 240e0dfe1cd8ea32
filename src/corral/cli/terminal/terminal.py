"""The common part of all commands: output format, server and token, and how answers and errors are shown.

`command` registers a function as a command with these options and turns its errors into exit codes. This module imports
nothing that loads slowly, so that `corral --help` answers at once.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.habits.quick_values import QuickCommand
from corral.cli.terminal import output as outputs
from corral.cli.terminal.completion import complete_values
from corral.cli.terminal.failures import WrongUsage, check_arguments, exit_code, explained_for, problem, readable
from corral.cli.terminal.formats import duration
from corral.cli.terminal.missing_parts import missing_part
from corral.cli.terminal.output import Output
from corral.client.http.errors import ClientError
from corral.core.visible_text import visible, visible_json, visible_log

if TYPE_CHECKING:
    from corral.client.client import Client
    from corral.client.http.credentials import CredentialFile

#: The key under which options given before a command's name are stored for the command.
OPTIONS_KEY = "corral.options"


class Section(StrEnum):
    """The headings of `corral --help`."""

    DAILY = "Daily work"
    QUEUE = "Queue"
    CLUSTER = "Cluster"
    TASKS = "Tasks that hold GPUs"
    PEOPLE = "People"
    SETUP = "Set-up"


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """The global options as typed; None if an option is missing."""

    output: Output | None = None
    server: str | None = None
    token: str | None = None
    no_color: bool | None = None
    #: options of lists only
    quiet: bool | None = None
    columns: str | None = None
    watch: bool | None = None
    interval: float | None = None

    def over(self, outer: Options) -> Options:
        """The options nearer to the command's own arguments win."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(outer, **{name: value for name, value in values.items() if value is not None})


OutputOption = Annotated[
    Output | None,
    typer.Option(
        "-o", "--output", metavar="FORMAT", help="table or wide for people; json, yaml, csv or name for programs."
    ),
]
ServerOption = Annotated[
    str | None,
    typer.Option("--server", metavar="URL", help="The server.  [env: CORRAL_SERVER; default: http://127.0.0.1:8470]"),
]
TokenOption = Annotated[
    str | None,
    typer.Option("--token", metavar="TOKEN", help="Use this token, not the stored one.  [env: CORRAL_TOKEN]"),
]
NoColorOption = Annotated[bool | None, typer.Option("--no-color", help="Print no colours.  [env: NO_COLOR]")]
#: Commands accept it too; `corral --help` explains it.
_HiddenNoColor = Annotated[bool | None, typer.Option("--no-color", hidden=True)]
YesOption = Annotated[bool, typer.Option("-y", "--yes", help="Don't ask.")]
_SHARED: dict[str, Any] = {
    "output": OutputOption,
    "server": ServerOption,
    "token": TokenOption,
    "no_color": _HiddenNoColor,
}
_LOCAL = {key: _SHARED[key] for key in ("output", "no_color")}
#: The options of every command that prints a list.
_LIST: dict[str, Any] = {
    "quiet": Annotated[bool | None, typer.Option("-q", "--quiet", help="Print only ids; the same as -o name.")],
    "columns": Annotated[
        str | None, typer.Option("--columns", metavar="A,B", help="Only these columns or fields, in this order.")
    ],
    "watch": Annotated[
        bool | None, typer.Option("-w", "--watch", help="Keep the list on the screen up to date; Ctrl-C ends it.")
    ],
    "interval": Annotated[
        float | None,
        typer.Option("--interval", min=0.2, metavar="SECONDS", help="Between updates of --watch.  [default: 2]"),
    ],
}
WATCH_SECONDS = 2.0


class Terminal:
    """The user or the script that runs a command: its input, output and options."""

    def __init__(self, options: Options, explained: Callable[[ClientError], ClientError] = lambda error: error) -> None:
        self._options = options
        #: an error of the server in the words of the command that runs
        self.explained = explained
        self.output = Output.NAME if options.quiet else options.output or Output.TABLE
        #: whether the answer is a document: JSON, or another format for programs
        self.as_json = not self.output.is_for_people
        #: whether an error is a problem in JSON; ids and CSV are read by shells, whose users read the errors
        self.has_json_errors = self.output in (Output.JSON, Output.YAML)
        self._columns = [name.strip() for name in (options.columns or "").split(",") if name.strip()]
        #: with --watch, tables are kept here to be drawn together
        self._frame: list[Any] | None = None
        if options.no_color:
            os.environ["NO_COLOR"] = "1"

    @property
    def server(self) -> str:
        from corral.client.http.credentials import default_server

        return self._options.server or default_server(os.environ)

    @property
    def is_interactive(self) -> bool:
        """Whether a user can answer questions."""
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
        """Print text for people; prints nothing with output for programs."""
        if self._frame is not None:
            self._show(visible(text))
        elif not self.as_json:
            typer.echo(visible(text))

    def note(self, text: str) -> None:
        """Print a note to stderr, so that a pipe does not receive it."""
        typer.echo(visible(text), err=True)

    def json(self, value: Any) -> None:
        """Print a document, in the chosen format."""
        text = outputs.document(value, self.output, self._columns)
        if text:
            typer.echo(text)

    def json_line(self, value: Any) -> None:
        """Print one object as one line, for a stream of objects."""
        typer.echo(visible_json(json.dumps(value, ensure_ascii=False)))
        sys.stdout.flush()

    def raw(self, text: str) -> None:
        """Print text of a program or user without an added line break: unchanged in a pipe, with visible control
        characters at a terminal."""
        sys.stdout.write(visible_log(text) if sys.stdout.isatty() else text)
        sys.stdout.flush()

    def answer(self, value: Any, text: str) -> None:
        """Print the object as JSON, or the text."""
        if self.as_json:
            self.json(value)
        else:
            typer.echo(visible(text))

    def table(
        self, titles: Sequence[str], items: Sequence[Any], row: Callable[[Any], Sequence[str]], *, empty: str
    ) -> None:
        """Print items as a document or a table (see `columns.columns` for the marks), or `empty` if there are none."""
        if self.as_json:
            self.json({"items": list(items)})
        elif not items:
            self.say(empty) if self._frame is not None else self.note(empty)
        else:
            from corral.cli.terminal.columns import columns, print_table

            if self._columns:
                heads, cells = outputs.chosen_cells(self._columns, titles, items, row)
            else:
                heads, cells = list(titles), [list(row(item)) for item in items]
            drawn = columns(*heads, whole=self.output is Output.WIDE or bool(self._columns))
            if self._frame is not None:
                from corral.cli.terminal.tables import table

                self._show(table(drawn, cells))
            else:
                print_table(drawn, cells, whole=self.output is Output.WIDE)

    def _show(self, renderable: Any) -> None:
        assert self._frame is not None
        self._frame.append(renderable)

    def watching(self, run: Callable[[], None]) -> None:
        """Run a listing command again and again, and keep its tables on the screen, until Ctrl-C."""
        if self.as_json:
            raise WrongUsage("--watch draws on the screen and has no form for programs", hint="Use `corral events -f`.")
        from rich.console import Group

        from corral.cli.terminal import tables

        shown: list[Any] = []
        shown_at = self.now()

        def draw() -> Any:
            nonlocal shown, shown_at
            self._frame = []
            try:
                run()
            except ClientError as error:
                # a server that cannot be reached is an error at the start, and a notice later
                if not shown:
                    raise
                return Group(*shown, f"AWAY, {duration(self.now() - shown_at)} old: {error.message}")
            shown, shown_at = self._frame, self.now()
            return Group(*shown)

        tables.watch(draw, self._options.interval or WATCH_SECONDS)

    def facts(self, value: Any, facts: Iterable[tuple[str, str]]) -> None:
        """Print one object as JSON, or one property per line."""
        if self.as_json:
            self.json(value)
        else:
            from corral.cli.terminal.columns import print_facts

            print_facts(facts)

    def confirm(self, question: str, *, assume_yes: bool, is_reversible: bool = False) -> None:
        """Ask before an action. Without a terminal, an action that cannot be undone needs -y."""
        if assume_yes:
            return
        if not self.is_interactive:
            if is_reversible:
                return
            raise WrongUsage(
                f"not done, because there is no terminal to ask: {question}", hint="Add -y to do it without a question."
            )
        if not typer.confirm(visible(question), err=True):
            raise typer.Exit(1)

    def password(self, prompt: str, *, from_stdin: bool, confirm: bool = False) -> str:
        """Asked for or read from stdin, never an argument: other users of the machine could read that."""
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
        self.note(visible_json(problem(error)) if self.has_json_errors else readable(error))
        return typer.Exit(exit_code(error))


def command(
    app: typer.Typer,
    name: str | None = None,
    *,
    examples: Sequence[str],
    section: Section | None = None,
    connects: bool = True,
    free_arguments: bool = False,
    all_arguments: bool = False,
    lists: bool = False,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function `(terminal, …)` as a command. With `free_arguments`, everything from the first argument on
    belongs to the program to run. With `all_arguments`, everything but `--help` does; the shared options are then given
    before the command's name. A command that `lists` has the options of lists, as every `ls` does."""
    settings: dict[str, Any] = {"allow_interspersed_args": False} if free_arguments or all_arguments else {}
    if all_arguments:
        settings |= {"ignore_unknown_options": True, "help_option_names": ["--help"]}

    shared = {} if all_arguments else dict(_SHARED if connects else _LOCAL)
    if lists or name == "ls":
        shared = _LIST | shared

    def register(function: Callable[..., None]) -> Callable[..., None]:
        app.command(
            name,
            cls=QuickCommand,
            epilog=_examples(examples),
            rich_help_panel=section,
            context_settings=settings or None,
        )(_with_terminal(function, shared=shared))
        return function

    return register


def default_command(
    app: typer.Typer, *, examples: Sequence[str], lists: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register the function of a group that is called without a command."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        shared = _LIST | _SHARED if lists else _SHARED
        app.callback(invoke_without_command=True, epilog=_examples(examples))(_with_terminal(function, shared=shared))
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
        terminal = Terminal(options, functools.partial(explained_for, ctx=ctx))
        try:
            check_arguments(ctx)
            if typed.watch:
                terminal.watching(functools.partial(function, terminal, **arguments))
            else:
                function(terminal, **arguments)
        except ClientError as error:
            raise terminal.fail(terminal.explained(error)) from error
        except ModuleNotFoundError as error:
            if (refusal := missing_part(error)) is None:
                raise
            raise terminal.fail(refusal) from error

    keyword = inspect.Parameter.KEYWORD_ONLY
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    complete_values(own)
    parameters = [
        inspect.Parameter("ctx", keyword, annotation=typer.Context),
        *(parameter.replace(kind=keyword) for parameter in own),
        *(inspect.Parameter(key, keyword, default=None, annotation=kind) for key, kind in shared.items()),
    ]
    # Typer reads the signature and the annotations of the wrapper, so both have to agree
    del run.__wrapped__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def keep_options(ctx: typer.Context, options: Options) -> None:
    """Store options that were given before the command's name for the command."""
    ctx.meta[OPTIONS_KEY] = options
