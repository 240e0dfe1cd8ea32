"""The Standard Workload Format of the Parallel Workloads Archive: 18 numbers a line, -1 where nothing is known.

The format has processors only, so that a processor counts as a GPU here: the unit of allocation. The fleet is in the
header of the file: MaxProcs on MaxNodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from corral.core.model import Node
from corral.simulator.fleets import parse_fleet
from corral.simulator.traces.job import LeftOut, TraceJob, UnreadableTrace, lines, unreadable

FIELDS = 18
_NUMBER, _SUBMIT, _RUN, _ALLOCATED, _ASKED, _ASKED_SECONDS = 0, 1, 3, 4, 7, 8
_USER, _GROUP = 11, 12
_HEAD = re.compile(r";\s*(\w+):\s*(\d+)")
#: the model of the processors
MODEL = "processor"


def matches(head: str) -> bool:
    kept = [line.strip() for line in head.splitlines() if line.strip()]
    if not kept:
        return False
    jobs = [line for line in kept if not line.startswith(";")]
    if not jobs:
        return True
    return len(jobs[0].split()) == FIELDS and all(_is_number(word) for word in jobs[0].split())


def read(path: Path, left_out: LeftOut) -> Iterator[TraceJob]:
    for number, line in enumerate(lines(path), start=1):
        text = line.strip()
        if not text or text.startswith(";"):
            continue
        values = _values(path, number, text)
        processors = values[_ASKED] if values[_ASKED] > 0 else values[_ALLOCATED]
        if processors <= 0:
            left_out["the number of processors is not known"] += 1
        elif values[_RUN] < 0:
            left_out["the run time is not known"] += 1
        else:
            yield TraceJob(
                name=f"{values[_NUMBER]:.0f}",
                user=f"user-{values[_USER]:.0f}" if values[_USER] >= 0 else "unknown",
                group=f"group-{values[_GROUP]:.0f}" if values[_GROUP] >= 0 else "",
                submitted_at=values[_SUBMIT],
                run_seconds=values[_RUN],
                gpus=int(processors),
                time_limit_seconds=values[_ASKED_SECONDS] if values[_ASKED_SECONDS] > 0 else None,
            )


def fleet(path: Path) -> list[Node]:
    header: dict[str, int] = {}
    for line in lines(path):
        if line.strip() and not line.startswith(";"):
            break
        if (found := _HEAD.match(line)) is not None:
            header.setdefault(found[1], int(found[2]))
    nodes = header.get("MaxNodes", 0)
    processors = header.get("MaxProcs", nodes)
    if not nodes or processors < nodes:
        raise UnreadableTrace(f"{path}: the header has no MaxNodes and MaxProcs: name the fleet")
    return parse_fleet(f"{nodes}x{processors // nodes}x{MODEL}")


def _values(path: Path, number: int, text: str) -> list[float]:
    fields = text.split()
    if len(fields) != FIELDS:
        raise unreadable(path, number, f"{len(fields)} fields; the format has {FIELDS}")
    for field in fields:
        if not _is_number(field):
            raise unreadable(path, number, f"{field!r} is not a number")
    return [float(field) for field in fields]


def _is_number(word: str) -> bool:
    return re.fullmatch(r"[-+]?\d+(\.\d*)?", word) is not None
