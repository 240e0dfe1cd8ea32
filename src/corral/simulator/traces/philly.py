"""The Philly traces as Muri (SIGCOMM'22) publishes them: times in milliseconds, run times in iterations.

They have no user names, so all jobs belong to one user. The cluster of the published results has 8 nodes with 8 GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from corral.core.model import Node
from corral.simulator.fleets import parse_fleet
from corral.simulator.traces.job import LeftOut, TraceJob, rows

COLUMNS = ("num_gpu", "submit_time", "iterations", "iteration_time")
#: the run time relative to that of the iterations, as in the published runs
OVERHEAD = 1.015
FLEET = "8x8xV100"


def matches(head: str) -> bool:
    titles = head.partition("\n")[0].strip().split(",")
    return set(COLUMNS) <= set(titles)


def read(path: Path, left_out: LeftOut) -> Iterator[TraceJob]:
    for row in rows(path, COLUMNS):
        gpus = row.count("num_gpu")
        if not gpus:
            left_out["asks for no GPU"] += 1
            continue
        yield TraceJob(
            name=row.text("job_id", f"job-{row.line - 1}"),
            submitted_at=row.number("submit_time") / 1000,
            run_seconds=row.count("iterations") * row.count("iteration_time") / 1000 * OVERHEAD,
            gpus=gpus,
        )


def fleet(path: Path) -> list[Node]:
    return parse_fleet(FLEET)
