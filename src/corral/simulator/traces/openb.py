"""The openb traces (Alibaba cluster-trace-gpu-v2023): a fleet, and pods that arrive one by one and never leave.

Reads the node list and the pod lists as they are published, and draws the sequences of arrivals of the packing
experiment of "Beware of Fragmentation" (USENIX ATC'23).
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, MutableSequence, Sequence
from pathlib import Path
from typing import Protocol

from corral.core.model import WHOLE, Gpu, Node, Request

MIB = 2**20
_PODS = "openb_pod_list_"
_NODES = "openb_node_list_gpu_node.csv"


class UnreadableTrace(Exception):
    """A trace file is missing, or a row of it cannot be understood."""


class Draw(Protocol):
    """Randomness is the caller's: `random.Random(seed)` will do."""

    def shuffle(self, x: MutableSequence[Request]) -> None: ...

    def randrange(self, start: int) -> int: ...

    def choice(self, seq: Sequence[Request]) -> Request: ...


def trace_names(folder: Path) -> list[str]:
    """The pod lists that a folder holds."""
    names = {path.name.removeprefix(_PODS).partition(".")[0] for path in folder.glob(f"{_PODS}*.csv*")}
    return sorted(names)


def read_nodes(folder: Path) -> list[Node]:
    return [_node(row) for row in _rows(folder / _NODES)]


def read_pods(folder: Path, trace: str) -> list[Request]:
    """What the pods of a trace ask for, in the order of their names."""
    path = folder / f"{_PODS}{trace}.csv"
    if not path.exists():
        path = path.with_name(path.name + ".gz")
    pods = [(row.get("name", ""), _request(path, row)) for row in _rows(path)]
    return [request for _, request in sorted(pods, key=lambda pod: pod[0])]


def arrivals(pods: Sequence[Request], capacity_milli: int, draw: Draw, tune: float = 1.3) -> list[Request]:
    """The pods in random order, then further draws of them, up to `tune` times the GPUs that there are."""
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


def _rows(path: Path) -> Iterator[dict[str, str]]:
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            yield from csv.DictReader(file)
    except OSError as error:
        raise UnreadableTrace(f"{path} cannot be read: {error}") from error


def _node(row: dict[str, str]) -> Node:
    name, model = row["sn"], row["model"]
    gpus = tuple(Gpu(id=f"{name}/{index}", index=index, model=model) for index in range(int(row["gpu"])))
    return Node(id=name, cpu_milli=int(row["cpu_milli"]), memory_bytes=int(row["memory_mib"]) * MIB, gpus=gpus)


def _request(path: Path, row: dict[str, str]) -> Request:
    try:
        gpus, share = int(row["num_gpu"]), int(row["gpu_milli"])
        is_share = gpus == 1 and share < WHOLE
        return Request(
            gpus=0 if is_share else gpus,
            gpu_milli=share if is_share else 0,
            cpu_milli=int(row["cpu_milli"]),
            memory_bytes=int(row["memory_mib"]) * MIB,
            # The shortest lists have no column for models.
            models=tuple(sorted(filter(None, (row.get("gpu_spec") or "").split("|")))) if gpus else (),
        )
    except (KeyError, ValueError) as error:
        raise UnreadableTrace(f"{path}: pod {row.get('name')!r} cannot be understood: {error!r}") from error
