"""The entry point: assembles the command groups, prints help in sections, and reports usage errors."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from corral.cli.command_summaries import SUMMARIES
from corral.cli.command_table import PLACES, Place
from corral.cli.entry import own_version
from corral.cli.habits.aliases import familiar, first_word
from corral.cli.habits.habit_group import HabitGroup, summary_of
from corral.cli.habits.usage_errors import usage_error
from corral.cli.terminal.failures import WrongUsage, problem, readable
from corral.cli.terminal.terminal import (
    NoColorOption,
    Options,
    OutputOption,
    ServerOption,
    TokenOption,
    keep_options,
)

#: The shell's completion script asks by setting this variable.
COMPLETE_VARIABLE = "_CORRAL_COMPLETE"


class SectionedGroup(HabitGroup):
    """Lists commands under the heading of their section. Typer would draw this with Rich, which takes more time to load
    than the rest of the help."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        entries = self.commands or summarized_commands()
        shown = [(name, entry) for name, entry in entries.items() if not entry.hidden]
        width = max((len(name) for name, _ in shown), default=0)
        for name, entry in shown:
            heading = getattr(entry, "rich_help_panel", None) or "Commands"
            text = summary_of(entry, formatter.width - 6 - width)
            sections.setdefault(heading, []).append((name.ljust(width), text))
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl(rows)

    def main(self, args: Sequence[str] | None = None, *extra: Any, **settings: Any) -> Any:
        """Like Typer's, but a usage error is printed as JSON if JSON output was requested."""
        typed = familiar(sys.argv[1:] if args is None else args)
        plain_help = self._plain_help(typed)
        if plain_help is not None:
            typer.echo(plain_help)
            sys.exit(0)
        settings["standalone_mode"] = False
        try:
            code = super().main(typed, *extra, **settings)
        except typer.Abort:
            typer.echo("Aborted.", err=True)
            code = 1
        except typer.TyperException as error:
            _show_usage_error(error, self._path(typed), typed)
            code = error.exit_code
        sys.exit(code if isinstance(code, int) else 0)

    def _path(self, typed: Sequence[str]) -> str:
        """The command that a command line names, for errors that come before the parser knows it."""
        found: Any = self
        path = ["corral"]
        for word in typed:
            found = getattr(found, "commands", {}).get(word)
            if found is None:
                break
            path.append(word)
        return " ".join(path)

    def _plain_help(self, typed: Sequence[str]) -> str | None:
        """The help for a command line that consists of a command's name and --help. Normal parsing takes twice as long,
        because Typer loads pydantic to check the options of the groups."""
        if not typed or typed[-1] not in ("-h", "--help"):
            return None
        found: Any = self
        ctx = found.context_class(found, info_name="corral", **found.context_settings)
        for name in typed[:-1]:
            found = getattr(found, "commands", {}).get(name)
            if found is None:
                return None
            ctx = found.context_class(found, info_name=name, parent=ctx, **found.context_settings)
        return str(ctx.get_help())


def summarized_commands() -> dict[str, TyperCommand]:
    """The commands of the first level, with nothing but the texts that the list of commands shows."""
    return {
        name: TyperCommand(name, help=text, rich_help_panel=section, rich_markup_mode=None)
        for name, section, text in SUMMARIES
    }


EPILOG = (
    "\b\nStart here:\n"
    "  corral up                                  start a server on this machine\n"
    "  corral login --user operator               sign in\n"
    "  corral submit --gpus 1 -- python train.py  run something\n"
    "  corral jobs                                see how it goes\n"
    "\n\nExit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 not signed in or not allowed, "
    "4 not found, 5 server unreachable."
)


def application(places: Sequence[Place] = PLACES) -> typer.Typer:
    """The application with the commands at these places; only their modules are loaded."""
    app = typer.Typer(
        name="corral",
        cls=SectionedGroup,
        help="corral: shared, fair and observable GPUs, on one machine or on an existing cluster.",
        epilog=EPILOG,
        rich_markup_mode=None,
        no_args_is_help=True,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        pretty_exceptions_enable=False,
    )
    app.callback()(root)
    for place in places:
        found = place.load()
        if place.name is None:
            app.add_typer(found)
            continue
        own = found.info.cls
        group = own if isinstance(own, type) and issubclass(own, HabitGroup) else HabitGroup
        app.add_typer(found, name=place.name, cls=group, rich_help_panel=place.section)
    return app


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"corral {own_version()}")
        raise typer.Exit


def root(
    ctx: typer.Context,
    output: OutputOption = None,
    server: ServerOption = None,
    token: TokenOption = None,
    no_color: NoColorOption = None,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    keep_options(ctx, Options(output=output, server=server, token=token, no_color=no_color))


def _asks_for_json(typed: Sequence[str]) -> bool:
    """Whether a command line that could not be parsed requests JSON output."""
    own = " ".join(typed[: typed.index("--")] if "--" in typed else typed)
    return re.search(r"(^| )(-o ?|--output[ =])json( |$)", own) is not None


def _show_usage_error(error: typer.TyperException, path: str, typed: Sequence[str]) -> None:
    as_json = _asks_for_json(typed)
    message = error.format_message()
    if message.startswith("Usage:"):  # a group without a command: its help is the message
        typer.echo(problem(WrongUsage("a command is missing")) if as_json else message, err=True)
        return
    found = usage_error(error, path, typed)
    typer.echo(problem(found) if as_json else readable(found), err=True)


def main() -> None:
    # httpx has a command line of its own, which loads Rich, Pygments and click. A module that is None counts as
    # missing, and httpx works without it.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    if COMPLETE_VARIABLE in os.environ:
        from corral.cli.terminal.completion import prepare_completion

        prepare_completion()
        application()(prog_name="corral")
    else:
        part_for(familiar(sys.argv[1:]))(prog_name="corral")


def part_for(typed: Sequence[str]) -> typer.Typer:
    """The application with only the group that the command line names, if it exists; without any for the list of
    commands."""
    if not typed or typed in (["-h"], ["--help"]):
        return application(())
    place = first_word(typed, 0)
    named = [found for found in PLACES if place is not None and typed[place] in found.words]
    return application(named or PLACES)  # the whole one prints the known commands


if __name__ == "__main__":
    main()
