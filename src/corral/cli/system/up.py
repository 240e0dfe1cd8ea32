"""`corral up`: runs the server in the foreground. `corral.server` does all of the work."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from corral.cli.system.configuration import CHECK_HINT
from corral.cli.terminal.failures import REFUSED, WrongUsage
from corral.cli.terminal.terminal import Section, Terminal, command

if TYPE_CHECKING:
    from corral.server.settings.config_file import ConfigError

app = typer.Typer()

#: The origin of values that options set.
COMMAND_LINE = "command line"


@command(
    app,
    "up",
    section=Section.SETUP,
    connects=False,
    examples=[
        "corral up",
        "corral up --virtual-gpus 8xA100-80G --port 9000",
        "corral up --virtual-nodes 11x4xA10",
        "corral up --config corral.yaml",
        "corral up --demo",
    ],
)
def up(
    terminal: Terminal,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The configuration; default: corral.yaml in the home, if any.")
    ] = None,
    host: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Where to listen; default 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(metavar="PORT", help="Default 8470.  [env: CORRAL_PORT]")] = None,
    home: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The directory of the server's state.  [env: CORRAL_HOME]")
    ] = None,
    virtual_gpus: Annotated[
        str | None, typer.Option(metavar="NxMODEL", help="Virtual GPUs instead of real ones, such as 8xA100-80G.")
    ] = None,
    virtual_nodes: Annotated[
        str | None, typer.Option(metavar="NxMxMODEL", help="Several virtual nodes, such as 11x4xA10.")
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="A demo fleet with users and jobs that keep arriving, in a home of its own.")
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over", help="Use a store that belongs to another home, whose server must not run any more."
        ),
    ] = False,
) -> None:
    """Run the server on this machine until Ctrl-C. Jobs continue without it, and the next server finds them."""
    # What is loaded until the server listens is kept: searching it for garbage is a sixth of the time of a start.
    gc.disable()
    from corral.server.settings.config_file import ConfigError
    from corral.server.settings.settings_sources import default_home, load_settings
    from corral.server.wiring.run import serve

    if demo and home is None and not os.environ.get("CORRAL_HOME"):
        # the demo's users and jobs must not get into the store of a real installation
        home = default_home(os.environ).with_name("corral-demo")
    overrides = {
        "home": home,
        "server.host": host,
        "server.port": port,
        "local.virtual_gpus": virtual_gpus,
        "local.virtual_nodes": virtual_nodes,
    }
    try:
        settings = load_settings(config=config, overrides=overrides)
    except ConfigError as error:
        raise _wrong_configuration(error) from error
    for note in settings.notes:
        terminal.note(f"Note: {note}")
    try:
        serve(settings, demo=demo, take_over=take_over)
    except SystemExit as end:
        # the server has printed the reason
        raise typer.Exit(end.code if isinstance(end.code, int) else REFUSED) from end


def _wrong_configuration(error: ConfigError) -> WrongUsage:
    """Every value that is wrong, at once; those of the command line by their options."""
    problems = [
        f"--{problem.key.rpartition('.')[2].replace('_', '-')}: {problem.message}"
        if problem.origin == COMMAND_LINE
        else str(problem)
        for problem in error.problems
    ]
    is_typed = all(problem.origin == COMMAND_LINE for problem in error.problems)
    text = problems[0] if len(problems) == 1 else "the configuration cannot be used:\n  " + "\n  ".join(problems)
    return WrongUsage(text, hint="`corral up --help` explains it." if is_typed else CHECK_HINT)
