"""Jobs and nodes in the columns that squeue and sinfo print. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
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
INFO_FORMAT = "%9P %5a %.10l %.6D %.6t %N"
_FIELD = re.compile(r"%(\.?)(\d*)([A-Za-z])")
QUEUE_TITLES = {
    "i": "JOBID", "A": "JOBID", "P": "PARTITION", "j": "NAME", "u": "USER", "t": "ST", "T": "STATE", "M": "TIME",
    "l": "TIME_LIMIT", "D": "NODES", "R": "NODELIST(REASON)", "N": "NODELIST", "b": "TRES_PER_NODE", "Q": "PRIORITY",
    "C": "CPUS", "r": "REASON",
}  # fmt: skip
INFO_TITLES = {
    "P": "PARTITION", "a": "AVAIL", "l": "TIMELIMIT", "D": "NODES", "t": "STATE", "T": "STATE", "N": "NODELIST",
    "G": "GRES",
}  # fmt: skip


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


def info_rows(queues: Iterable[Any], nodes: Sequence[Any]) -> list[dict[str, str]]:
    rows = []
    for queue in queues:
        by_state: dict[str, list[Any]] = defaultdict(list)
        for node in nodes:
            if not node["gpus"] or any(gpu["pool"] == queue["pool"] for gpu in node["gpus"]):
                by_state[_node_state(node)].append(node)
        for state, mine in sorted(by_state.items()):
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
                }
            )
    return rows


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
