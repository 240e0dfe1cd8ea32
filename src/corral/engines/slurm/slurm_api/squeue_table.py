"""Reads squeue's table of pending and running jobs. Pure.

squeue's JSON lists every job that the controller remembers, whatever one asks for, in some 4 kB for each: with short
jobs that is a hundred times as much as needed. So jobs that are not over are read from a table in a format of our own,
and JSON is used for jobs that ended without a report of their nodes.

Every user who may run sbatch chooses the name of a job, including newlines and control characters. So the separators of
columns and rows are random for each call and passed in the environment, which no other account can read: no text of a
job can end a column or begin a row.
"""

from __future__ import annotations

import calendar
import re
import secrets
import time
from collections.abc import Mapping

from corral.engines.slurm.slurm_api.hostlist import expand
from corral.engines.slurm.slurm_api.slurm_records import SlurmJob, Unreadable, gpus_in, memory_mib

#: The variable from which squeue reads its columns.
VARIABLE = "SQUEUE_FORMAT2"
#: It must not begin with a digit: squeue would read that as the width of the column.
_GAP = "\x1f{}\x1f"
_ROW = "\x1e{}\x1e"
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f]")
#: GPUs that were requested on each node, or in another way. Slurm reports the GPUs that a job has only if its
#: accounting has a column for them (AccountingStorageTRES).
_ASKED = ("tres-per-node", "tres-per-job", "tres-per-socket", "tres-per-task")
#: squeue cuts off longer values.
_COLUMNS = {
    "JobID": 12,
    "UserID": 12,
    "State": 16,
    "SubmitTime": 20,
    "StartTime": 20,
    "Reason": 40,
    "NumCPUs": 8,
    "tres-alloc": 240,
    **dict.fromkeys(_ASKED, 60),
    "Name": 100,
    "NodeList": 480,
}
#: The name of a job whose name has control characters: it is not corral's.
UNREADABLE_NAME = "(unreadable)"
#: In these columns a cut value is as wrong as none.
_WHOLE = ("tres-alloc", "NodeList")


def new_nonce() -> str:
    """A nonce for one call."""
    return secrets.token_hex(8)


def table_format(nonce: str) -> str:
    gap, end = _GAP.format(nonce), _ROW.format(nonce)
    names = list(_COLUMNS)
    return ",".join(f"{name}:{_COLUMNS[name]}{end if name == names[-1] else gap}" for name in names)


def jobs_in(table: str, nonce: str) -> list[SlurmJob]:
    """Raises Unreadable for a row that is cut off, has a column too many, a control character in it, or no number where
    one is expected."""
    *rows, rest = table.split(_ROW.format(nonce))
    if rest.strip():
        raise Unreadable(f"a row without its end: {rest[:200]!r}")
    try:
        return [_job(row.removeprefix("\n"), _GAP.format(nonce)) for row in rows]
    except ValueError as problem:
        raise Unreadable(str(problem)) from problem


def _job(line: str, gap: str) -> SlurmJob:
    cells = [cell.strip(" ") for cell in line.split(gap)]
    if len(cells) != len(_COLUMNS):
        raise Unreadable(f"{len(cells)} columns instead of {len(_COLUMNS)}: {line[:200]!r}")
    row = {name: "" if cell in ("N/A", "(null)") else cell for name, cell in zip(_COLUMNS, cells, strict=True)}
    if _UNPRINTABLE.search(row["Name"]):
        row["Name"] = UNREADABLE_NAME
    if any(map(_UNPRINTABLE.search, row.values())):
        raise Unreadable(f"control characters in a row: {line[:200]!r}")
    for name in _WHOLE:
        if len(row[name]) >= _COLUMNS[name]:
            raise Unreadable(f"{name} of job {row['JobID']} is cut off")
    nodes = expand(row["NodeList"])
    share = max(1, len(nodes))
    return SlurmJob(
        id=int(row["JobID"]),
        uid=int(row["UserID"]),
        name=row["Name"],
        state=row["State"],
        reason="" if row["Reason"] == "None" else row["Reason"],
        nodes=tuple(nodes),
        gpus=_gpus(row, share),
        cpus=int(row["NumCPUs"] or 0) // share,
        memory_mib=memory_mib(row["tres-alloc"]) // share,
        submitted_at=_moment(row["SubmitTime"]) or 0.0,
        started_at=_moment(row["StartTime"]),
    )


def _gpus(row: Mapping[str, str], nodes: int) -> int:
    """GPUs on each of its nodes. If they were not requested by node, it is only known that there is at least one."""
    allocated, by_node, *otherwise = (sum(gpus_in(row[name]).values()) for name in ("tres-alloc", *_ASKED))
    return allocated // nodes or by_node or -(-max(otherwise) // nodes)


def _moment(text: str) -> float | None:
    """Slurm's programs are called with UTC."""
    return float(calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))) if text else None
