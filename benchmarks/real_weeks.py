"""Real weeks as people run them: no time limits, no settings, names that say nothing.

The Philly weeks through the scheduler that runs live, with the settings of a fresh installation, beside plain
simulations of first fit, the order by score, EASY, LAS and SRSF (`references`) in the same run. Every preemption costs
60 s. Means are completion times: from the submission to the end. Groups of jobs: one GPU, one node, and gangs, which
take more than 8 GPUs. A user's share is what the user held while a job of the user waited, divided by the mean of all
users with a waiting job at that moment; users count who had to wait for at least 12 hours, beside others.

    CORRAL_TRACES=DIR python -m benchmarks.real_weeks [--policy NAME] [WEEK …]
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import references
from benchmarks.references import Ended, jobs_of
from benchmarks.tables import percentile
from corral.simulator.outcome import HOUR, Held, Ran
from corral.simulator.replay import Rules, replay
from corral.simulator.traces import philly, swf
from corral.simulator.workload import TimeLimits, Workload, in_order

COST_SECONDS = 60.0
NODE_GPUS = 8
#: users who waited less than this, beside other users who waited, are not compared
LEAST_WAIT = 12 * HOUR
REFERENCES: dict[str, Callable[[list[Ended], int, int], list[Ended]]] = {
    "first fit": references.first_fit,
    "order by score alone": references.by_score,
    "EASY, run times known": references.easy,
    "LAS": lambda jobs, nodes, size: references.las(jobs, nodes, size, COST_SECONDS),
    "SRSF, run times known": lambda jobs, nodes, size: references.srsf(jobs, nodes, size, COST_SECONDS),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """A policy with its settings; `limits` says whether run times are known."""

    name: str
    rules: Rules
    limits: TimeLimits = TimeLimits.NONE


def _run(name: str, policy: str, limits: TimeLimits = TimeLimits.NONE, *, preempts: bool = False) -> Run:
    return Run(name=name, rules=Rules(policy=policy, preempts=preempts, preemption_cost=COST_SECONDS), limits=limits)


#: with the settings of a fresh installation
DEFAULTS = (
    _run("fair-share (default)", "fair-share"),
    _run("fcfs", "fcfs"),
    _run("weighted", "weighted"),
    _run("shortest", "shortest"),
    _run("shortest, preempts", "shortest", preempts=True),
    _run("fair-share, run times known", "fair-share", TimeLimits.KNOWN),
    _run("shortest, preempts, run times known", "shortest", TimeLimits.KNOWN, preempts=True),
)


def workload(path: Path, limits: TimeLimits) -> Workload:
    trace = philly if path.suffix == ".csv" else swf
    left_out: Counter[str] = Counter()
    jobs = in_order(trace.read(path, left_out))
    return Workload(trace.fleet(path), jobs, left_out, time_limits=limits)


def replayed(path: Path, run: Run) -> list[Ended]:
    """The week through the scheduler."""
    held: dict[str, list[tuple[float, float]]] = defaultdict(list)
    found: list[Ended] = []

    def note(event: Held | Ran) -> None:
        if isinstance(event, Held):
            held[event.job.id].append((event.since, event.until))
            return
        request = event.job.request
        found.append(
            Ended(
                number=event.job.serial,
                user=event.job.user,
                nodes=request.nodes,
                gpus=request.gpus,
                submitted_at=event.queued_at,
                run_seconds=event.run_seconds,
                held=held.pop(event.job.id),
                preemptions=event.preemptions,
            )
        )

    replay(workload(path, run.limits), run.rules, on_detail=note)
    return found


# ---------------------------------------------------------------- what is shown


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """One row."""

    name: str
    mean: float
    p50: float
    p99: float
    #: mean completion time of jobs of one GPU, of one node, and of gangs
    one_gpu: float
    one_node: float
    gangs: float
    gang_wait: float
    longest_wait: float
    used: float
    preemptions: int
    #: users' shares: the least and the most
    shares: tuple[float, float] | None
    seconds: float


def outcome_of(name: str, jobs: Sequence[Ended], gpus: int, seconds: float) -> Outcome:
    all_times = [job.completion_seconds for job in jobs]
    gangs = [job for job in jobs if job.nodes > 1]
    since, until = min(job.submitted_at for job in jobs), max(job.held[-1][1] for job in jobs)
    held = sum((end - begin) * job.total_gpus for job in jobs for begin, end in job.held)
    shares = users_shares(jobs)
    return Outcome(
        name=name,
        mean=_mean(all_times),
        p50=percentile(all_times, 50),
        p99=percentile(all_times, 99),
        one_gpu=_mean([job.completion_seconds for job in jobs if job.total_gpus == 1]),
        one_node=_mean([job.completion_seconds for job in jobs if 1 < job.total_gpus <= NODE_GPUS]),
        gangs=_mean([job.completion_seconds for job in gangs]),
        gang_wait=_mean([job.wait_seconds for job in gangs]),
        longest_wait=max(job.wait_seconds for job in jobs),
        used=held / (gpus * (until - since)),
        preemptions=sum(job.preemptions for job in jobs),
        shares=(min(shares.values()), max(shares.values())) if len(shares) > 1 else None,
        seconds=seconds,
    )


def users_shares(jobs: Iterable[Ended]) -> dict[str, float]:
    """By user: the GPUs held while a job of the user waited, relative to the mean of all users who waited then."""
    changes = sorted(_changes(jobs))
    waiting: Counter[str] = Counter()
    holding: Counter[str] = Counter()
    held: dict[str, float] = defaultdict(float)
    fair: dict[str, float] = defaultdict(float)
    waited: dict[str, float] = defaultdict(float)
    before = 0.0
    for at, user, waits, gpus in changes:
        seconds = at - before
        crowd = [one for one, count in waiting.items() if count] if seconds > 0 else []
        if len(crowd) > 1:
            part = sum(holding[one] for one in crowd) / len(crowd)
            for one in crowd:
                held[one] += holding[one] * seconds
                fair[one] += part * seconds
                waited[one] += seconds
        before = at
        waiting[user] += waits
        holding[user] += gpus
    return {user: held[user] / fair[user] for user in waited if waited[user] >= LEAST_WAIT and fair[user]}


def _changes(jobs: Iterable[Ended]) -> Iterator[tuple[float, str, int, int]]:
    for job in jobs:
        waits_from = job.submitted_at
        for since, until in job.held:
            if since > waits_from:
                yield waits_from, job.user, 1, 0
                yield since, job.user, -1, 0
            yield since, job.user, 0, job.total_gpus
            yield until, job.user, 0, -job.total_gpus
            waits_from = until


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def print_week(title: str, rows: Sequence[Outcome]) -> None:
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in (
        "policy", "mean", "× first fit", "p50", "p99", "1 GPU", "one node", "gangs", "wait of gangs", "longest wait",
        "used", "preemptions", "shares", "run",
    ):  # fmt: skip
        table.add_column(column, justify="left" if column == "policy" else "right", overflow="fold")
    first = rows[0].mean
    for row in rows:
        seconds = (row.p50, row.p99, row.one_gpu, row.one_node, row.gangs, row.gang_wait, row.longest_wait)
        table.add_row(
            row.name,
            f"{row.mean:,.0f}",
            f"{row.mean / first:.2f}",
            *(f"{value:,.0f}" for value in seconds),
            f"{row.used:.1%}",
            f"{row.preemptions:,}",
            f"{row.shares[0]:.2f}–{row.shares[1]:.2f}" if row.shares else "",
            f"{row.seconds:.0f} s",
        )
    Console(width=210).print(table)


def rows_of(path: Path, runs: Sequence[Run], names: Sequence[str] = tuple(REFERENCES)) -> Iterator[Outcome]:
    work = workload(path, TimeLimits.NONE)
    nodes = len(work.nodes)
    for name in names:
        begun = time.process_time()
        ended = REFERENCES[name](jobs_of(work), nodes, work.gpus // nodes)
        yield outcome_of(name, ended, work.gpus, time.process_time() - begun)
    for run in runs:
        begun = time.process_time()
        ended = replayed(path, run)
        yield outcome_of(run.name, ended, work.gpus, time.process_time() - begun)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.real_weeks", description=__doc__)
    parser.add_argument("weeks", nargs="*", metavar="WEEK", help="which weeks; all of them, if none is named")
    parser.add_argument("--policy", action="append", help="only runs whose name contains this")
    options = parser.parse_args(arguments)
    folder = os.environ.get("CORRAL_TRACES")
    if not folder:
        print("real_weeks: set CORRAL_TRACES to the directory that has the traces in philly-weeks/; skipped")
        return
    weeks = Path(folder) / "philly-weeks"
    runs = [run for run in DEFAULTS if not options.policy or any(part in run.name for part in options.policy)]
    for week in options.weeks or sorted(path.stem for path in weeks.glob("*.swf")):
        rows = list(rows_of(weeks / f"{week}.swf", runs))
        print_week(f"{week}: completion times in seconds, 60 s for each preemption", rows)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
