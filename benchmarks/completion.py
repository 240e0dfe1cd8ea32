"""How soon jobs are done: the Philly traces of Muri (SIGCOMM'22) on 64 GPUs, through the scheduler that runs live.

Three cases. Run times known, no preemption: jobs pass by backfill only. Run times known, and the order preempts:
at no cost, and at 60 s that every preempted job holds its next GPUs before its work goes on; the published runs charge
every running job 4 to 46 s at every event. Run times unknown: no time limits, and what is predicted was learned from
jobs that ended earlier in the same run.

All traces run with the same settings. They are weeks long, so that age hardly counts (`ageing` 0.001, where 4 is
the default), and all jobs are one user's. Jobs save when they are warned. Where it says so they may be moved to another
node, at the same cost.

    CORRAL_TRACES=DIR python -m benchmarks.completion [--case NAME] [TRACE …]
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.tables import Row, print_table
from corral.core.model import Blocking
from corral.core.scheduling.ordering.cost import OrderingRules
from corral.core.snapshot.installation import PreemptionRules
from corral.simulator.outcome import Outcome
from corral.simulator.replay import Rules, replay
from corral.simulator.traces import philly
from corral.simulator.workload import TimeLimits, Workload, in_order


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """Average completion time in seconds, and what no policy that does not share GPUs can be below."""

    srsf: float
    tiresias: float
    themis: float
    bound: float


PUBLISHED = {
    "trace1": Published(srsf=980_141, tiresias=3_330_371, themis=1_823_179, bound=810_339),
    "trace1_pr": Published(srsf=1_801_860, tiresias=6_921_683, themis=3_314_303, bound=1_777_526),
    "trace3": Published(srsf=185_022, tiresias=347_213, themis=397_059, bound=134_707),
    "trace3_pr": Published(srsf=798_058, tiresias=2_213_110, themis=1_502_768, bound=782_425),
}
COST_SECONDS = 60.0
#: age does not count, and a tiny lead is worth a preemption when run times are known; jobs are moved
KNOWN = Rules(
    policy="shortest",
    placement="pack",
    preempts=True,
    preemption=PreemptionRules(enabled=True, min_run_seconds=0.0, moves=True),
    ordering=OrderingRules(ageing=0.001),
)
#: below GPU-time: large jobs wait less
SIZE_POWER = 0.85
#: without predictions: a short assumed run time, and from the third end on the distribution of all runs so far
UNKNOWN = Rules(
    policy="shortest",
    placement="pack",
    preempts=True,
    preemption=PreemptionRules(enabled=True, min_run_seconds=600.0, moves=True),
    ordering=OrderingRules(ageing=0.001, unknown_seconds=600.0),
)
CASES: dict[str, tuple[TimeLimits, tuple[Rules, ...]]] = {
    "backfill": (
        TimeLimits.KNOWN,
        (
            Rules(policy="fcfs", blocking=Blocking.STRICT),
            Rules(policy="fcfs"),
            Rules(policy="weighted"),
            Rules(policy="shortest"),
            Rules(policy="shortest", ordering=KNOWN.ordering),
        ),
    ),
    "known": (
        TimeLimits.KNOWN,
        (
            KNOWN,
            replace(KNOWN, preemption_cost=COST_SECONDS),
            replace(KNOWN, preemption=replace(KNOWN.preemption, moves=False)),
            replace(KNOWN, ordering=replace(KNOWN.ordering, size_power=SIZE_POWER)),
            replace(KNOWN, ordering=replace(KNOWN.ordering, size_power=SIZE_POWER), preemption_cost=COST_SECONDS),
        ),
    ),
    "unknown": (
        TimeLimits.NONE,
        (
            Rules(policy="fcfs"),
            UNKNOWN,
            replace(UNKNOWN, preemption_cost=COST_SECONDS),
        ),
    ),
}
TITLES = {
    "backfill": "run times known, no preemption",
    "known": "run times known, the order preempts",
    "unknown": "run times unknown, learned in the run",
}


def workload(path: Path, limits: TimeLimits) -> Workload:
    jobs = in_order(philly.read(path, left_out := Counter()))
    return Workload(philly.fleet(path), jobs, left_out, time_limits=limits)


def row(case: str, trace: str, rules: Rules, outcome: Outcome, seconds: float) -> Row:
    mean = outcome.completions.mean
    target, ratio = "", ""
    if published := PUBLISHED.get(trace):
        ratio = (
            f"{mean / published.srsf:.3f} × SRSF, {mean / published.tiresias:.2f} × Tiresias, "
            f"{mean / published.themis:.2f} × Themis (published), {mean / published.bound:.2f} × the bound"
        )
        if rules.preempts and case == "known":
            target = f"≤ {published.srsf:,.0f} s (SRSF)"
        elif rules.preempts:
            target = f"< {published.tiresias:,.0f} s (Tiresias), {published.themis:,.0f} s (Themis)"
    return Row(
        what=f"{trace}, {_named(rules)}",
        value=f"{mean:,.0f} s",
        spread=(
            f"p99 {outcome.completions.percentile(99):,.0f} s, {outcome.utilization:.1%} used, makespan "
            f"{outcome.makespan_seconds:,.0f} s, {outcome.preemptions:,} preemptions, {outcome.moves:,} moves; "
            f"{seconds:.1f} s a run"
        ),
        target=target,
        ratio=ratio,
    )


def _named(rules: Rules) -> str:
    parts = [rules.policy, f"{rules.blocking}", rules.placement]
    if rules.policy == "shortest":
        parts.append(f"ageing {rules.ordering.ageing:g}, size power {rules.ordering.size_power:g}")
    if rules.preempts:
        parts.append(f"preempts {'and moves ' if rules.preemption.moves else ''}at {rules.preemption_cost:g} s")
    return ", ".join(parts)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.completion", description=__doc__)
    parser.add_argument("traces", nargs="*", metavar="TRACE", help="which traces; all of them, if none is named")
    parser.add_argument("--case", choices=sorted(CASES), help="only this one")
    options = parser.parse_args(arguments)
    folder = os.environ.get("CORRAL_TRACES")
    if not folder:
        print("completion: set CORRAL_TRACES to the directory that has the traces in philly-64/; skipped")
        return
    traces = Path(folder) / "philly-64"
    for case, (limits, runs) in CASES.items():
        if options.case not in (None, case):
            continue
        rows = []
        for trace in options.traces or sorted(path.stem for path in traces.glob("*.csv")):
            work = workload(traces / f"{trace}.csv", limits)
            for rules in runs:
                begun = time.process_time()
                outcome = replay(work, rules)
                rows.append(row(case, trace, rules, outcome, time.process_time() - begun))
        print_table(f"Average completion time, Philly traces, 8 nodes with 8 GPUs: {TITLES[case]}", rows)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
