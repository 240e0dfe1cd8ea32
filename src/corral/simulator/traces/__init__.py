"""Readers of traces. One file per format, one line in the registry.

The format of a file is detected from its first lines, unless the caller names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from corral.core.model import Node
from corral.simulator.traces import history, openb, philly, slurm, swf
from corral.simulator.traces.job import LeftOut, TraceJob, UnreadableTrace, lines

#: enough for the titles, or for the first job after a long header
HEAD_LINES = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceFormat:
    #: for users
    description: str
    #: whether the first lines of a file have this format
    matches: Callable[[str], bool]
    #: the jobs in the order of the file; raises UnreadableTrace, and counts the jobs that it leaves out
    read: Callable[[Path, LeftOut], Iterator[TraceJob]]
    #: the nodes of the trace; raises UnreadableTrace if it has none
    fleet: Callable[[Path], list[Node]]


#: every format by the name that users give
FORMATS: dict[str, TraceFormat] = {
    "openb": TraceFormat(
        description="pods of Alibaba's cluster-trace-gpu-v2023 (CSV)",
        matches=openb.matches,
        read=openb.read,
        fleet=openb.fleet,
    ),
    "philly": TraceFormat(
        description="Philly jobs as published with Muri (CSV)",
        matches=philly.matches,
        read=philly.read,
        fleet=philly.fleet,
    ),
    "slurm": TraceFormat(
        description="the output of `sacct -P`", matches=slurm.matches, read=slurm.read, fleet=slurm.fleet
    ),
    "corral": TraceFormat(
        description="the CSV of a corral report", matches=history.matches, read=history.read, fleet=history.fleet
    ),
    "swf": TraceFormat(
        description="Standard Workload Format; a processor is taken as a GPU",
        matches=swf.matches,
        read=swf.read,
        fleet=swf.fleet,
    ),
}


def detect(path: Path) -> TraceFormat:
    """The format of the file, from its first lines."""
    head = "".join(islice(lines(path), HEAD_LINES))
    for trace_format in FORMATS.values():
        if trace_format.matches(head):
            return trace_format
    raise UnreadableTrace(f"{path} is not in a format that is known: {', '.join(FORMATS)}")
