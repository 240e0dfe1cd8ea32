"""What squeue prints of the jobs that wait or run, as corral reads it: pure.

Its JSON tells of every job that the controller remembers, whatever one asks for, in some 4 kB for each: where jobs are
short, that is a hundred times as much as is wanted. So the jobs that are not over are read from a table of our own,
and JSON is left for those that ended without a word from their nodes.
"""

from __future__ import annotations

import calendar
import time
from collections.abc import Mapping

from corral.engines.slurm.hostlist import expand
from corral.engines.slurm.seen import SlurmJob, Unreadable, gpus_in, memory_mib

#: What stands between two columns: nothing that a name or a comment has in it.
_GAP = "\x1f"
#: GPUs that were asked for on each node, or by something else. Slurm tells of those that a job has only where its books
#: have a column for them (AccountingStorageTRES).
_ASKED = ("tres-per-node", "tres-per-job", "tres-per-socket", "tres-per-task")
#: squeue cuts off what is longer. Names and comments of corral's own are never that long.
_COLUMNS = {
    "JobID": 12,
    "State": 16,
    "SubmitTime": 20,
    "StartTime": 20,
    "Reason": 40,
    "NumCPUs": 8,
    "tres-alloc": 240,
    **dict.fromkeys(_ASKED, 60),
    "NodeList": 480,
    "Name": 128,
    "Comment": 128,
}
#: In these a part is as wrong as nothing.
_WHOLE = ("tres-alloc", "NodeList")

FORMAT = ",".join(f"{name}:{width}{_GAP}" for name, width in _COLUMNS.items())


def jobs_in(table: str) -> list[SlurmJob]:
    """Raises Unreadable for a row that is cut off, has a column too many, or no number where there should be one."""
    try:
        return [_job(line) for line in table.split("\n") if line.strip()]
    except ValueError as problem:
        raise Unreadable(str(problem)) from problem


def _job(line: str) -> SlurmJob:
    cells = [cell.strip() for cell in line.split(_GAP)]
    if len(cells) != len(_COLUMNS) + 1:
        raise Unreadable(f"{len(cells) - 1} columns instead of {len(_COLUMNS)}: {line[:200]!r}")
    row = {name: "" if cell in ("N/A", "(null)") else cell for name, cell in zip(_COLUMNS, cells, strict=False)}
    for name in _WHOLE:
        if len(row[name]) >= _COLUMNS[name]:
            raise Unreadable(f"{name} of job {row['JobID']} is cut off")
    nodes = expand(row["NodeList"])
    share = max(1, len(nodes))
    return SlurmJob(
        id=int(row["JobID"]),
        name=row["Name"],
        state=row["State"],
        reason="" if row["Reason"] == "None" else row["Reason"],
        comment=row["Comment"],
        nodes=tuple(nodes),
        gpus=_gpus(row, share),
        cpus=int(row["NumCPUs"] or 0) // share,
        memory_mib=memory_mib(row["tres-alloc"]) // share,
        submitted_at=_moment(row["SubmitTime"]) or 0.0,
        started_at=_moment(row["StartTime"]),
    )


def _gpus(row: Mapping[str, str], nodes: int) -> int:
    """On each of its nodes. Of GPUs that were not asked for by node it is only sure that there are some."""
    told, by_node, *otherwise = (sum(gpus_in(row[name]).values()) for name in ("tres-alloc", *_ASKED))
    return told // nodes or by_node or -(-max(otherwise) // nodes)


def _moment(text: str) -> float | None:
    """Slurm's programs are asked for UTC."""
    return float(calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))) if text else None
