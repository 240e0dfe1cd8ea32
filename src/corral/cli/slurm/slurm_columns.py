"""Jobs and nodes in the columns that squeue, sinfo and sacct print. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from corral.cli.terminal import formats
from corral.cli.terminal.failures import WrongUsage

if TYPE_CHECKING:
    from corral.client.views import JobView

#: Slurm's short and long words for the states of a job.
STATES = {
    "created": ("PD", "PENDING"),
    "queued": ("PD", "PENDING"),
    "starting": ("CF", "CONFIGURING"),
    "running": ("R", "RUNNING"),
    "stopping": ("CG", "COMPLETING"),
    "stopped": ("CA", "CANCELLED"),
    "completed": ("CD", "COMPLETED"),
    "failed": ("F", "FAILED"),
}
QUEUE_FORMAT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
LONG_QUEUE_FORMAT = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
LONG_INFO_FORMAT = "%9P %5a %.10l %.6D %.6t %12G %N"
NODE_FORMAT = "%20N %.6D %9P %.6t"
LONG_NODE_FORMAT = "%20N %.6D %9P %.6t %.5c %.10m %12G"
INFO_FORMAT = "%9P %5a %.10l %.6D %.6t %N"
_FIELD = re.compile(r"%(\.?)(\d*)([A-Za-z])")
QUEUE_TITLES = {
    "i": "JOBID", "A": "JOBID", "P": "PARTITION", "j": "NAME", "u": "USER", "t": "ST", "T": "STATE", "M": "TIME",
    "l": "TIME_LIMIT", "D": "NODES", "R": "NODELIST(REASON)", "N": "NODELIST", "b": "TRES_PER_NODE", "Q": "PRIORITY",
    "C": "CPUS", "r": "REASON",
}  # fmt: skip
INFO_TITLES = {
    "P": "PARTITION", "a": "AVAIL", "l": "TIMELIMIT", "D": "NODES", "t": "STATE", "T": "STATE", "N": "NODELIST",
    "G": "GRES", "c": "CPUS", "m": "MEMORY",
}  # fmt: skip
#: The fields of sacct, as Slurm writes them; they may be named in any case.
ACCOUNT_FIELDS = (
    "JobID", "JobName", "Partition", "User", "AllocCPUS", "AllocNodes", "NNodes", "State", "ExitCode", "Submit",
    "Start", "End", "Elapsed", "ElapsedRaw", "Timelimit", "NodeList", "AllocTRES", "Priority",
)  # fmt: skip
ACCOUNT_FORMAT = "JobID,JobName,Partition,User,AllocCPUS,State,ExitCode"
_MEBIBYTE = 1 << 20
#: The width of a column of sacct.
COLUMN = 12


def queue_fields(job: JobView, now: float) -> dict[str, str]:
    allocation = job["allocation"]
    nodes = ",".join(grant["node"] for grant in allocation["grants"]) if allocation else ""
    short, full = STATES[job["state"]]
    reason = "(Dependency)" if job.get("after") else "(JobHeldUser)" if job["state"] == "created" else "(Resources)"
    started = job["started_at"]
    return {
        "i": job["id"].removeprefix("j-"),
        "A": job["id"].removeprefix("j-"),
        "P": job["queue"],
        "j": job["name"],
        "u": job["user"],
        "t": short,
        "T": full,
        "M": _clock(now - formats.moment(started)) if started else "0:00",
        "l": _clock(job["time_limit_seconds"]) if job["time_limit_seconds"] else "UNLIMITED",
        "D": str(job["nodes"]),
        "R": nodes or reason,
        "N": nodes,
        "b": f"gres/gpu:{job['gpus']:g}" if job["gpus"] else "N/A",
        "Q": str(job["priority"]),
        "C": f"{job['cpus']:g}",
        "r": "None" if nodes else reason.strip("()"),
    }


def account_fields(job: JobView, now: float) -> dict[str, str]:
    """The fields of sacct."""
    seen, moments = queue_fields(job, now), {name: job[name] for name in ("created_at", "started_at", "ended_at")}
    began, ended = moments["started_at"], moments["ended_at"]
    elapsed = max(0.0, (formats.moment(ended) if ended else now) - formats.moment(began)) if began else 0.0
    gpus = job["gpus"] * job["nodes"]
    return {
        "JobID": seen["i"],
        "JobName": job["name"],
        "Partition": job["queue"],
        "User": job["user"],
        "AllocCPUS": seen["C"],
        "AllocNodes": seen["D"],
        "NNodes": seen["D"],
        "State": "TIMEOUT" if job["end_reason"] == "timed_out" else seen["T"],
        "ExitCode": f"{job['exit_code'] or 0}:0",
        "Submit": _slurm_time(moments["created_at"]),
        "Start": _slurm_time(began),
        "End": _slurm_time(ended),
        "Elapsed": _clock(elapsed).rjust(8, "0") if elapsed < 3600 else _clock(elapsed),
        "ElapsedRaw": str(int(elapsed)),
        "Timelimit": seen["l"],
        "NodeList": seen["N"] or "None assigned",
        "AllocTRES": f"gres/gpu={gpus:g}" if gpus else "",
        "Priority": seen["Q"],
    }


def account_names(text: str) -> list[tuple[str, int | None]]:
    """The names and widths in the --format of sacct, such as `jobid,jobname%30`. A negative width aligns to the
    left, as the names of Slurm do."""
    known = {name.lower(): name for name in ACCOUNT_FIELDS}
    found: list[tuple[str, int | None]] = []
    for part in filter(None, text.split(",")):
        name, percent, width = part.partition("%")
        if name.lower() not in known or (percent and not width.lstrip("-").isdigit()):
            raise WrongUsage(f"sacct: corral does not know the field {part}; it knows {', '.join(ACCOUNT_FIELDS)}")
        found.append((known[name.lower()], int(width) if percent else None))
    return found


def account_line(values: Sequence[str], widths: Sequence[int | None]) -> str:
    """Columns of a fixed width, to the right unless the width is negative."""
    cells = []
    for value, width in zip(values, widths, strict=True):
        size = abs(width or COLUMN)
        cells.append(value[:size].ljust(size) if (width or 0) < 0 else value[:size].rjust(size))
    return " ".join(cells).rstrip()


def _slurm_time(moment: str | None) -> str:
    return datetime.fromtimestamp(formats.moment(moment)).strftime("%Y-%m-%dT%H:%M:%S") if moment else "Unknown"


def info_rows(queues: Iterable[Any], nodes: Sequence[Any], *, each: bool = False) -> list[dict[str, str]]:
    """A row for the nodes of each queue and state; with `each`, a row for each node of each queue."""
    rows = []
    for queue in queues:
        by_state: dict[str, list[Any]] = defaultdict(list)
        for node in nodes:
            if not node["gpus"] or any(gpu["pool"] == queue["pool"] for gpu in node["gpus"]):
                by_state[node["id"] if each else _node_state(node)].append(node)
        for _, mine in sorted(by_state.items()):
            state = _node_state(mine[0])
            rows.append(
                {
                    "P": queue["name"],
                    "a": "up",
                    "l": _clock(queue["max_seconds"]) if queue.get("max_seconds") else "infinite",
                    "D": str(len(mine)),
                    "t": state,
                    "T": state,
                    "N": ",".join(node["id"] for node in mine),
                    "G": f"gpu:{len(mine[0]['gpus'])}" if mine[0]["gpus"] else "(null)",
                    "c": f"{mine[0]['cpus']:g}",
                    "m": str(mine[0]["memory_bytes"] // _MEBIBYTE),
                }
            )
    return sorted(rows, key=lambda row: row["N"]) if each else rows


def _node_state(node: Any) -> str:
    if node["state"] != "ready":
        return "down" if node["state"] == "down" else "drain"
    free, total = node["gpus_free"], len(node["gpus"])
    return "idle" if free == total else "alloc" if free == 0 else "mix"


def _clock(seconds: float) -> str:
    days, rest = divmod(max(0, int(seconds)), 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    short = f"{hours}:{minutes:02d}:{left:02d}" if hours or days else f"{minutes}:{left:02d}"
    return f"{days}-{hours:02d}:{minutes:02d}:{left:02d}" if days else short


def filled(line: str, fields: dict[str, str]) -> str:
    def one(found: re.Match[str]) -> str:
        right, width, letter = found[1], int(found[2] or 0), found[3]
        if letter not in fields:
            raise WrongUsage(f"corral does not know the field %{letter}; it knows {' '.join(sorted(fields))}")
        text = fields[letter][:width] if width else fields[letter]
        return text.rjust(width) if right else text.ljust(width)

    return _FIELD.sub(one, line).rstrip()
