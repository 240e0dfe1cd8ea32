"""Run the command line in this process, as the entry point does, against a scripted server or none."""

from __future__ import annotations

import json
from typing import Any

import typer.main
import typer.testing
from typer.testing import CliRunner, Result

from corral.cli.main import application

#: Made once: the whole tree of commands takes longer to make than most commands to run.
APP = application()
COMMAND = typer.main.get_command(APP)
setattr(typer.testing, "_get_command", lambda typer_instance: COMMAND)  # noqa: B010

#: No server listens there: port 1 needs root, and nothing uses it.
NO_SERVER = "http://127.0.0.1:1"


def corral(*args: str, stdin: str | None = None, **env: str) -> Result:
    """The result; an unexpected exception fails the test here instead of being kept in the result."""
    return CliRunner().invoke(
        APP,
        list(args),
        input=stdin,
        env={"CORRAL_SERVER": NO_SERVER, **env},
        catch_exceptions=False,
        prog_name="corral",
    )


def problem_on_stderr(result: Result) -> dict[str, Any]:
    problem = json.loads(result.stderr)
    assert isinstance(problem, dict)
    return problem
