"""The output of `sacct -P`: jobs of a Slurm cluster, separated by bars, with titles in the first line.

Lines of steps (12.batch, 12.0) repeat the data of their job and are skipped. Times without a zone are read as UTC: only
their differences matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from corral.core.model import WHOLE, Node
from corral.simulator.traces.job import LeftOut, Row, TraceJob, UnreadableTrace, rows

COLUMNS = ("JobID", "Submit", "Start", "End")
#: the first of them that is not empty is used
RESOURCES = ("ReqTRES", "AllocTRES", "ReqGRES", "AllocGRES")
_NOT_KNOWN = {"", "none", "unknown", "n/a"}
_WITHOUT_LIMIT = {"unlimited", "partition_limit", "infinite"}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kmgtp]?)(?:i?b)?[nc]?", re.IGNORECASE)
_POWERS = {"": 2, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_DURATION = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?(?:\.\d+)?")


def matches(head: str) -> bool:
    titles = head.partition("\n")[0].strip().split("|")
    return len(titles) > 1 and "JobID" in titles


def read(path: Path, left_out: LeftOut) -> Iterator[TraceJob]:
    for row in rows(path, COLUMNS, delimiter="|"):
        if row.line == 2 and not any(row.cells.get(column) is not None for column in RESOURCES):
            raise row.error(f"none of the columns {', '.join(RESOURCES)} is there: how many GPUs is not known")
        if "." in row.text("JobID"):
            continue  # a step
        times = [_moment(row, column) for column in ("Submit", "Start", "End")]
        submitted, started, ended = times
        if submitted is None:
            raise row.error("Submit is not known")
        if started is None or ended is None:
            left_out["it did not run, or has not ended"] += 1
            continue
        if ended < started:
            raise row.error("End lies before Start")
        yield _job(row, submitted, ended - started)


def fleet(path: Path) -> list[Node]:
    raise UnreadableTrace(f"{path}: sacct does not list the nodes: name the fleet")


def _job(row: Row, submitted: float, run_seconds: float) -> TraceJob:
    gpus, models, others = _resources(row)
    nodes = row.count("NNodes", 0) or int(others.get("node", "0"))
    return TraceJob(
        name=row.text("JobName", row.text("JobID")),
        user=row.text("User", "unknown"),
        group=row.text("Account", ""),
        submitted_at=submitted,
        run_seconds=run_seconds,
        gpus=gpus,
        nodes=nodes or None,
        cpu_milli=int(float(others.get("cpu", "0")) * WHOLE),
        memory_bytes=_bytes(row, others.get("mem", "0")),
        models=models,
        time_limit_seconds=_limit(row),
    )


def _resources(row: Row) -> tuple[int, tuple[str, ...], dict[str, str]]:
    """GPUs, the models they must be, and everything else: `cpu=8,mem=64G,gres/gpu=2,gres/gpu:a100=2`."""
    text = next((row.text(column) for column in RESOURCES if row.has(column)), "")
    total, by_model, others = None, dict[str, int](), dict[str, str]()
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.rpartition("=") if "=" in part else part.rpartition(":")
        if name in ("gres/gpu", "gpu"):
            total = _whole(row, part, value)
        elif name.startswith(("gres/gpu:", "gpu:")):
            model = name.partition(":")[2]
            by_model[model] = by_model.get(model, 0) + _whole(row, part, value)
        else:
            others[name] = value
    for name in ("cpu", "node"):
        if name in others:
            _whole(row, f"{name}={others[name]}", others[name])
    gpus = sum(by_model.values()) if total is None else total
    return gpus, tuple(sorted(by_model)) if gpus else (), others


def _whole(row: Row, part: str, value: str) -> int:
    if not value.isdecimal():
        raise row.error(f"{part!r} has no whole number")
    return int(value)


def _bytes(row: Row, text: str) -> int:
    found = _SIZE.fullmatch(text)
    if found is None:
        raise row.error(f"mem={text} is not a size")
    return int(float(found[1]) * 1024 ** _POWERS[found[2].lower()]) if float(found[1]) else 0


def _moment(row: Row, column: str) -> float | None:
    text = row.text(column, "")
    if text.lower() in _NOT_KNOWN:
        return None
    if text.isdecimal():
        return float(text)  # SLURM_TIME_FORMAT=%s
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise row.error(f"{column} is {text!r}, not a time such as 2026-01-31T12:00:00") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _limit(row: Row) -> float | None:
    if row.has("TimelimitRaw") and row.text("TimelimitRaw").isdecimal():
        return float(row.text("TimelimitRaw")) * 60 or None
    text = row.text("Timelimit", "")
    if text.lower() in _NOT_KNOWN | _WITHOUT_LIMIT:
        return None
    found = _DURATION.fullmatch(text)
    if found is None:
        raise row.error(f"Timelimit is {text!r}, not [DAYS-]HH:MM:SS")
    days, first, second, third = found.groups()
    if days is not None or third is not None:
        hours, minutes, seconds = int(first), int(second or 0), int(third or 0)
    else:
        hours, minutes, seconds = 0, int(first), int(second or 0)
    return float(int(days or 0) * 86400 + hours * 3600 + minutes * 60 + seconds) or None
