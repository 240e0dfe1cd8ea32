"""How soon jobs are done: the Philly traces of Muri (SIGCOMM'22) on 64 GPUs, through the scheduler that runs live.

Without preemption: a job that has started runs to its end, and others pass it by backfill only. Run times are known
as time limits. The published policies preempt, and charge 4 to 46 s for it; no cost is charged here, as there is
nothing to charge.

    CORRAL_TRACES=DIR python -m benchmarks.completion [TRACE …]
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.tables import Row, print_table
from corral.core.model import Blocking
from corral.core.ordering.cost import OrderingRules
from corral.simulator.outcome import Outcome
from corral.simulator.replay import Rules, replay
from corral.simulator.traces import philly
from corral.simulator.workload import TimeLimits, Workload, in_order

#: average completion time in seconds: SRSF, Tiresias, Themis, and what no policy without sharing can be below
PUBLISHED = {
    "trace1": (980_141, 3_330_371, 1_823_179, 810_339),
    "trace1_pr": (1_801_860, 6_921_683, 3_314_303, 1_777_526),
    "trace3": (185_022, 347_213, 397_059, 134_707),
    "trace3_pr": (798_058, 2_213_110, 1_502_768, 782_425),
}
#: all jobs are one user's: `fair-share` and `priority` order them by age too. The default ageing, 4, keeps the lines of
#: these traces, which are weeks long, nearer to their age; 0.25 was tried on these very traces.
RUNS = (
    Rules(policy="fcfs", blocking=Blocking.STRICT),
    Rules(policy="fcfs"),
    Rules(policy="weighted"),
    Rules(policy="shortest"),
    Rules(policy="shortest", ordering=OrderingRules(ageing=0.25)),
)


def workload(path: Path) -> Workload:
    jobs = in_order(philly.read(path, left_out := Counter()))
    return Workload(philly.fleet(path), jobs, left_out, time_limits=TimeLimits.KNOWN)


def row(trace: str, rules: Rules, outcome: Outcome, seconds: float) -> Row:
    mean = outcome.completions.mean
    published = PUBLISHED.get(trace)
    ratio = ""
    ageing = f", ageing {rules.ordering.ageing:g}" if rules.policy == "shortest" else ""
    if published:
        srsf, tiresias, themis, bound = published
        ratio = (
            f"{mean / srsf:.2f} × SRSF, {mean / tiresias:.2f} × Tiresias, {mean / themis:.2f} × Themis (published, "
            f"preemptive), {mean / bound:.2f} × the bound"
        )
    return Row(
        what=f"{trace}, {rules.policy}{ageing}, {rules.blocking}: average completion time",
        value=f"{mean:,.0f} s",
        spread=(
            f"p99 {outcome.completions.percentile(99):,.0f} s, {outcome.utilization:.1%} used, makespan "
            f"{outcome.makespan_seconds:,.0f} s; {seconds:.1f} s a run"
        ),
        ratio=ratio,
    )


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.completion", description=__doc__)
    parser.add_argument("traces", nargs="*", metavar="TRACE", help="which traces; all of them, if none is named")
    options = parser.parse_args(arguments)
    folder = os.environ.get("CORRAL_TRACES")
    if not folder:
        print("completion: set CORRAL_TRACES to the directory that has the traces in philly-64/; skipped")
        return
    traces = Path(folder) / "philly-64"
    rows = []
    for trace in options.traces or sorted(path.stem for path in traces.glob("*.csv")):
        work = workload(traces / f"{trace}.csv")
        for rules in RUNS:
            begun = time.process_time()
            outcome = replay(work, rules)
            rows.append(row(trace, rules, outcome, time.process_time() - begun))
    print_table("Completion time without preemption, Philly traces, 8 nodes with 8 GPUs, run times known", rows)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
