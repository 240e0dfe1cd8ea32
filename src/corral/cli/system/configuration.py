"""`corral config`: the configuration as it is, as it should be, and as it came from 003."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.terminal.failures import Refused, WrongUsage
from corral.cli.terminal.terminal import Terminal, command

if TYPE_CHECKING:
    from corral.server.settings.config_file import ConfigError

app = typer.Typer(help="Show, check and import the configuration.", no_args_is_help=True)


CHECK_HINT = "`corral config check FILE` checks a file without starting anything."


def config_failure(error: ConfigError, *, hint: str = CHECK_HINT) -> Refused:
    """Every line that is wrong, at once."""
    problems = [str(problem) for problem in error.problems]
    text = problems[0] if len(problems) == 1 else "the configuration cannot be used:\n  " + "\n  ".join(problems)
    return Refused(text, hint=hint)


@command(
    app, "show", connects=False, examples=["corral config show", "corral config show --config corral.yaml -o json"]
)
def show(
    terminal: Terminal,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="As for `corral up`.")] = None,
) -> None:
    """Show every setting that a server started here would use, and where it comes from."""
    from corral.server.settings.config_file import ConfigError
    from corral.server.settings.settings_sources import load_settings
    from corral.server.settings.shown_settings import show_settings

    try:
        lines = show_settings(load_settings(config=config))
    except ConfigError as error:
        raise config_failure(error) from error
    items = [asdict(line) for line in lines]
    terminal.table(
        ("KEY", "VALUE~", "FROM~"),
        items,
        lambda line: (line["key"], "none" if line["value"] is None else str(line["value"]), line["source"]),
        empty="",
    )


@command(app, "check", connects=False, examples=["corral config check corral.yaml"])
def check(
    terminal: Terminal,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A corral.yaml, or a gpu_manager_config.json.")],
) -> None:
    """Check a configuration file. Every mistake is named with its line and what is allowed."""
    from corral.server.settings.config_file import ConfigError
    from corral.server.settings.settings_sources import check_config, read_settings

    problems = check_config(file)
    if problems:
        raise config_failure(ConfigError(problems), hint="")
    for note in read_settings(file).notes:
        terminal.note(f"note: {note}")
    terminal.answer({"file": str(file), "problems": []}, f"{file}: good")


@command(
    app,
    "import",
    connects=False,
    examples=["corral config import gpu_manager_config.json", "corral config import old.json --to corral.yaml"],
)
def import_(
    terminal: Terminal,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A gpu_manager_config.json.")],
    to: Annotated[Path | None, typer.Option("--to", metavar="FILE", help="Write it here, not to stdout.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Turn a gpu_manager_config.json into a corral.yaml."""
    from corral.server.settings.config_file import ConfigError
    from corral.server.settings.gpu_manager_import import import_config

    try:
        imported = import_config(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise WrongUsage(f"cannot read {file}: {reason}") from error
    except ConfigError as error:
        raise config_failure(error) from error
    if to is not None:
        _write(to, imported.yaml_text, replace=force)
    for line in imported.mapped:
        terminal.note(f"mapped: {line}")
    for key in imported.unknown:
        terminal.note(f"left out, corral has no such setting: {key}")
    for remark in imported.remarks:
        terminal.note(f"note: {remark}")
    if terminal.as_json:
        terminal.json(asdict(imported))
    elif to is not None:
        terminal.say(f"Wrote {to}. Start with it: corral up --config {to}")
    else:
        typer.echo(imported.yaml_text, nl=False)


def _write(path: Path, text: str, *, replace: bool) -> None:
    try:
        with path.open("w" if replace else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise Refused(f"{path} exists already", hint="Replace it with --force.") from None
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror}") from error
