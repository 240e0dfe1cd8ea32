"""When will it start? How good estimated starts are, and what they cost.

Accuracy: workloads are replayed through the scheduler that runs live; run times are predicted from what has completed
so far, and time limits are longer than needed, as people ask for. Now and then, when jobs arrive, their starts are
estimated, from nothing but what is known at that moment, the outcomes of earlier estimates included. Jobs that start at
once are left out: about them nothing needs to be estimated.

    CORRAL_TRACES=DIR python -m benchmarks.estimates [--jobs N] [--samples N] [--speed | --accuracy]
"""

from __future__ import annotations

import argparse
import math
import os
import random
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks import fairness
from benchmarks.scheduling import NOW, fleet_and_jobs, started
from benchmarks.tables import Row, median, print_table, spread
from corral.core.model import Job, Queue
from corral.core.quantities import format_duration
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.forecast.accuracy import PastEstimate, accuracy_of, by_horizon, calibrate
from corral.core.scheduling.forecast.arrivals import DAY, Recent
from corral.core.scheduling.forecast.estimates import Forecaster
from corral.core.snapshot.changes import PutNode, PutQueue, PutRules
from corral.core.snapshot.cluster_snapshot import DEFAULT_TIME_CONSTANT, ClusterSnapshot
from corral.core.snapshot.installation import Limits
from corral.core.snapshot.replica import Replica, copy_of
from corral.simulator.fleets import parse_fleet
from corral.simulator.simulation import Simulation
from corral.simulator.traces import philly
from corral.simulator.traces.job import TraceJob
from corral.simulator.workload import TimeLimits, Workload, in_order

POLICIES = ("fcfs", "fair-share", "shortest")
LEAST_BEFORE_P90 = 0.8
MOST_SECONDS = 2.0
SEED = 42
MOST_AT_ONCE = 5
#: Of the ten users: what they ask for, as a part of what the fleet can do, and the part of a day in which they do.
LOAD = 0.95
DAYTIME = 0.4
MONTH = 30


def philly_workload(path: Path, most: int) -> Workload:
    """The trace tells no limits: everybody asks for one and a half times to four times what is needed."""
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
    jobs = []
    for habit in fairness.HABITS:
        at, day = 0.0, fairness.DAY
        seconds = habit.hours * fairness.HOUR * math.exp(0.8**2 / 2)
        mean_gpus = sum(habit.sizes) / len(habit.sizes)
        between = seconds * mean_gpus * asked / (habit.load * LOAD * fairness.GPUS) * DAYTIME
        while at < MONTH * day * DAYTIME:
            at += draw.expovariate(1 / between)
            run_seconds = min(draw.lognormvariate(0.0, 0.8) * habit.hours * fairness.HOUR, day)
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

    def __init__(self, work: Workload, policy: str, samples: int) -> None:
        rules = PutRules(limits=Limits(), score_time_constant=DEFAULT_TIME_CONSTANT)
        queue = PutQueue(queue=Queue(name="default", policy=policy, placement="fragmentation"))
        nodes = [PutNode(node=node) for node in work.nodes]
        self._simulation = Simulation(
            snapshot=ClusterSnapshot([rules, queue, *nodes]), arrivals=work.arrivals(), in_order=True
        )
        self._every = max(1, len(work.jobs) // samples)
        self._forecaster = Forecaster()
        #: by job
        self.told: dict[str, PastEstimate] = {}
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
            for job_id in starting & self.told.keys():
                if self.told[job_id].started_at is None:
                    self.told[job_id] = replace(self.told[job_id], started_at=step.at)
            fresh = [job_id for job_id in step.arrived if job_id not in starting]
            if fresh and arrived >= self._every:
                arrived = 0
                # What came at one moment is wrong together: a burst counts as a few.
                picked = fresh[:: max(1, len(fresh) // MOST_AT_ONCE)]
                self._estimate(step.at, [self._simulation.snapshot.jobs[job_id] for job_id in picked])

    def _remember(self, now: float, arrived: Sequence[str]) -> None:
        if self._since is None:
            self._since = now
        self._recent.extend(self._simulation.snapshot.jobs[job_id] for job_id in arrived)
        while self._recent and (self._recent[0].queued_at or 0.0) < now - DAY:
            self._recent.popleft()

    def _estimate(self, now: float, jobs: Sequence[Job]) -> None:
        begun = time.process_time()
        calibration = calibrate(self.told.values(), now)
        recent = Recent(jobs=tuple(self._recent), since=self._since or now)
        picture = copy_of(self._simulation.snapshot)
        found = self._forecaster.forecast(picture, now, calibration=calibration, recent=recent)
        self.seconds.append(time.process_time() - begun)
        for job in jobs:
            estimate = found.estimates.get(job.id)
            if estimate is not None:
                self.told[job.id] = PastEstimate(
                    job_id=job.id,
                    attempt=1,
                    queue=job.queue,
                    made_at=now,
                    p50=estimate.p50,
                    p90=estimate.p90,
                    raw_p50=estimate.raw_p50,
                    raw_p90=estimate.raw_p90,
                )


def accuracy_rows(name: str, policy: str, ran: EstimateWorker) -> Iterator[Row]:
    told = [one for one in ran.told.values() if one.started_at is not None]
    for horizon, found in [("all", accuracy_of(told, ran.ends_at)), *by_horizon(told, ran.ends_at)]:
        if found.before_p90 is None or found.before_p50 is None:
            continue
        raw = sum(one.started_at is not None and one.started_at <= one.raw_p90 + 1 for one in told) / len(told)
        yield Row(
            what=f"{name}, {policy}, {horizon}: starts before p90",
            value=f"{found.before_p90:.0%} of {found.started}",
            spread=f"before p50 {found.before_p50:.0%}, median error {_duration(found.median_error_seconds or 0.0)}",
            target=f"≥ {LEAST_BEFORE_P90:.0%}" if horizon == "all" else "",
            ratio=(
                f"{raw:.0%} before what the courses alone said; {median(ran.seconds) * 1000:.0f} ms an estimate of all"
                if horizon == "all"
                else ""
            ),
        )


def accuracy(most: int, samples: int, policies: Sequence[str], only: Sequence[str]) -> None:
    works = {"ten users": users_workload(most)}
    folder = os.environ.get("CORRAL_TRACES")
    if folder:
        for trace in ("trace1", "trace3"):
            works[f"philly {trace}"] = philly_workload(Path(folder) / "philly-64" / f"{trace}.csv", most)
    else:
        print(
            "estimates: set CORRAL_TRACES to the directory that has the traces in philly-64/; only users are replayed"
        )
    rows = []
    for name, work in works.items():
        for policy in policies if not only or name in only else ():
            ran = EstimateWorker(work, policy, samples)
            ran.run()
            rows += accuracy_rows(name, policy, ran)
    print_table(f"Estimated starts, 64 GPUs, up to {most:,} jobs, predictions learned on the way", rows)


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
        picture = copy_of(snapshot)
        copying = time.process_time() - begun
        begun = time.process_time()
        mirror = Replica()
        mirror.follow(picture)
        mirroring = time.process_time() - begun
        forecaster, taken, found = Forecaster(), [], 0
        for number in range(4):
            begun = time.process_time()
            found = len(forecaster.forecast(picture, NOW + 1 + number).estimates)
            taken.append(time.process_time() - begun)
        # The first one builds a picture of its own, as a server does when it starts.
        rows.append(
            Row(
                what=f"estimates of all {found:,} queued jobs, {nodes:,} nodes × 8 GPUs, {policy}",
                value=f"{median(taken[1:]):.2f} s",
                spread=f"{spread(taken[1:], 's', 2)}; the first {taken[0]:.2f} s, {mirroring:.2f} s of it a picture",
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
    parser.add_argument("--only", action="append", metavar="WORKLOAD", help='such as "ten users" or "philly trace3"')
    parser.add_argument("--speed", action="store_true", help="only what it costs")
    parser.add_argument("--accuracy", action="store_true", help="only how good they are")
    options = parser.parse_args(arguments)
    if not options.speed:
        accuracy(options.jobs, options.samples, options.policy or POLICIES, options.only or ())
    if not options.accuracy:
        speed()


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
