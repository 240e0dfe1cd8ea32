"""What squeue prints of the jobs that wait or run, as corral reads it: pure.

Its JSON lists every job that the controller remembers, whatever one asks for, in some 4 kB for each: where jobs are
short, that is a hundred times as much as is wanted. So the jobs that are not over are read from a table of our own,
and JSON is left for those that ended without a word from their nodes.

Anybody who may run sbatch chooses the name of a job, newlines and control characters included. So what stands between
the columns and rows of the table is drawn anew for each call and passed in the environment, which no other account can
read: no text of a job can end a column or begin a row.
"""

from __future__ import annotations

import calendar
import re
import secrets
import time
from collections.abc import Mapping

from corral.engines.slurm.slurm_api.hostlist import expand
from corral.engines.slurm.slurm_api.slurm_records import SlurmJob, Unreadable, gpus_in, memory_mib

#: The variable in which squeue looks for its columns.
VARIABLE = "SQUEUE_FORMAT2"
#: A number cannot begin it: squeue would take that for the width of the column.
_GAP = "\x1f{}\x1f"
_ROW = "\x1e{}\x1e"
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f]")
#: GPUs that were asked for on each node, or by something else. Slurm tells of those that a job has only where its books
#: have a column for them (AccountingStorageTRES).
_ASKED = ("tres-per-node", "tres-per-job", "tres-per-socket", "tres-per-task")
#: squeue cuts off what is longer.
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
#: Of a job whose name has control characters: none of corral's.
UNREADABLE_NAME = "(unreadable)"
#: In these a part is as wrong as nothing.
_WHOLE = ("tres-alloc", "NodeList")


def new_nonce() -> str:
    """For one call."""
    return secrets.token_hex(8)


def table_format(nonce: str) -> str:
    gap, end = _GAP.format(nonce), _ROW.format(nonce)
    names = list(_COLUMNS)
    return ",".join(f"{name}:{_COLUMNS[name]}{end if name == names[-1] else gap}" for name in names)


def jobs_in(table: str, nonce: str) -> list[SlurmJob]:
    """Raises Unreadable for a row that is cut off, has a column too many, a control character in it, or no number where
    there should be one."""
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
    """On each of its nodes. Of GPUs that were not asked for by node it is only sure that there are some."""
    told, by_node, *otherwise = (sum(gpus_in(row[name]).values()) for name in ("tres-alloc", *_ASKED))
    return told // nodes or by_node or -(-max(otherwise) // nodes)


def _moment(text: str) -> float | None:
    """Slurm's programs are asked for UTC."""
    return float(calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))) if text else None
