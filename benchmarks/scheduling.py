"""How fast the core decides, in process: placements a second, a cycle after one job ended, a cycle in which nothing
changed, and the answer to why a job waits.

Each as time that passed, and as time of the processor: the latter is what the code costs, whatever else runs on the
machine. The peer is the plain way to do the same: look at every node for every job, in order. It is run on the small
fleet only.
"""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from benchmarks.tables import Row, median, percentile, print_table, spread
from corral.core.model import DEFAULT_POOL, Gpu, Job, JobState, Node, Prediction, Queue, Request
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.explain.reasons import explain
from corral.core.scheduling.plan.plan import Plan
from corral.core.snapshot.changes import Change, DropJob, PutJob, PutMix, PutNode, PutQueue, PutRules
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import BackfillRules, Limits
from corral.core.snapshot.request_mix import kind_of, mix_of

NOW = 1_000_000.0
RUNS = 3
#: as a server has it: starts of each line that nothing which passes may delay
PROTECTED = 4
#: ends of jobs, and questions why, in each run
STEPS = 50


def fleet_and_jobs(
    nodes: int, jobs: int, seed: int, placement: str = "fragmentation", policy: str = "fair-share"
) -> list[Change]:
    rng = random.Random(seed)
    # Of its own, so that the orders have the same jobs before them.
    predictions = random.Random(seed)
    changes: list[Change] = [PutQueue(queue=Queue(name="default", placement=placement, policy=policy))]
    for n in range(nodes):
        gpus = tuple(Gpu(id=f"gpu-{n}-{k}", index=k, model="A100-80G") for k in range(8))
        changes.append(PutNode(node=Node(id=f"node-{n}", cpu_milli=128_000, memory_bytes=2**40, gpus=gpus)))
    for j in range(jobs):
        is_gang = rng.random() < 0.02
        gpus_each = 8 if is_gang else rng.choice([1, 1, 1, 2, 4, 8])
        request = Request(
            nodes=rng.choice([2, 4]) if is_gang else 1,
            gpus=gpus_each,
            cpu_milli=gpus_each * 4000,
            memory_bytes=gpus_each * 2**33,
        )
        changes.append(
            PutJob(
                job=Job(
                    id=f"j-{j}",
                    name=f"job-{j}",
                    user=f"user{rng.randrange(100)}",
                    state=JobState.QUEUED,
                    request=request,
                    created_at=float(j),
                    queued_at=float(j),
                    time_limit_seconds=rng.choice([600.0, 3600.0, 86400.0]),
                    predicted=_predicted(predictions),
                )
            )
        )
    asked = Counter(kind_of(change.job.request) for change in changes if isinstance(change, PutJob))
    changes.append(PutMix(pool=DEFAULT_POOL, mix=mix_of(asked.items())))
    return changes


def _predicted(rng: random.Random) -> Prediction | None:
    """Of most jobs something is known: minutes, hours or days."""
    if rng.random() < 0.2:
        return None
    seconds = rng.lognormvariate(7.5, 1.5)
    return Prediction(p50_seconds=seconds, p90_seconds=3 * seconds, samples=rng.randrange(1, 33))


def started(snapshot: ClusterSnapshot, plan: Plan) -> list[Change]:
    return [
        PutJob(
            job=replace(
                snapshot.jobs[start.job_id],
                state=JobState.RUNNING,
                allocation=start.allocation,
                allocated_at=NOW,
                started_at=NOW,
                attempt=1,
            )
        )
        for start in plan.starts
    ]


def plain_first_fit(changes: list[Change], most: int = 2000) -> float:
    """Placements a second when every job looks at every node; the first ones suffice to tell."""
    free = {change.node.id: 8 for change in changes if isinstance(change, PutNode)}
    placed = 0
    begun = time.perf_counter()
    for change in changes:
        if isinstance(change, PutJob):
            request = change.job.request
            fitting = [node for node, gpus in free.items() if gpus >= request.gpus]
            if len(fitting) >= request.nodes:
                for node in sorted(fitting, key=lambda node: free[node])[: request.nodes]:
                    free[node] -= request.gpus
                placed += 1
                if placed == most:
                    break
    return placed / (time.perf_counter() - begun)


@dataclass(frozen=True, slots=True)
class Timed:
    """Milliseconds of a kind of step: as they passed, and of the processor."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    @contextmanager
    def step(self) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.cpu.append((time.process_time() - cpu) * 1000)
        self.wall.append((time.perf_counter() - wall) * 1000)

    def row(self, what: str, target: str) -> Row:
        wall, cpu = percentile(self.wall, 99), percentile(self.cpu, 99)
        return Row(
            what=what,
            value=f"{median(self.wall):.2f} ms",
            spread=f"p99 {wall:.2f} ms; processor {median(self.cpu):.2f} ms, p99 {cpu:.2f} ms",
            target=target,
        )


@dataclass(frozen=True, slots=True)
class Measured:
    rates: list[float] = field(default_factory=list)
    after_end: Timed = field(default_factory=Timed)
    unchanged: Timed = field(default_factory=Timed)
    why: Timed = field(default_factory=Timed)


def measure(nodes: int, jobs: int, placement: str, policy: str, protected: int = 1) -> Measured:
    found = Measured()
    rules = PutRules(limits=Limits(), score_time_constant=21_600.0, backfill=BackfillRules(protected=protected))
    for seed in range(RUNS):
        snapshot = ClusterSnapshot([*fleet_and_jobs(nodes, jobs, seed, placement, policy), rules])
        _ = snapshot.fleet  # built once when a server starts
        begun = time.perf_counter()
        plan = schedule(snapshot, NOW)
        found.rates.append(len(plan.starts) / (time.perf_counter() - begun))
        snapshot.apply(started(snapshot, plan))
        schedule(snapshot, NOW + 1)  # the burst is over: what follows is the steady state
        running = [start.job_id for start in plan.starts]
        random.Random(seed).shuffle(running)
        for job_id in running[:STEPS]:
            snapshot.apply([DropJob(id=job_id)])
            with found.after_end.step():
                plan = schedule(snapshot, NOW + 1)
            snapshot.apply(started(snapshot, plan))
            with found.unchanged.step():
                plan = schedule(snapshot, NOW + 1)
        waiting = [job for job in snapshot.jobs.values() if job.state is JobState.QUEUED]
        for job in random.Random(seed).sample(waiting, STEPS):
            with found.why.step():
                explain(snapshot, plan, job, NOW + 1)
    return found


def main() -> None:
    rows = []
    sizes = ((1213, 10_000, 5000), (5000, 50_000, 3750))
    policies = ("fair-share", "shortest", "weighted")
    kinds = (*(("fragmentation", policy) for policy in policies), ("pack", "fair-share"))
    for (nodes, jobs, target), (placement, policy) in itertools.product(sizes, kinds):
        peer = plain_first_fit(fleet_and_jobs(nodes, jobs, 0))
        found = measure(nodes, jobs, placement, policy)
        rates = found.rates
        size = f"{nodes:,} nodes, {jobs:,} queued, {placement}, {policy}"
        rows += [
            Row(
                what=f"placements a second, {size}",
                value=f"{median(rates):,.0f}/s",
                spread=spread(rates, "/s", 0),
                target=f"≥ {target:,}/s",
                ratio=f"{median(rates) / target:.1f} × the target, {median(rates) / peer:.1f} × plain first fit",
            ),
            found.after_end.row(f"cycle after one job ended, {size}", "< 5 ms p99"),
            found.unchanged.row(f"whole schedule() again, nothing changed, {size}", "< 1 ms"),
            found.why.row(f"why a job waits, {size}", "< 50 ms"),
        ]
    many = measure(5000, 50_000, "fragmentation", "fair-share", PROTECTED)
    size = f"5,000 nodes, 50,000 queued, fragmentation, fair-share, {PROTECTED} protected starts"
    rows.append(many.after_end.row(f"cycle after one job ended, {size}", "< 5 ms p99"))
    print_table("Scheduling in process", rows)


if __name__ == "__main__":
    main()
