"""How fast the simulator is, and how its cost grows with the number of jobs: at 1,000, 10,000 and 100,000.

The load stays the same, so that a longer trace is more of the same work: 64 GPUs, a hundred users, jobs of 1 to 16
GPUs that ask for 90 % of them, with time limits longer than they run. Nearer to 100 % the lines of a short trace are
shorter than those of a long one, and so is a cycle: `--load 0.97` shows it. The clock is the processor's.

    python -m benchmarks.simulate [--most JOBS] [--policy NAME] [--load PART]
"""

from __future__ import annotations

import argparse
import math
import random
import resource
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.tables import Row, print_table
from corral.simulator.fleets import parse_fleet
from corral.simulator.outcome import HOUR
from corral.simulator.replay import Rules, replay
from corral.simulator.traces.job import TraceJob
from corral.simulator.workload import Workload

SIZES = (1_000, 10_000, 100_000)
FLEET, GPUS = "8x8xV100", 64
LOAD = 0.9
#: GPUs of a job, as often as they are listed
GPU_COUNTS = (1, 1, 1, 1, 2, 2, 4, 4, 8, 16)
MOST_EXPONENT = 1.1
MIB = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    jobs: int
    seconds: float
    waited: float


def trace(count: int, load: float, seed: int = 42) -> list[TraceJob]:
    draw = random.Random(seed)
    jobs, at = list[TraceJob](), 0.0
    for number in range(count):
        gpus = draw.choice(GPU_COUNTS)
        run_seconds = min(draw.lognormvariate(0.0, 1.0) * HOUR, 24 * HOUR)
        jobs.append(
            TraceJob(
                name=f"job-{number}",
                user=f"user-{draw.randrange(100)}",
                submitted_at=at,
                run_seconds=run_seconds,
                gpus=gpus,
                time_limit_seconds=run_seconds * draw.uniform(1.0, 3.0),
            )
        )
        at += gpus * run_seconds / (load * GPUS)
    return jobs


def measure(count: int, policy: str, load: float) -> Measured:
    workload = Workload(parse_fleet(FLEET), trace(count, load), Counter())
    begun = time.process_time()
    outcome = replay(workload, Rules(policy=policy))
    return Measured(jobs=count, seconds=time.process_time() - begun, waited=outcome.waits.mean)


def exponent(first: Measured, last: Measured) -> float:
    """Of the growth of cost with the number of jobs: 1 is linear."""
    return math.log(last.seconds / first.seconds) / math.log(last.jobs / first.jobs)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.simulate", description=__doc__)
    parser.add_argument("--most", type=int, default=SIZES[-1], help="leave out larger traces")
    parser.add_argument("--policy", default="fair-share")
    parser.add_argument("--load", type=float, default=LOAD, help="the part of the GPUs that is asked for (0.9)")
    options = parser.parse_args(arguments)
    runs = [measure(count, options.policy, options.load) for count in SIZES if count <= options.most]
    rows = [
        Row(
            what=f"{run.jobs:,} jobs, {options.policy}",
            value=f"{run.jobs / run.seconds:,.0f} jobs/s",
            spread=f"{run.seconds:.1f} s; jobs waited {run.waited / HOUR:.1f} h on average",
        )
        for run in runs
    ]
    if len(runs) > 1:
        rows.append(
            Row(
                what=f"exponent of cost, {runs[0].jobs:,} to {runs[-1].jobs:,} jobs",
                value=f"{exponent(runs[0], runs[-1]):.3f}",
                target=f"≤ {MOST_EXPONENT}",
                spread=f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MIB:,.0f} MiB",
            )
        )
    print_table(f"Simulator, {FLEET}, load {options.load:.0%}", rows)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
