"""When will it start? How good estimated starts are, and what they cost.

Accuracy: workloads are replayed through the scheduler that runs live; run times are predicted from what has completed
so far, and time limits are longer than needed, as people ask for. Now and then, when jobs arrive, their starts are
estimated, from nothing but what is known at that moment, the outcomes of earlier estimates included. Jobs that start at
once are left out: about them nothing needs to be estimated. Like on a server, a job that still waits is estimated again
each time its start has come nearer by a horizon. The real weeks have no time limits. Each workload gets so many seconds
of processor time for its estimates; the progress is printed. For the weeks the planned starts of a plain simulation of
Slurm's backfill are shown beside (`slurm_starts`).

    CORRAL_TRACES=DIR python -m benchmarks.estimates [--jobs N] [--samples N] [--seconds N] [--speed | --accuracy]
"""

from __future__ import annotations

import argparse
import math
import os
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import fairness, real_weeks
from benchmarks.references import jobs_of
from benchmarks.scheduling import NOW, fleet_and_jobs, started
from benchmarks.slurm_starts import planned_and_started
from benchmarks.tables import Row, median, print_table, spread
from corral.core.model import Job, Queue
from corral.core.quantities import format_duration
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.forecast.accuracy import HORIZONS, PastEstimate, accuracy_of, calibrate, horizon_of
from corral.core.scheduling.forecast.arrivals import DAY, Recent
from corral.core.scheduling.forecast.estimates import Estimate, Forecaster
from corral.core.snapshot.changes import PutNode, PutQueue, PutRules
from corral.core.snapshot.cluster_snapshot import DEFAULT_TIME_CONSTANT, ClusterSnapshot
from corral.core.snapshot.installation import Limits
from corral.core.snapshot.replica import Replica, copy_of
from corral.simulator.fleets import parse_fleet
from corral.simulator.outcome import HOUR
from corral.simulator.simulation import Simulation
from corral.simulator.traces import philly
from corral.simulator.traces.job import TraceJob
from corral.simulator.workload import TimeLimits, Workload, in_order

POLICIES = ("fcfs", "fair-share", "shortest")
TARGET = "50 % ± 5 / 90 % ± 3, error ≤ 30 %"
#: the estimates of the rollouts, before the correction
RAW: tuple[Callable[[PastEstimate], float], ...] = (lambda one: one.raw_p50, lambda one: one.raw_p90)
#: moments between two lines of progress
PROGRESS_EVERY = 25
MOST_SECONDS = 2.0
SEED = 42
MOST_AT_ONCE = 5
#: Of the ten users: what they ask for, as a part of what the fleet can do, and the part of a day in which they do.
LOAD = 0.95
DAYTIME = 0.4
MONTH = 30


def philly_workload(path: Path, most: int) -> Workload:
    """The trace has no limits: all users ask for one and a half times to four times the time needed."""
    draw = random.Random(SEED)
    left_out: Counter[str] = Counter()
    jobs = [
        replace(job, time_limit_seconds=job.run_seconds * draw.uniform(1.5, 4.0))
        for job in in_order(philly.read(path, left_out), most)
    ]
    return Workload(philly.fleet(path), jobs, left_out, time_limits=TimeLimits.GIVEN)


def users_workload(most: int) -> Workload:
    """Ten users with habits of their own, who submit by day about what the fleet does by day and night.

    So there is a line by day that is gone by the morning, for the most part. Limits are 1.1 to 3 times what is needed.
    """
    draw = random.Random(SEED)
    asked = sum(habit.load for habit in fairness.HABITS)
    jobs = list[TraceJob]()
    for habit in fairness.HABITS:
        at, day = 0.0, fairness.DAY
        seconds = habit.hours * HOUR * math.exp(0.8**2 / 2)
        mean_gpus = sum(habit.sizes) / len(habit.sizes)
        between = seconds * mean_gpus * asked / (habit.load * LOAD * fairness.GPUS) * DAYTIME
        while at < MONTH * day * DAYTIME:
            at += draw.expovariate(1 / between)
            run_seconds = min(draw.lognormvariate(0.0, 0.8) * habit.hours * HOUR, day)
            jobs.append(
                TraceJob(
                    name=f"{habit.user}-{len(jobs)}",
                    user=habit.user,
                    # Time in which people work, put into the days that it is a part of.
                    submitted_at=at // (day * DAYTIME) * day + at % (day * DAYTIME),
                    run_seconds=run_seconds,
                    gpus=draw.choice(habit.sizes),
                    time_limit_seconds=run_seconds * draw.uniform(1.1, 3.0),
                    priority=habit.priority,
                )
            )
    jobs.sort(key=lambda job: job.submitted_at)
    return Workload(parse_fleet(fairness.FLEET), jobs[:most], Counter())


class EstimateWorker:
    """A replay during which starts are estimated."""

    def __init__(self, name: str, work: Workload, policy: str, samples: int, most_seconds: float) -> None:
        rules = PutRules(limits=Limits(), score_time_constant=DEFAULT_TIME_CONSTANT)
        queue = PutQueue(queue=Queue(name="default", policy=policy, placement="fragmentation"))
        nodes = [PutNode(node=node) for node in work.nodes]
        self._simulation = Simulation(
            snapshot=ClusterSnapshot([rules, queue, *nodes]), arrivals=work.arrivals(), in_order=True
        )
        self._name = f"{name}, {policy}"
        self._every = max(1, len(work.jobs) // samples)
        self._left_seconds = most_seconds
        self._forecaster = Forecaster()
        self.shown: list[PastEstimate] = []
        #: by job that waits: its estimates, as numbers in `shown`
        self._open: dict[str, list[int]] = {}
        self.seconds: list[float] = []
        self.ends_at = 0.0
        self._since: float | None = None
        self._recent: deque[Job] = deque()

    def run(self) -> None:
        arrived = 0
        for step in self._simulation:
            self.ends_at = step.at
            arrived += len(step.arrived)
            self._remember(step.at, step.arrived)
            starting = {start.job_id for start in step.plan.starts}
            for job_id in starting & self._open.keys():
                for number in self._open.pop(job_id):
                    self.shown[number] = replace(self.shown[number], started_at=step.at)
            fresh = [job_id for job_id in step.arrived if job_id not in starting]
            if self._left_seconds <= 0 and not self._open:
                return
            if fresh and arrived >= self._every and self._left_seconds > 0:
                arrived = 0
                # What came at one moment is wrong together: a burst counts as a few.
                picked = fresh[:: max(1, len(fresh) // MOST_AT_ONCE)]
                self._estimate(step.at, [*picked, *(job_id for job_id in self._open if job_id not in starting)])

    def _remember(self, now: float, arrived: Sequence[str]) -> None:
        if self._since is None:
            self._since = now
        self._recent.extend(self._simulation.snapshot.jobs[job_id] for job_id in arrived)
        while self._recent and (self._recent[0].queued_at or 0.0) < now - DAY:
            self._recent.popleft()

    def _estimate(self, now: float, job_ids: Sequence[str]) -> None:
        begun = time.process_time()
        calibration = calibrate(self.shown, now)
        recent = Recent(jobs=tuple(self._recent), since=self._since or now)
        copy = copy_of(self._simulation.snapshot)
        tables = self._simulation.run_times.life_tables.copy()
        found = self._forecaster.forecast(copy, now, calibration=calibration, recent=recent, tables=tables)
        self.seconds.append(time.process_time() - begun)
        self._left_seconds -= self.seconds[-1]
        for job_id in job_ids:
            estimate = found.estimates.get(job_id)
            if estimate is not None:
                self._show(self._simulation.snapshot.jobs[job_id], estimate, now)
        if len(self.seconds) % PROGRESS_EVERY == 0:
            left = f"{max(0.0, self._left_seconds):.0f} s left"
            print(
                f"estimates: {self._name}: {len(self.seconds)} moments, {len(self.shown)} estimates, {left}", flush=True
            )

    def _show(self, job: Job, estimate: Estimate, now: float) -> None:
        before = [
            horizon_of(self.shown[number].p50 - self.shown[number].made_at) for number in self._open.get(job.id, ())
        ]
        if horizon_of(estimate.p50 - now) >= min(before, default=len(HORIZONS)):
            return
        self._open.setdefault(job.id, []).append(len(self.shown))
        self.shown.append(
            PastEstimate(
                job_id=job.id,
                attempt=1,
                queue=job.queue,
                made_at=now,
                p50=estimate.p50,
                p90=estimate.p90,
                raw_p50=estimate.raw_p50,
                raw_p90=estimate.raw_p90,
            )
        )


def accuracy_rows(name: str, policy: str, ran: EstimateWorker) -> Iterator[Row]:
    """Estimates of jobs that wait beyond the end of the replay count as late."""
    for horizon, shown in [("all", ran.shown), *_by_horizon(ran.shown)]:
        found = accuracy_of(shown, ran.ends_at)
        started = [one for one in shown if one.started_at is not None]
        if found.before_p90 is None or found.before_p50 is None or not started:
            continue
        raw = [sum((one.started_at or 0.0) <= limit(one) + 1 for one in started) / len(started) for limit in RAW]
        part = error_part(started)
        yield Row(
            what=f"{name}, {policy}, {horizon}: starts before p50 / p90",
            value=f"{found.before_p50:.0%} / {found.before_p90:.0%} of {len(shown)}",
            spread=f"median error {_duration(found.median_error_seconds or 0.0)}, {part:.0%} of the wait",
            target=TARGET if horizon == "all" else "",
            ratio=(
                f"rollouts alone {raw[0]:.0%} / {raw[1]:.0%}; {median(ran.seconds) * 1000:.0f} ms an estimate of all"
                if horizon == "all"
                else ""
            ),
        )


def slurm_row(name: str, work: Workload, samples: int) -> Row:
    """The planned starts of Slurm's backfill on the same workload."""
    nodes, every = len(work.nodes), max(1, len(work.jobs) // samples)
    shown, ends_at = planned_and_started(jobs_of(work), nodes, work.gpus // nodes, every, MOST_AT_ONCE)
    found = accuracy_of(shown, ends_at)
    part = error_part([one for one in shown if one.started_at is not None])
    return Row(
        what=f"{name}, backfill by the partition's limit, as `squeue --start` shows it: starts before",
        value=f"{found.before_p50 or 0.0:.0%} of {len(shown)}",
        spread=f"median error {_duration(found.median_error_seconds or 0.0)}, {part:.0%} of the wait",
    )


def error_part(started: Sequence[PastEstimate]) -> float:
    """The median error as a part of the wait."""
    return median([abs((one.started_at or 0.0) - one.p50) / max(60.0, one.wait_seconds or 0.0) for one in started])


def _by_horizon(shown: Sequence[PastEstimate]) -> list[tuple[str, list[PastEstimate]]]:
    groups: dict[int, list[PastEstimate]] = {}
    for one in shown:
        groups.setdefault(horizon_of(one.p50 - one.made_at), []).append(one)
    return [(HORIZONS[number][1], groups[number]) for number in sorted(groups)]


def accuracy(options: argparse.Namespace) -> None:
    most, only = options.jobs, options.only or ()
    works: dict[str, Callable[[], Workload]] = {"ten users": lambda: users_workload(most)}
    folder = os.environ.get("CORRAL_TRACES")
    if folder:
        for trace in ("trace1", "trace3"):
            path = Path(folder) / "philly-64" / f"{trace}.csv"
            works[f"philly {trace}"] = partial(philly_workload, path, most)
        for path in sorted((Path(folder) / "philly-weeks").glob("*.swf")):
            works[f"week {path.stem}"] = partial(real_weeks.workload, path, TimeLimits.NONE)
    else:
        print("estimates: set CORRAL_TRACES to the directory that has philly-64/ and philly-weeks/; users only")
    rows = list[Row]()
    for name, made in works.items():
        for policy in (options.policy or POLICIES) if not only or name in only else ():
            ran = EstimateWorker(name, made(), policy, options.samples, options.seconds)
            ran.run()
            rows += accuracy_rows(name, policy, ran)
        if name.startswith("week ") and (not only or name in only):
            rows.append(slurm_row(name, made(), options.samples))
    print_table(f"Estimated starts, up to {most:,} jobs, whole weeks; predictions learned on the way", rows)


def speed(nodes: int = 5000, jobs: int = 63_000) -> None:
    """About 13,000 of the jobs run, so that 50,000 wait."""
    rows = []
    for policy in ("fair-share", "shortest"):
        snapshot = ClusterSnapshot(fleet_and_jobs(nodes, jobs, 0, policy=policy))
        begun = time.process_time()
        plan = schedule(snapshot, NOW)
        placing = (time.process_time() - begun) / len(plan.starts)
        snapshot.apply(started(snapshot, plan))
        begun = time.process_time()
        copy = copy_of(snapshot)
        copying = time.process_time() - begun
        begun = time.process_time()
        replica = Replica()
        replica.follow(copy)
        replicating = time.process_time() - begun
        forecaster, taken, found = Forecaster(), [], 0
        for number in range(4):
            begun = time.process_time()
            found = len(forecaster.forecast(copy, NOW + 1 + number).estimates)
            taken.append(time.process_time() - begun)
        # The first one builds its replica, as a server does when it starts.
        rows.append(
            Row(
                what=f"estimates of all {found:,} queued jobs, {nodes:,} nodes × 8 GPUs, {policy}",
                value=f"{median(taken[1:]):.2f} s",
                spread=f"{spread(taken[1:], 's', 2)}; the first {taken[0]:.2f} s, {replicating:.2f} s of it a replica",
                target=f"< {MOST_SECONDS:g} s",
                ratio=(
                    f"{median(taken[1:]) / found / placing:.2f} × placing as many; the controller is held up for "
                    f"{copying * 1000:.1f} ms"
                ),
            )
        )
    print_table("EstimateWorker starts in process", rows)


def _duration(seconds: float) -> str:
    return format_duration(max(1.0, round(seconds)))


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.estimates", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2000, help="of each workload (2000)")
    parser.add_argument("--samples", type=int, default=250, help="moments at which starts are estimated (250)")
    parser.add_argument("--policy", action="append", choices=POLICIES, help="only this ordering")
    parser.add_argument("--only", action="append", metavar="WORKLOAD", help='such as "ten users" or "week nov-05"')
    parser.add_argument("--seconds", type=float, default=60.0, help="processor time for each row's estimates (60)")
    parser.add_argument("--speed", action="store_true", help="only what it costs")
    parser.add_argument("--accuracy", action="store_true", help="only how good they are")
    options = parser.parse_args(arguments)
    if not options.speed:
        accuracy(options)
    if not options.accuracy:
        speed()


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
