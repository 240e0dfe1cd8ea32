"""Packing while pods arrive and end: a week of the openb mix on a twentieth of its fleet.

Pods of a trace are drawn with their requests and run times (from half an hour to two days), at a load of 120 %; of the
requests for eight GPUs a third are gangs of two nodes. A pod that fits nowhere is refused, and does not wait. The first
two days fill the fleet, then a week counts. More is asked for than the fleet has at any time: GPUs that are idle
all the same are lost to fragmentation. The same pods go through the placement that the live scheduler uses, with a mix
that it learns on the way, and through first fit, best fit and FGD as plain simulations. FGD knows the mix beforehand.

With `--waiting` the same pods are jobs of twenty users that wait in the default queue, at a load of 100 % for three
days, of which the first fills the fleet: the whole scheduler by placement policy.

    CORRAL_TRACES=DIR python -m benchmarks.departures [--seeds N] [--trace NAME] [--waiting]
"""

from __future__ import annotations

import argparse
import heapq
import os
import random
import statistics
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, Protocol

from benchmarks.tables import Row, print_table, spread
from corral.core.model import DEFAULT_POOL, WHOLE, Job, Node, Request
from corral.core.scheduling.placement.search import find_place
from corral.core.snapshot.node_index import Fleet
from corral.core.snapshot.request_mix import MixCounter, kind_of
from corral.simulator.outcome import Held, Ran
from corral.simulator.replay import Rules, replay
from corral.simulator.traces import openb
from corral.simulator.traces.job import TraceJob
from corral.simulator.workload import TimeLimits, Workload

FIRST_SEED = 42
HOUR = 3600.0
DAY = 24 * HOUR
FILLING, COUNTED = 2 * DAY, 7 * DAY
LOAD = 1.2
SHORTEST, LONGEST = 0.5 * HOUR, 2 * DAY
#: every so many nodes of the trace are used
NODES_EVERY = 20
GANG_PART, GANG_NODES = 1 / 3, 2
SIZES = ("1 GPU or less", "2 to 4", "8", "gangs")
#: with pods that wait: the load, from when to when GPUs are counted, and how many users there are
WAITING_LOAD, WAITING_DAYS, WAITING_USERS = 1.0, (DAY, 3 * DAY), 20
#: how much of the mix FGD knows, by its most frequent kinds
FGD_KINDS = 80


class Pod(NamedTuple):
    at: float
    request: Request
    run_seconds: float


class Placement(Protocol):
    """A fleet with a rule for placing pods."""

    def place(self, request: Request) -> Callable[[], None] | None:
        """Place the pod, if there is room; returns what releases it again."""


# ---------------------------------------------------------------- what arrives


def drawn_pods(
    known: Sequence[tuple[Request, float]],
    gpu_milli: int,
    draw: random.Random,
    *,
    load: float = LOAD,
    until: float = FILLING + COUNTED,
) -> Iterator[Pod]:
    """Pods of a trace at random, with the load and for as long as said above."""
    mean = statistics.fmean(request.total_gpu_milli * seconds for request, seconds in known)
    at = 0.0
    while True:
        at += draw.expovariate(load * gpu_milli / mean)
        if at > until:
            return
        request, seconds = draw.choice(known)
        if request.gpus == 8 and draw.random() < GANG_PART:
            request = replace(request, nodes=GANG_NODES)
        yield Pod(at, request, seconds)


def known_pods(folder: Path, trace: str) -> list[tuple[Request, float]]:
    path = next(folder.glob(f"openb_pod_list_{trace}.csv*"))
    left_out: Counter[str] = Counter()
    return [
        (
            Request(
                gpus=job.gpus,
                gpu_milli=job.gpu_milli,
                cpu_milli=job.cpu_milli,
                memory_bytes=job.memory_bytes,
                models=job.models,
            ),
            min(job.run_seconds, LONGEST),
        )
        for job in openb.read(path, left_out)
        if job.run_seconds >= SHORTEST
    ]


# ---------------------------------------------------------------- plain rules


class PlainNode:
    """The free resources of one node."""

    __slots__ = ("cpu_milli", "free", "known", "memory_bytes", "model")

    def __init__(self, node: Node) -> None:
        self.model = node.gpus[0].model if node.gpus else ""
        self.free = [WHOLE] * len(node.gpus)
        self.cpu_milli = node.cpu_milli
        self.memory_bytes = node.memory_bytes
        #: of FGD, by request, until the node changes
        self.known: dict[Request, tuple[float, tuple[int, ...]]] = {}

    def places(self, request: Request) -> Iterator[tuple[int, ...]]:
        """The GPUs that one instance could get; of equal choices only one."""
        if request.cpu_milli > self.cpu_milli or request.memory_bytes > self.memory_bytes:
            return
        if request.models and self.model not in request.models:
            return
        if request.gpu_milli:
            seen = set[int]()
            for gpu, left in enumerate(self.free):
                if left >= request.gpu_milli and left not in seen:
                    seen.add(left)
                    yield (gpu,)
            return
        whole = [gpu for gpu, left in enumerate(self.free) if left == WHOLE]
        if len(whole) >= request.gpus:
            yield tuple(whole[: request.gpus])

    def shift(self, request: Request, gpus: Sequence[int], sign: int) -> None:
        for gpu in gpus:
            self.free[gpu] += sign * (request.gpu_milli or WHOLE)
        self.cpu_milli += sign * request.cpu_milli
        self.memory_bytes += sign * request.memory_bytes
        self.known.clear()


#: the cost of a place on a node, the least is taken; the first node of equal ones
Cost = Callable[[PlainNode, Request, tuple[int, ...]], float]


class Plain:
    """A plain rule: each instance goes to the place of the least cost, on another node than the ones before."""

    def __init__(self, nodes: Sequence[Node], cost: Cost) -> None:
        self._nodes = [PlainNode(node) for node in sorted(nodes, key=lambda node: node.id)]
        self._cost = cost

    def place(self, request: Request) -> Callable[[], None] | None:
        taken: list[tuple[PlainNode, tuple[int, ...]]] = []
        for _ in range(request.nodes):
            used = [node for node, _ in taken]
            found = [(best, node) for node in self._nodes if node not in used and (best := self._best(node, request))]
            if not found:
                break
            (_, gpus), node = min(found, key=lambda item: item[0][0])
            node.shift(request, gpus, -1)
            taken.append((node, gpus))

        def release() -> None:
            for node, gpus in taken:
                node.shift(request, gpus, 1)

        if len(taken) == request.nodes:
            return release
        release()
        return None

    def _best(self, node: PlainNode, request: Request) -> tuple[float, tuple[int, ...]] | None:
        known = node.known.get(request)
        if known is None:
            costs = ((self._cost(node, request, gpus), gpus) for gpus in node.places(request))
            known = node.known[request] = min(costs, default=(float("inf"), ()))
        return None if known[0] == float("inf") else known


def first_fit(node: PlainNode, request: Request, gpus: tuple[int, ...]) -> float:
    return 0.0


def best_fit(node: PlainNode, request: Request, gpus: tuple[int, ...]) -> float:
    """The node with the least left, of GPUs, then of CPUs; of its GPUs the fullest."""
    return sum(node.free) + sum(node.free[gpu] for gpu in gpus) / 100 + node.cpu_milli / 1e9


class Fgd:
    """Fragmentation gradient descent (Weng et al., ATC'23): the place where the GPUs that the mix cannot use grow
    least."""

    def __init__(self, pods: Sequence[Request]) -> None:
        counts = Counter(kind_of(pod) for pod in pods).most_common(FGD_KINDS)
        total = sum(count for _, count in counts)
        self._kinds = [(kind, count / total) for kind, count in counts]

    def __call__(self, node: PlainNode, request: Request, gpus: tuple[int, ...]) -> float:
        free = list(node.free)
        before = self.fragments(node.model, free, node.cpu_milli, node.memory_bytes)
        for gpu in gpus:
            free[gpu] -= request.gpu_milli or WHOLE
        cpu_milli, memory_bytes = node.cpu_milli - request.cpu_milli, node.memory_bytes - request.memory_bytes
        return self.fragments(node.model, free, cpu_milli, memory_bytes) - before

    def fragments(self, model: str, free: Sequence[int], cpu_milli: int, memory_bytes: int) -> float:
        """The idle GPU that a pod of the mix cannot use, on average."""
        ordered = sorted(free)
        below = [0, *accumulate(ordered)]
        idle, whole = below[-1], len(ordered) - bisect_left(ordered, WHOLE)
        largest = ordered[-1] if ordered else 0
        total = 0.0
        for kind, part in self._kinds:
            is_too_large = kind.gpu_milli > largest if kind.gpu_milli else kind.gpus > whole or not kind.gpus
            if (
                is_too_large
                or kind.cpu_milli > cpu_milli
                or kind.memory_bytes > memory_bytes
                or (kind.models and model not in kind.models)
            ):
                total += part * idle
            else:
                total += part * below[bisect_left(ordered, kind.gpu_milli or WHOLE)]
        return total


class Live:
    """The placement of the live scheduler, with a mix that is learned from what arrives."""

    def __init__(self, nodes: Sequence[Node], placement: str) -> None:
        self._fleet = Fleet(nodes)
        self._placement = placement
        self._counter = MixCounter()

    def place(self, request: Request) -> Callable[[], None] | None:
        mix = self._counter.count(request)
        if mix is not None:
            self._fleet.put_mix(DEFAULT_POOL, mix)
        job = Job(id="j-1", name="pod", user="trace", request=request)
        allocation = find_place(self._fleet, job, DEFAULT_POOL, self._placement)
        if allocation is None:
            return None
        self._fleet.take(allocation)

        def release() -> None:
            self._fleet.give_back(allocation)
            self._counter.count_ended(request)

        return release


# ---------------------------------------------------------------- one week


@dataclass(frozen=True, kw_only=True, slots=True)
class Week:
    """What became of the counted week."""

    gpu_hours: float
    #: that no pod held
    idle_gpu_hours: float
    #: by size: the part of the GPU-hours asked for that was placed
    placed: dict[str, float]
    seconds: float


def run(nodes: Sequence[Node], pods: Sequence[Pod], placement: Placement) -> Week:
    begun = time.process_time()
    capacity = sum(len(node.gpus) for node in nodes) * WHOLE
    asked, placed = defaultdict[str, float](float), defaultdict[str, float](float)
    ends: list[tuple[float, int, Callable[[], None], int]] = []
    held, allocated, last = 0, 0.0, FILLING
    for number, pod in enumerate(pods):
        while ends and ends[0][0] <= pod.at:
            at, _, release, milli = heapq.heappop(ends)
            last, allocated = _until(at, last, allocated, held)
            release()
            held -= milli
        last, allocated = _until(pod.at, last, allocated, held)
        released = placement.place(pod.request)
        milli, size = pod.request.total_gpu_milli, _size(pod.request)
        asked[size] += milli * pod.run_seconds if pod.at >= FILLING else 0.0
        if released is not None:
            held += milli
            placed[size] += milli * pod.run_seconds if pod.at >= FILLING else 0.0
            heapq.heappush(ends, (pod.at + pod.run_seconds, number, released, milli))
    while ends:
        at, _, _, milli = heapq.heappop(ends)
        last, allocated = _until(at, last, allocated, held)
        held -= milli
    return Week(
        gpu_hours=capacity * COUNTED / WHOLE / HOUR,
        idle_gpu_hours=(capacity * COUNTED - allocated) / WHOLE / HOUR,
        placed={size: placed[size] / asked[size] for size in SIZES if asked[size]},
        seconds=time.process_time() - begun,
    )


def _size(request: Request) -> str:
    if request.nodes > 1:
        return "gangs"
    return "1 GPU or less" if request.total_gpu_milli <= WHOLE else "2 to 4" if request.gpus <= 4 else "8"


def _until(at: float, last: float, allocated: float, held: int) -> tuple[float, float]:
    at = min(at, FILLING + COUNTED)
    return (at, allocated + held * (at - last)) if at > last else (last, allocated)


# ---------------------------------------------------------------- pods that wait


def print_waiting(nodes: Sequence[Node], known: Sequence[tuple[Request, float]], seeds: Sequence[int]) -> None:
    gpus = sum(len(node.gpus) for node in nodes)
    rows = []
    for placement in ("fragmentation", "pack"):
        used, waits = list[float](), defaultdict[str, list[float]](list)
        for seed in seeds:
            pods = drawn_pods(known, gpus * WHOLE, random.Random(seed), load=WAITING_LOAD, until=WAITING_DAYS[1])
            used.append(_waiting(nodes, list(pods), seed, placement, waits))
            print(f"departures: seed {seed}, {placement}: {used[-1]:.2%} of the GPUs in use", flush=True)
        rows.append(
            Row(
                what=f"corral, {placement}: GPUs in use",
                value=f"{statistics.fmean(used):.2%}",
                spread=spread([100 * part for part in used], "%", 2),
                ratio="mean wait: "
                + ", ".join(f"{size} {statistics.fmean(waits[size]):,.0f} s" for size in SIZES if waits[size]),
            )
        )
    print_table(f"Arrivals and ends where pods wait, {len(nodes)} nodes, {gpus} GPUs", rows)


def _waiting(
    nodes: Sequence[Node], pods: Sequence[Pod], seed: int, placement: str, waits: dict[str, list[float]]
) -> float:
    """Replay these pods as jobs. Adds their waits by size; returns the part of the GPUs that was in use."""
    draw = random.Random(seed)
    jobs = [
        TraceJob(
            name=f"pod-{number}",
            user=f"user-{draw.randrange(WAITING_USERS)}",
            submitted_at=pod.at,
            run_seconds=pod.run_seconds,
            gpus=pod.request.gpus * pod.request.nodes,
            gpu_milli=pod.request.gpu_milli,
            nodes=pod.request.nodes,
            cpu_milli=pod.request.cpu_milli * pod.request.nodes,
            memory_bytes=pod.request.memory_bytes * pod.request.nodes,
            models=pod.request.models,
        )
        for number, pod in enumerate(pods)
    ]
    held = 0.0
    since, until = WAITING_DAYS

    def note(event: Held | Ran) -> None:
        nonlocal held
        milli = event.job.request.total_gpu_milli
        if isinstance(event, Held):
            held += milli * max(0.0, min(event.until, until) - max(event.since, since))
        else:
            waits[_size(event.job.request)].append(event.wait_seconds)

    replay(Workload(nodes, jobs, Counter(), time_limits=TimeLimits.NONE), Rules(placement=placement), on_detail=note)
    return held / (sum(len(node.gpus) for node in nodes) * WHOLE * (until - since))


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.departures", description=__doc__)
    parser.add_argument("--trace", default="default", help="the pod list (default)")
    parser.add_argument("--seeds", type=int, default=1, help="how many, from 42 on (1)")
    parser.add_argument("--waiting", action="store_true", help="pods wait for room, in the default queue")
    options = parser.parse_args(arguments)
    folder = os.environ.get("CORRAL_TRACES")
    if not folder:
        print("departures: set CORRAL_TRACES to the directory that has the traces in openb/; skipped")
        return
    traces = Path(folder) / "openb"
    nodes = sorted(openb.read_nodes(traces), key=lambda node: node.id)[::NODES_EVERY]
    known = known_pods(traces, options.trace)
    gpu_milli = sum(len(node.gpus) for node in nodes) * WHOLE
    seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
    if options.waiting:
        print_waiting(nodes, known, seeds)
        return
    rules: dict[str, Callable[[], Placement]] = {
        "first fit": lambda: Plain(nodes, first_fit),
        "best fit": lambda: Plain(nodes, best_fit),
        "FGD": lambda: Plain(nodes, Fgd([request for request, _ in known])),
        "corral, pack": lambda: Live(nodes, "pack"),
        "corral, fragmentation (default)": lambda: Live(nodes, "fragmentation"),
    }
    found: dict[str, list[Week]] = {name: [] for name in rules}
    for seed in seeds:
        pods = list(drawn_pods(known, gpu_milli, random.Random(seed)))
        for name, made in rules.items():
            found[name].append(run(nodes, pods, made()))
            print(f"departures: seed {seed}, {len(pods):,} pods, {name}: {found[name][-1]}", flush=True)
    fgd = statistics.fmean(week.idle_gpu_hours for week in found["FGD"])
    title = f"A week of arrivals and ends, openb {options.trace}, {len(nodes)} nodes, {gpu_milli // WHOLE} GPUs"
    print_table(title, [_row(name, weeks, fgd) for name, weeks in found.items()])


def _row(name: str, weeks: Sequence[Week], fgd: float) -> Row:
    idle = statistics.fmean(week.idle_gpu_hours for week in weeks)
    parts = (f"{size} {statistics.fmean(week.placed[size] for week in weeks):.0%}" for size in weeks[0].placed)
    return Row(
        what=f"{name}: GPU-hours lost to fragmentation",
        value=f"{idle:,.0f} of {weeks[0].gpu_hours:,.0f}",
        spread=f"{spread([week.idle_gpu_hours for week in weeks], 'h', 0)}; "
        f"{max(week.seconds for week in weeks):.0f} s a run",
        target="≤ FGD, best fit, first fit" if "default" in name else "",
        ratio=f"{idle / fgd:.2f} × FGD; placed: {', '.join(parts)}" if fgd else "",
    )


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
