"""`make bench`: all measurements on one page: what, target, value, ratio to the peer of the same run, and verdict.

Each benchmark runs in a process of its own, with a limit of time; together the limits are half an hour. A line says
what runs, how long it has been running and how it ended. A benchmark that is not finished within its limit is
interrupted, and the page says so: its rows so far are kept.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.tables import ROWS_VARIABLE, Row
from benchmarks.verdicts import Verdict, verdict_of

#: How often a line says that a benchmark is still running, and how long an interrupted one may take to clean up.
PROGRESS_SECONDS = 30.0
CLEAN_UP_SECONDS = 30.0

Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A benchmark on the page."""

    name: str
    limit_seconds: float
    #: smaller than the benchmark by itself, where that takes long
    arguments: tuple[str, ...] = ()


#: In the order of interest. The limits add up to half an hour.
PARTS = (
    Part(name="jobs", limit_seconds=180),
    Part(name="scheduling", limit_seconds=240),
    Part(name="estimates", limit_seconds=180, arguments=("--jobs", "400", "--samples", "40")),
    Part(name="overview", limit_seconds=90),
    Part(name="console", limit_seconds=90),
    Part(name="joblist", limit_seconds=150),
    Part(name="footprint", limit_seconds=120),
    Part(name="history", limit_seconds=120),
    Part(name="packing", limit_seconds=60, arguments=("--seeds", "1")),
    Part(name="completion", limit_seconds=60),
    Part(name="real_weeks", limit_seconds=60),
    Part(name="fairness", limit_seconds=60, arguments=("--seeds", "1", "--days", "7", "--same-mix")),
    Part(name="simulate", limit_seconds=90, arguments=("--most", "10000")),
    Part(name="slurm", limit_seconds=90, arguments=("--jobs", "100", "--rounds", "1")),
    Part(name="kubernetes", limit_seconds=90, arguments=("--jobs", "50", "--rounds", "1", "--watched", "500")),
    Part(name="store_copies", limit_seconds=60),
    Part(name="transfer", limit_seconds=30),
    Part(name="datasets", limit_seconds=30),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    part: Part
    rows: tuple[Row, ...]
    seconds: float
    #: why the benchmark has no result, or not all of it; "" if it has
    problem: str = ""


def main() -> None:
    out = Console(width=180)
    outcomes = []
    for number, part in enumerate(PARTS, 1):
        out.print(f"[{number}/{len(PARTS)}] {part.name}: at most {part.limit_seconds:.0f} s", markup=False)
        outcome = measure(part, progress=lambda text: out.print(f"    {text}", markup=False))
        outcomes.append(outcome)
        end = outcome.problem or "finished"
        out.print(f"    {end}: {len(outcome.rows)} values in {outcome.seconds:.0f} s", markup=False)
    out.print(page_of(outcomes))
    for line in remarks(outcomes):
        out.print(line, markup=False)


def measure(part: Part, *, progress: Progress = lambda text: None, python: str = sys.executable) -> Outcome:
    """Run one benchmark in a process of its own. `progress` is called with a line now and then."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="corral-bench-rows-") as scratch:
        kept, log = Path(scratch) / "rows", Path(scratch) / "log"
        env = {**os.environ, ROWS_VARIABLE: str(kept)}
        command = [python, "-m", f"benchmarks.{part.name}", *part.arguments]
        with log.open("wb") as output:
            process = subprocess.Popen(command, env=env, stdout=output, stderr=output, start_new_session=True)
        problem = _wait(process, part, begun, progress)
        rows = _rows_in(kept)
        if not problem and not rows:
            problem = (log.read_text(errors="replace").strip().splitlines() or ["no result"])[-1]
    return Outcome(part=part, rows=rows, seconds=time.monotonic() - begun, problem=problem)


def _wait(process: subprocess.Popen[bytes], part: Part, begun: float, progress: Progress) -> str:
    """Why the benchmark did not finish; "" if it did."""
    while (left := begun + part.limit_seconds - time.monotonic()) > 0:
        try:
            status = process.wait(min(left, PROGRESS_SECONDS))
        except subprocess.TimeoutExpired:
            progress(f"{part.name} has been running for {time.monotonic() - begun:.0f} s")
        else:
            return f"failed with exit code {status}" if status else ""
    # As by Ctrl-C: it ends the servers that it has started. Whatever is left of its processes is killed.
    process.send_signal(signal.SIGINT)
    try:
        process.wait(CLEAN_UP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return f"not finished within {part.limit_seconds:.0f} s"


def _rows_in(kept: Path) -> tuple[Row, ...]:
    if not kept.exists():
        return ()
    return tuple(Row(**json.loads(line)) for line in kept.read_text(encoding="utf-8").splitlines())


def page_of(outcomes: Sequence[Outcome]) -> Table:
    """Only rows with a target: `python -m benchmarks NAME` prints the others."""
    table = Table(title="Targets", title_justify="left", title_style="bold")
    for column in ("benchmark", "what", "target", "value", "ratio to its peer", "verdict"):
        table.add_column(column, overflow="fold")
    for outcome in outcomes:
        for row in outcome.rows:
            if row.target:
                verdict = verdict_of(row)
                style = "red" if verdict is Verdict.MISSED else ""
                table.add_row(outcome.part.name, row.what, row.target, row.value, row.ratio, verdict, style=style)
    return table


def remarks(outcomes: Sequence[Outcome]) -> list[str]:
    verdicts = [verdict_of(row) for outcome in outcomes for row in outcome.rows if row.target]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in (Verdict.REACHED, Verdict.MISSED))
    return [
        f"{len(verdicts)} targets: {counts}, {verdicts.count(Verdict.NONE)} not comparable",
        *(f"{outcome.part.name}: {outcome.problem}" for outcome in outcomes if outcome.problem),
    ]


if __name__ == "__main__":
    main()
