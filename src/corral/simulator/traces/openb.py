"""The openb traces (Alibaba cluster-trace-gpu-v2023): a fleet, and pods that arrive one by one and never leave.

Reads the node list and the pod lists as they are published, and draws the sequences of arrivals of the packing
experiment of "Beware of Fragmentation" (USENIX ATC'23).
"""

from __future__ import annotations

from collections.abc import Iterator, MutableSequence, Sequence
from pathlib import Path
from typing import Protocol

from corral.core.model import WHOLE, Gpu, Node, Request
from corral.simulator.traces.job import LeftOut, Row, TraceJob, rows

MIB = 2**20
_PODS = "openb_pod_list_"
_NODES = "openb_node_list_gpu_node.csv"
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
#: the shortest lists have no times: they can be used for packing only
TIME_COLUMNS = ("creation_time", "deletion_time")


class Draw(Protocol):
    """The caller passes the random generator, such as `random.Random(seed)`."""

    def shuffle(self, x: MutableSequence[Request]) -> None: ...

    def randrange(self, start: int) -> int: ...

    def choice(self, seq: Sequence[Request]) -> Request: ...


def trace_names(folder: Path) -> list[str]:
    """The pod lists that a folder holds."""
    names = {path.name.removeprefix(_PODS).partition(".")[0] for path in folder.glob(f"{_PODS}*.csv*")}
    return sorted(names)


def read_nodes(folder: Path) -> list[Node]:
    return read_node_list(folder / _NODES)


def read_node_list(path: Path) -> list[Node]:
    return [_node(row) for row in rows(path, NODE_COLUMNS)]


def read_pods(folder: Path, trace: str) -> list[Request]:
    """The requests of the pods of a trace, in the order of their names."""
    path = folder / f"{_PODS}{trace}.csv"
    if not path.exists():
        path = path.with_name(path.name + ".gz")
    pods = [(row.text("name"), _request(row)) for row in rows(path, POD_COLUMNS)]
    return [request for _, request in sorted(pods, key=lambda pod: pod[0])]


def matches(head: str) -> bool:
    return set(POD_COLUMNS) <= set(head.partition("\n")[0].strip().split(","))


def read(path: Path, left_out: LeftOut) -> Iterator[TraceJob]:
    """The pods as jobs that arrive and end as in the trace."""
    for row in rows(path, (*POD_COLUMNS, *TIME_COLUMNS)):
        request = _request(row)
        created, deleted = row.number("creation_time"), row.number("deletion_time")
        # A pod that waited ran from its scheduled time on; a pod that was never scheduled has no such time.
        begun = row.number("scheduled_time", created)
        if deleted < begun:
            left_out["it was deleted before it was scheduled"] += 1
            continue
        yield TraceJob(
            name=row.text("name"),
            submitted_at=created,
            run_seconds=deleted - begun,
            gpus=request.gpus,
            gpu_milli=request.gpu_milli,
            nodes=1,
            cpu_milli=request.cpu_milli,
            memory_bytes=request.memory_bytes,
            models=request.models,
        )


def fleet(path: Path) -> list[Node]:
    """The node list that is published with the pod lists."""
    return read_node_list(path.parent / _NODES)


def arrivals(pods: Sequence[Request], capacity_milli: int, draw: Draw, tune: float = 1.3) -> list[Request]:
    """The pods in random order, then further draws of them, up to `tune` times the GPUs of the fleet."""
    drawn = list(pods)
    draw.shuffle(drawn)
    asked = sum(request.total_gpu_milli for request in drawn)
    most = tune * capacity_milli
    while asked > most:
        place = draw.randrange(len(drawn))
        asked -= drawn[place].total_gpu_milli
        drawn[place] = drawn[-1]
        drawn.pop()
    while True:
        request = draw.choice(pods)
        asked += request.total_gpu_milli
        if asked > most:
            return drawn
        drawn.append(request)


def _node(row: Row) -> Node:
    name, model = row.text("sn"), row.text("model", "")
    gpus = tuple(Gpu(id=f"{name}/{index}", index=index, model=model) for index in range(row.count("gpu")))
    return Node(id=name, cpu_milli=row.count("cpu_milli"), memory_bytes=row.count("memory_mib") * MIB, gpus=gpus)


def _request(row: Row) -> Request:
    gpus, share = row.count("num_gpu"), row.count("gpu_milli")
    is_share = gpus == 1 and share < WHOLE
    return Request(
        gpus=0 if is_share else gpus,
        gpu_milli=share if is_share else 0,
        cpu_milli=row.count("cpu_milli"),
        memory_bytes=row.count("memory_mib") * MIB,
        # The shortest lists have no column for models.
        models=tuple(sorted(filter(None, row.text("gpu_spec", "").split("|")))) if gpus else (),
    )
