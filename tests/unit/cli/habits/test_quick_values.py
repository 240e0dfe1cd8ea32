"""Values that cannot be wrong are passed on unchecked; all others are checked as Typer checks them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.core import TyperCommand
from typer.testing import CliRunner

from corral.cli.habits.quick_values import QuickCommand


class Colour(StrEnum):
    RED = "red"


def values_of(kind: type[TyperCommand], typed: list[str]) -> tuple[int, Any]:
    """The exit code, and what the function got."""
    seen: list[Any] = []
    app = typer.Typer()

    @app.command(cls=kind)
    def run(
        words: Annotated[list[str] | None, typer.Argument()] = None,
        text: str = "x",
        number: Annotated[int, typer.Option(min=1, max=9)] = 5,
        part: float = 0.5,
        maybe: int | None = None,
        several: Annotated[list[str] | None, typer.Option()] = None,
        path: Path = Path("here"),
        colour: Colour = Colour.RED,
        flag: bool = False,
    ) -> None:
        seen.append((words, text, number, part, maybe, several, path, colour, flag))

    result = CliRunner().invoke(app, typed)
    return result.exit_code, seen


@pytest.mark.parametrize(
    "typed",
    [
        [],
        ["a", "b", "--text", "5", "--number", "3", "--part", "2", "--maybe", "7", "--several", "p", "--several", "q"],
        ["--path", "/there", "--colour", "red", "--flag"],
        ["--number", "0"],
        ["--number", "5"],
        ["--number", "five"],
        ["--maybe", "1.5"],
        ["--colour", "blue"],
        ["--colour", "RED"],
        ["--text", ""],
    ],
)
def test_the_outcome_is_that_of_typer(typed: list[str]) -> None:
    assert values_of(QuickCommand, typed) == values_of(TyperCommand, typed)
