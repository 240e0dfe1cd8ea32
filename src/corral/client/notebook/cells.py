"""A cell of a notebook as a call: its options, its source and the names that it exchanges with the notebook."""

from __future__ import annotations

import argparse
import ast
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from corral.client.http.errors import ClientError

if TYPE_CHECKING:
    from corral.client.views import JobCreate


@dataclass(frozen=True, kw_only=True, slots=True)
class CellOptions:
    settings: JobCreate
    #: names of the notebook that the cell reads, and names that the notebook gets from it
    take: tuple[str, ...]
    give: tuple[str, ...]
    python: str | None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ClientError(f"%%corral: {message}", hint="%%corral --help lists the options.")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise ClientError(message or "%%corral: not valid") if status else SystemExit(0)


def parser() -> argparse.ArgumentParser:
    made = _Parser(prog="%%corral", description="Run this cell as a job.", allow_abbrev=False)
    made.add_argument("--gpus", type=float, default=0.0, help="GPUs: 0, a share below 1, or whole ones")
    for flag, what in (
        ("--time", "the longest run time, such as 10m"),
        ("--memory", "such as 16GiB"),
        ("--name", "the job's name"),
        ("--queue", "the queue"),
        ("--model", "the GPU model"),
        ("--image", "an image"),
        ("--venv", "a virtual environment on the nodes"),
        ("--package", "a package of the catalog"),
    ):
        made.add_argument(flag, help=what)
    made.add_argument("--cpus", type=float, help="CPUs")
    made.add_argument("--take", action="append", default=[], metavar="NAMES", help="names that the cell reads: a,b")
    made.add_argument("--give", action="append", default=[], metavar="NAMES", help="names that the notebook gets: a,b")
    made.add_argument("--python", help="the interpreter on the nodes")
    return made


def options_of(line: str) -> CellOptions:
    found = vars(parser().parse_args(shlex.split(line)))
    take, give = (
        tuple(name for part in found.pop(word) for name in part.split(",") if name) for word in ("take", "give")
    )
    python = found.pop("python")
    settings: JobCreate = {key: value for key, value in found.items() if value is not None}  # type: ignore[assignment]
    return CellOptions(settings=settings, take=take, give=give, python=python)


def taken(names: tuple[str, ...], notebook: Mapping[str, Any]) -> dict[str, Any]:
    missing = [name for name in names if name not in notebook]
    if missing:
        raise ClientError(f"the notebook has no {', '.join(missing)}", hint="Run the cell that defines it first.")
    return {name: notebook[name] for name in names}


def run_cell(source: str, names: dict[str, Any], give: tuple[str, ...]) -> dict[str, Any]:
    """Runs the cell, in the job, and returns the names that the notebook gets. The value of a last expression is
    printed, as a notebook would show it.
    """
    # Sent by value: nothing of corral is imported in the job.
    import ast

    tree = ast.parse(source)
    space = {"__name__": "__main__", **names}
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        tree.body.pop()
    exec(compile(tree, "<cell>", "exec"), space)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), space)
        if value is not None:
            print(repr(value))  # noqa: T201
    missing = [name for name in give if name not in space]
    if missing:
        raise NameError(f"the cell does not define {', '.join(missing)}")
    return {name: space[name] for name in give}


def check_source(source: str) -> None:
    """Syntax errors are found before a job is submitted."""
    ast.parse(source)
