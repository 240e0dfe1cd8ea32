"""`make bench-compare REV=…`: the same benchmarks over another commit and over this tree, in turns, on one machine.

The other commit gets a worktree and a virtual environment of its own. The benchmarks are those of this tree; the
corral that they measure is the one that is installed in the environment they run in. Each round runs both, and every
other round begins with the other one, so that work beside them slows both down alike. A ratio is the median of this
tree divided by the median of the other commit.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.page import PARTS, Part, measure
from benchmarks.tables import Row, median
from benchmarks.verdicts import figure_of, is_more_better

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 3
#: A run beside another one may take longer than on the page.
LIMIT_FACTOR = 3


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """A worktree of the commit, with its virtual environment; yields the Python of that."""
    with tempfile.TemporaryDirectory(prefix="corral-compare-") as scratch:
        tree = Path(scratch) / "tree"
        subprocess.run(["git", "-C", ROOT, "worktree", "add", "--quiet", "--detach", tree, revision], check=True)
        try:
            yield _environment(tree)
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", tree], check=True)


def _environment(tree: Path) -> Path:
    """The Python of a new virtual environment with that tree's corral. If both trees need the same packages, those that
    are installed here are used: to install them takes minutes."""
    home, lock = tree / ".venv", "requirements.lock"
    if (tree / lock).read_bytes() != (ROOT / lock).read_bytes():
        subprocess.run(["make", "--no-print-directory", "-C", tree, "setup"], check=True)
        return home / "bin" / "python"
    venv.create(home, symlinks=True)
    paths = {"base": str(home), "platbase": str(home)}
    own = Path(sysconfig.get_path("purelib", vars=paths))
    (own / "corral.pth").write_text(f"{tree / 'src'}\n{sysconfig.get_path('purelib')}\n")
    return home / "bin" / "python"


def compared(parts: Sequence[Part], pythons: dict[str, str], rounds: int, out: Console) -> dict[str, list[list[Row]]]:
    """The rows of every run, by side."""
    runs: dict[str, list[list[Row]]] = {side: [] for side in pythons}
    for number in range(rounds):
        sides = list(pythons) if number % 2 == 0 else list(reversed(pythons))
        for side in sides:
            rows: list[Row] = []
            for part in parts:
                outcome = measure(part, python=pythons[side])
                end = outcome.problem or "finished"
                out.print(f"round {number + 1}/{rounds}, {side}, {part.name}: {end} in {outcome.seconds:.0f} s")
                rows += outcome.rows
            runs[side].append(rows)
    return runs


def comparison(old: Sequence[Sequence[Row]], new: Sequence[Sequence[Row]]) -> Iterator[tuple[str, str, str, str, str]]:
    """For every row that both sides have: what, both medians, the ratio, and whether it is better or worse."""
    before, after = _figures(old), _figures(new)
    for what, (row, values, unit) in after.items():
        if what in before and (first := median(before[what][1])):
            second = median(values)
            ratio = second / first
            more = is_more_better(row)
            judged = "" if more is None or ratio == 1 else "better" if (ratio > 1) is more else "worse"
            yield what, f"{first:,.4g} {unit}", f"{second:,.4g} {unit}", f"{ratio:.2f}", judged


def _figures(runs: Sequence[Sequence[Row]]) -> dict[str, tuple[Row, list[float], str]]:
    found: dict[str, tuple[Row, list[float], str]] = {}
    for row in (row for rows in runs for row in rows):
        figure = figure_of(row.value)
        if figure is not None:
            found.setdefault(row.what, (row, [], figure[1]))[1].append(figure[0])
    return found


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.compare", description=__doc__)
    parser.add_argument("revision", help="the commit to compare this tree with")
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks (jobs and scheduling)")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args(arguments)
    wanted = options.names or ["jobs", "scheduling"]
    parts = [
        Part(name=part.name, limit_seconds=part.limit_seconds * LIMIT_FACTOR, arguments=part.arguments)
        for part in PARTS
        if part.name in wanted
    ]
    out = Console(width=150, markup=False)
    with checked_out(options.revision) as python:
        sides = {options.revision: str(python), "this tree": sys.executable}
        runs = compared(parts, sides, options.rounds, out)
    table = Table(title=f"{options.revision} and this tree, {options.rounds} rounds in turns", title_justify="left")
    for column in ("what", options.revision, "this tree", "ratio", ""):
        table.add_column(column, overflow="fold")
    for row in comparison(runs[options.revision], runs["this tree"]):
        table.add_row(*row)
    out.print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
