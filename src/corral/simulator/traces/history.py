"""Corral's own history: the CSV of a report, one line per attempt, or finished jobs from the API.

A job's run time is that of all its attempts together. The attempts of one job may be far apart in a report, so all of
them are read before the first job is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from corral.core.model import DEFAULT_PRIORITY, WHOLE, Gpu, Node
from corral.core.quantities import parse_gpus
from corral.simulator.traces.job import LeftOut, Row, TraceJob, UnreadableTrace, rows

COLUMNS = ("job", "job_name", "user", "gpus", "queued_at", "planned_at", "started_at", "ended_at")

#: a job, an attempt or a node as the API returns it
View = Mapping[str, Any]


def matches(head: str) -> bool:
    return set(COLUMNS) <= set(head.partition("\n")[0].strip().split(","))


def read(path: Path, left_out: LeftOut) -> Iterator[TraceJob]:
    jobs: dict[str, TraceJob] = {}
    unfinished: set[str] = set()
    for row in rows(path, COLUMNS):
        job_id = row.text("job")
        if not row.has("ended_at"):
            unfinished.add(job_id)
            continue
        ran = 0.0
        if row.has("started_at"):
            ran = max(0.0, _moment(row, "ended_at") - _moment(row, "started_at"))
        queued_at = _moment(row, "queued_at")
        known = jobs.get(job_id)
        if known is None:
            jobs[job_id] = _attempted(row, queued_at, ran)
        else:
            submitted_at = min(known.submitted_at, queued_at)
            jobs[job_id] = replace(known, submitted_at=submitted_at, run_seconds=known.run_seconds + ran)
    left_out["it has not ended"] += len(unfinished)
    yield from (job for job_id, job in jobs.items() if job_id not in unfinished)


def fleet(path: Path) -> list[Node]:
    raise UnreadableTrace(f"{path}: a report does not list the nodes: name the fleet")


def jobs_of(
    views: Iterable[View], attempts_of: Callable[[str], Iterable[View]], left_out: LeftOut
) -> Iterator[TraceJob]:
    """Finished jobs of a server. Attempts are requested only for jobs with more than one."""
    for view in views:
        if not view["started_at"] or not view["ended_at"]:
            left_out["it did not run"] += 1
            continue
        attempts: Iterable[View] = [view] if view["attempt"] <= 1 else attempts_of(view["id"])
        ran = sum(
            max(0.0, _at(attempt["ended_at"]) - _at(attempt["started_at"]))
            for attempt in attempts
            if attempt["started_at"] and attempt["ended_at"]
        )
        whole, share = parse_gpus(view["gpus"])
        nodes = view["nodes"]
        yield TraceJob(
            name=view["name"],
            user=view["user"],
            group=view["queue"],
            submitted_at=_at(view["created_at"]),
            run_seconds=ran,
            gpus=whole * nodes,
            gpu_milli=share,
            nodes=nodes,
            cpu_milli=round(view["cpus"] * WHOLE) * nodes,
            memory_bytes=view["memory_bytes"] * nodes,
            models=tuple(sorted(view["models"])),
            time_limit_seconds=view["time_limit_seconds"],
            priority=view["priority"],
        )


def fleet_of(views: Iterable[View]) -> list[Node]:
    """The nodes of a server as if all of them were ready and healthy, in one pool."""
    return [
        Node(
            id=view["id"],
            cpu_milli=round(view["cpus"] * WHOLE),
            memory_bytes=view["memory_bytes"],
            gpus=_gpus(view["gpus"]),
            labels=tuple(sorted(view["labels"].items())),
        )
        for view in views
    ]


def _gpus(views: Sequence[View]) -> tuple[Gpu, ...]:
    return tuple(
        Gpu(id=gpu["id"], index=gpu["index"], model=gpu["model"], memory_bytes=gpu["memory_bytes"]) for gpu in views
    )


def _attempted(row: Row, queued_at: float, ran: float) -> TraceJob:
    gpus, gpu_milli = _asked(row)
    model = row.text("gpu_model", "")
    return TraceJob(
        name=row.text("job_name"),
        user=row.text("user"),
        group=row.text("group", ""),
        submitted_at=queued_at,
        run_seconds=ran,
        gpus=gpus,
        gpu_milli=gpu_milli,
        nodes=row.count("nodes", 1) or 1,
        models=(model,) if model else (),
        priority=row.count("priority", DEFAULT_PRIORITY),
    )


def _asked(row: Row) -> tuple[int, int]:
    """The column has the GPUs of all nodes together, or the share."""
    try:
        return parse_gpus(row.number("gpus"))
    except ValueError as error:
        raise row.error(f"gpus: {error}") from error


def _moment(row: Row, column: str) -> float:
    text = row.text(column)
    try:
        return _at(text)
    except ValueError:
        raise row.error(f"{column} is {text!r}, not a time (RFC 3339)") from None


def _at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
