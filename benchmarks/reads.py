"""What the requests of the console's pages cost with a large fleet and many jobs: every GPU of one model is held, many
jobs wait for it, and many more have ended.

For each request: processor time of the server (the median, which what the server does in the background does not move),
latency, and the size of the answer; and of the server at rest: processor time and memory. On a quiet machine latency is
processor time and little more. `CORRAL_BENCH_READS` sets the size as NODESxGPUS,QUEUED,FINISHED.
"""

from __future__ import annotations

import os
import pickle
import random
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.live import LiveServer, live_server
from benchmarks.still_server import FLEET, Still
from benchmarks.tables import Row, percentile, print_table
from corral.control.records import AttemptRecord, FlavorRecord, JobRecord, JobSpec, PackageRecord
from corral.core.model import Allocation, EndReason, Gpu, Grant, Job, JobKind, JobState, Node, Request
from corral.stores import open_store

SIZE = os.environ.get("CORRAL_BENCH_READS", "2500x8,20000,50000")
REST_SECONDS = 20.0
#: Requests of each kind: so many, or as many as fit into this time, at least MIN_RUNS.
RUNS, MIN_RUNS, MEASURED_SECONDS = 100, 5, 4.0
TARGET_MS = 50.0
METRICS_TARGET_MS = 300.0
USERS = 200
MODELS = ("A100-80G", "H100")
#: One node in so many has the model that nobody waits for, and is free.
FREE_EACH = 10
BATCH = 5000

#: Requests of the console's pages, by page.
ROUTES = (
    "/overview",
    "/gpus/map",
    "/panel",
    "/panel?user=user1",
    "/clusters",
    "/nodes?limit=50",
    "/nodes?limit=500",
    "/nodes/{node}",
    "/gpus?limit=100",
    "/gpus/{gpu}",
    "/pools",
    "/pools/default",
    "/flavors",
    "/packages?kind=training",
    "/queues",
    "/queues/default/order",
    "/scores",
    "/jobs?limit=50",
    "/jobs?limit=50&state=queued",
    "/jobs?limit=50&state=running&sort=name",
    "/jobs?limit=50&user=user1",
    "/jobs?limit=50&q=train-77",
    "/jobs:counts",
    "/jobs:counts?user=user1",
    "/jobs/{running}",
    "/jobs/{queued}/why",
    "/workbenches",
    "/alerts",
    "/events?limit=50",
    "/search?q=train",
    "/trends",
    "/analysis",
    "/about",
    "/parts",
    "/readyz",
    "/me",
    "/metrics",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    nodes: int
    gpus: int
    queued: int
    finished: int


def size_of(text: str) -> Size:
    fleet, queued, finished = text.split(",")
    nodes, gpus = fleet.split("x")
    return Size(nodes=int(nodes), gpus=int(gpus), queued=int(queued), finished=int(finished))


def nodes_of(size: Size) -> tuple[Node, ...]:
    def node(number: int) -> Node:
        model = MODELS[number % FREE_EACH == 0]
        gpus = [
            Gpu(id=f"GPU-{number:05d}-{place}", index=place, model=model, memory_bytes=80 << 30)
            for place in range(size.gpus)
        ]
        return Node(id=f"gpu-{number:05d}", cpu_milli=128_000, memory_bytes=1 << 40, gpus=tuple(gpus))

    return tuple(node(number) for number in range(size.nodes))


def running_of(nodes: tuple[Node, ...], begun: float, first: int) -> Iterator[Job]:
    """Jobs of several sizes on every GPU of the model that others wait for."""
    rng, number = random.Random(3), first
    for node in nodes:
        if node.gpus[0].model != MODELS[0]:
            continue
        left = [gpu.id for gpu in node.gpus]
        while left:
            count = min(len(left), rng.choice([1, 2, 4, 8]))
            mine, left = tuple(left[:count]), left[count:]
            at = begun + number % 3600
            yield Job(
                id=f"j-{number}",
                name=f"train-{number}",
                user=f"user{number % USERS}",
                state=JobState.RUNNING,
                request=Request(gpus=count, models=(MODELS[0],)),
                created_at=at,
                queued_at=at,
                aged_from=at,
                attempt=1,
                allocation=Allocation(grants=(Grant(node=node.id, gpus=mine),), model=MODELS[0]),
                allocated_at=at,
                started_at=at,
                time_limit_seconds=86_400.0 * 30,
            )
            number += 1


def queued_of(count: int, now: float, first: int) -> Iterator[Job]:
    rng = random.Random(5)
    for number in range(first, first + count):
        at = now - 7200 + 3600 * (number - first) / count
        yield Job(
            id=f"j-{number}",
            name=f"train-{number}",
            user=f"user{number % USERS}",
            kind=rng.choice([JobKind.TRAINING, JobKind.DISTRIBUTED]),
            state=JobState.QUEUED,
            request=Request(gpus=rng.choice([1, 2, 4, 8]), models=(MODELS[0],)),
            created_at=at,
            queued_at=at,
            aged_from=at,
        )


def finished_of(count: int, begun: float) -> Iterator[Job]:
    states = [JobState.COMPLETED] * 8 + [JobState.FAILED, JobState.STOPPED]
    for number in range(1, count + 1):
        at = begun - 86_400 * 20 + number
        yield Job(
            id=f"j-{number}",
            name=f"train-{number}",
            user=f"user{number % USERS}",
            state=states[number % 10],
            request=Request(gpus=1 + number % 8, models=(MODELS[0],)),
            created_at=at,
            started_at=at,
            ended_at=at + 60,
            end_reason=EndReason.EXIT_CODE,
            exit_code=0,
            attempt=1,
        )


def fill(home: Path, size: Size) -> dict[str, str]:
    """A store of that size; returns the names in `ROUTES`."""
    now = time.time()
    begun = now - 7200
    nodes = nodes_of(size)
    store = open_store(f"sqlite:///{home / 'corral.db'}")
    spec = JobSpec(command=("python", "train.py", "--epochs", "10"))
    running = list(running_of(nodes, begun, size.finished + 1))
    first_queued = size.finished + len(running) + 1
    with store.write() as tx:
        tx.fleet.save_nodes(nodes)
        tx.jobs.next_ids(size.finished + len(running) + size.queued)
        tx.catalog.save_flavor(FlavorRecord(name="a100", models=(MODELS[0],)))
        tx.catalog.save_flavor(FlavorRecord(name="h100", models=(MODELS[1],)))
        for flavor in ("a100", "h100"):
            for gpus in (1, 2, 4, 8):
                tx.catalog.save_package(PackageRecord(name=f"{flavor}-{gpus}", gpus=gpus, flavor=flavor))
    for jobs in _batches(finished_of(size.finished, begun)):
        with store.write() as tx:
            tx.jobs.add([JobRecord(job=job, spec=spec) for job in jobs])
    for jobs in _batches(iter(running)):
        with store.write() as tx:
            tx.jobs.add([JobRecord(job=job, spec=spec) for job in jobs])
            tx.attempts.add([_attempt(job) for job in jobs])
    for jobs in _batches(queued_of(size.queued, now, first_queued)):
        with store.write() as tx:
            tx.jobs.add([JobRecord(job=job, spec=spec) for job in jobs])
    store.close()
    still = Still(nodes=nodes, running=tuple(job.attempt_id for job in running), since=begun)
    (home / FLEET).write_bytes(pickle.dumps(still))
    middle = nodes[len(nodes) // 2]
    return {
        "node": middle.id,
        "gpu": middle.gpus[0].id,
        "running": running[len(running) // 2].id,
        "queued": f"j-{first_queued + size.queued // 2}",
    }


def _batches(jobs: Iterator[Job]) -> Iterator[list[Job]]:
    batch: list[Job] = []
    for job in jobs:
        batch.append(job)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _attempt(job: Job) -> AttemptRecord:
    assert job.allocation is not None
    assert job.allocated_at is not None
    return AttemptRecord(
        id=job.attempt_id,
        job_id=job.id,
        number=1,
        allocation=job.allocation,
        planned_at=job.allocated_at,
        started_at=job.started_at,
    )


def measured(server: LiveServer, client: httpx.Client, route: str) -> Row:
    _read_fleet(server)
    client.get(route).raise_for_status()  # the first one may fill caches
    taken: list[float] = []
    used: list[float] = []
    begun = time.perf_counter()
    while len(taken) < RUNS and (len(taken) < MIN_RUNS or time.perf_counter() - begun < MEASURED_SECONDS):
        before, at = cpu_ns(server), time.perf_counter()
        answer = client.get(route).raise_for_status()
        taken.append((time.perf_counter() - at) * 1000)
        used.append((cpu_ns(server) - before) / 1e6)
    target = METRICS_TARGET_MS if route == "/metrics" else TARGET_MS
    cpu, size_kb = percentile(used, 50), len(answer.content) / 1000
    return Row(
        what=route,
        value=f"{cpu:.1f} ms CPU",
        spread=f"p50 {percentile(taken, 50):.0f} ms, p99 {percentile(taken, 99):.0f} ms, {size_kb:.1f} kB",
        target=f"≤ {target:.0f} ms",
        ratio=f"{cpu / target:.2f} ×",
    )


def cpu_ns(server: LiveServer) -> int:
    """Processor time of all threads of the server."""
    threads = Path(f"/proc/{server.process.pid}/task")
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads.iterdir())


def _read_fleet(server: LiveServer) -> None:
    """Every GPU and node gets a fresh reading."""
    assert server.process.stdin is not None
    assert server.process.stdout is not None
    server.process.stdin.write(b"\n")
    server.process.stdin.flush()
    while (line := server.process.stdout.readline()) != b"read\n":
        assert line, "the server has ended"


def at_rest(server: LiveServer) -> list[Row]:
    time.sleep(REST_SECONDS / 2)  # what follows a start is not rest
    before = server.cpu_seconds()
    time.sleep(REST_SECONDS)
    busy = (server.cpu_seconds() - before) / REST_SECONDS
    memory = server.memory_bytes() / 1e9
    return [
        Row(what="server at rest", value=f"{busy:.1%} of a core", target="≤ 10 %", ratio=f"{busy / 0.1:.2f} ×"),
        Row(what="memory", value=f"{memory:.2f} GB", target="≤ 2 GB", ratio=f"{memory / 2:.2f} ×"),
    ]


def main() -> None:
    size = size_of(SIZE)
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as scratch:
        home = Path(scratch)
        names = fill(home, size)
        begun = time.perf_counter()
        with live_server(home=home, virtual_nodes=None, program="benchmarks.still_server", is_piped=True) as server:
            rows = [Row(what="ready after", value=f"{time.perf_counter() - begun:.1f} s", target="≤ 20 s")]
            print("at rest …", flush=True)
            rows += at_rest(server)
            with server.client() as client:
                for route in ROUTES:
                    rows.append(measured(server, client, route.format(**names)))
                    print(rows[-1].what, rows[-1].value, rows[-1].spread, flush=True)
            rows.append(Row(what="memory afterwards", value=f"{server.memory_bytes() / 1e9:.2f} GB", target="≤ 2 GB"))
    title = f"Reads: {size.nodes} nodes × {size.gpus} GPUs, {size.queued:,} queued, {size.finished:,} finished jobs"
    print_table(title, rows)
