"""Readers of traces: files in, values out. One file per format, one line in the registry.

Which format a file has is seen from its first lines, unless the caller says it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from corral.core.model import Node
from corral.simulator.traces import history, openb, philly, slurm, swf
from corral.simulator.traces.job import LeftOut, TraceJob, UnreadableTrace, lines

#: enough to see the titles, or the first job behind a long head
HEAD_LINES = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceFormat:
    #: what it is, in words for people
    description: str
    #: whether the first lines of a file look like it
    matches: Callable[[str], bool]
    #: the jobs in the order of the file; raises UnreadableTrace, and counts what it leaves out
    read: Callable[[Path, LeftOut], Iterator[TraceJob]]
    #: the nodes that the trace tells of; raises UnreadableTrace if it tells of none
    fleet: Callable[[Path], list[Node]]


#: every format by the name that people use
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
    """The format that the first lines of the file tell."""
    head = "".join(islice(lines(path), HEAD_LINES))
    for trace_format in FORMATS.values():
        if trace_format.matches(head):
            return trace_format
    raise UnreadableTrace(f"{path} is not in a format that is known: {', '.join(FORMATS)}")
