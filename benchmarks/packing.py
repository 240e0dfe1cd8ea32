"""How full a cluster gets: the packing experiment of "Beware of Fragmentation" (USENIX ATC'23) on the openb traces,
through the placement that the live scheduler uses.

Pods arrive one by one and never leave; one that fits nowhere fails once. No pod that fits is refused. The mix is known
beforehand, as it is to FGD; `--learn` starts without one and counts arrivals as a server does. Ties go to the state
that comes first (least left on its GPUs, fewest CPUs, least memory), then to the first node by name.

    CORRAL_TRACES=DIR python -m benchmarks.packing [--seeds N] [--learn] [--placement NAME] [TRACE …]
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tables import Row, print_table
from corral.core.model import DEFAULT_POOL, WHOLE, Job, Node, Request
from corral.core.scheduling.placement.search import find_place
from corral.core.snapshot.node_index import Fleet
from corral.core.snapshot.request_mix import MixCounter, kind_of, mix_of
from corral.simulator.traces import openb

FIRST_SEED = 42
#: published allocation in percent, mean of ten seeds: FGD, and the best of the others
PUBLISHED = {
    "cpu050": (95.21, 93.79),
    "cpu100": (95.35, 93.44),
    "cpu250": (93.41, 91.45),
    "default": (95.39, 93.08),
    "gpushare100": (86.90, 85.01),
    "gpushare40": (94.15, 91.69),
    "gpushare80": (89.30, 87.01),
    "gpuspec10": (94.95, 93.30),
    "gpuspec20": (94.84, 93.30),
    "gpuspec33": (94.55, 93.22),
    "multigpu20": (95.65, 93.93),
    "multigpu30": (96.46, 94.87),
    "multigpu50": (97.18, 96.18),
}
TARGETS = {"default": 95.6, "gpushare100": 87.3, "gpuspec33": 95.5, "multigpu50": 97.3}
MOST_SECONDS = 3.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Packed:
    percent: float
    seconds: float
    failed: int


def capacity(nodes: Sequence[Node]) -> int:
    return sum(len(node.gpus) for node in nodes) * WHOLE


def pack(nodes: Sequence[Node], pods: Sequence[Request], seed: int, placement: str, *, learn: bool) -> Packed:
    """One run. The clock is the processor's, whatever else runs on the machine; it covers all but reading and drawing:
    building the fleet, the mix, every decision."""
    sequence = openb.arrivals(pods, capacity(nodes), random.Random(seed))
    jobs = {request: Job(id="j-1", name="pod", user="trace", request=request) for request in set(sequence)}
    begun = time.process_time()
    fleet = Fleet(nodes)
    counter = MixCounter()
    if not learn:
        fleet.put_mix(DEFAULT_POOL, mix_of(Counter(kind_of(pod) for pod in pods if pod.wants_gpu).items()))
    allocated = failed = 0
    for request in sequence:
        if learn and (mix := counter.count(request)) is not None:
            fleet.put_mix(DEFAULT_POOL, mix)
        allocation = find_place(fleet, jobs[request], DEFAULT_POOL, placement)
        if allocation is None:
            failed += 1
        else:
            fleet.take(allocation)
            allocated += request.total_gpu_milli
    seconds = time.process_time() - begun
    return Packed(percent=100 * allocated / capacity(nodes), seconds=seconds, failed=failed)


def row(trace: str, runs: Sequence[Packed]) -> Row:
    ours = statistics.fmean(run.percent for run in runs)
    fgd, other = PUBLISHED.get(trace, (None, None))
    targets = [f"> {fgd} (FGD)"] if fgd else []
    if trace in TARGETS:
        targets.append(f"≥ {TARGETS[trace]}")
    ratio = f"{ours / fgd:.4f} × FGD, {ours / other:.4f} × the best other ({other})" if fgd and other else ""
    low, high = min(run.percent for run in runs), max(run.percent for run in runs)
    slowest = max(run.seconds for run in runs)
    return Row(
        what=f"{trace}: GPUs allocated",
        value=f"{ours:.2f} %",
        spread=f"{low:.2f} … {high:.2f}; at most {slowest:.1f} s a run",
        target=", ".join([*targets, f"< {MOST_SECONDS:.0f} s"]),
        ratio=ratio,
    )


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.packing", description=__doc__)
    parser.add_argument("traces", nargs="*", metavar="TRACE", help="which pod lists; all of them, if none is named")
    parser.add_argument("--seeds", type=int, default=10, help="how many, from 42 on (10)")
    parser.add_argument("--learn", action="store_true", help="begin without a mix and count what arrives")
    parser.add_argument("--placement", default="fragmentation")
    options = parser.parse_args(arguments)
    folder = os.environ.get("CORRAL_TRACES")
    if not folder:
        print("packing: set CORRAL_TRACES to the directory that has the traces in openb/; skipped")
        return
    traces = Path(folder) / "openb"
    nodes = openb.read_nodes(traces)
    rows = []
    for trace in options.traces or openb.trace_names(traces):
        pods = openb.read_pods(traces, trace)
        seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
        rows.append(row(trace, [pack(nodes, pods, seed, options.placement, learn=options.learn) for seed in seeds]))
    print_table(f"Packing, openb, {options.seeds} seeds, placement {options.placement}", rows)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
