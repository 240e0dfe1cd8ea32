"""Whether a workbench is in use, from its processes and from Jupyter."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from .ssh_server import SESSION_VARIABLE

#: A share of one CPU: an idle kernel uses far less.
BUSY_SHARE = 0.05
_TICKS = os.sysconf("SC_CLK_TCK")


class Activity:
    """Whether the workbench is in use: a login, a kernel or terminal, or a program that computes."""

    def __init__(self, now: float) -> None:
        self.used_at = now
        self.is_busy = False
        self.sessions = 0
        self._seen_at = now
        self._ticks: dict[int, int] = {}

    def look(self, now: float, services: set[int], jupyter_used_at: float) -> None:
        """`services` are the processes that always run; their own CPU time does not count as use."""
        children = child_processes()
        below = descendants(os.getpid(), children)
        self.sessions = len({value for pid in below if (value := _session_of(pid))})
        ticks = {pid: count for pid in below if pid not in services and (count := _cpu_ticks(pid)) is not None}
        spent = sum(max(0, count - self._ticks.get(pid, 0)) for pid, count in ticks.items()) / _TICKS
        computes = bool(self._ticks) and spent >= BUSY_SHARE * max(0.1, now - self._seen_at)
        self._ticks, self._seen_at = ticks, now
        self.is_busy = self.sessions > 0 or computes or jupyter_used_at > now
        self.used_at = now if self.is_busy else max(self.used_at, min(jupyter_used_at, now))


def child_processes() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        fields = _stat(int(entry)) if entry.isdigit() else []
        if fields:
            children.setdefault(int(fields[1]), []).append(int(entry))
    return children


def descendants(pid: int, children: Mapping[int, list[int]]) -> list[int]:
    found: list[int] = []
    waiting = [pid]
    while waiting:
        more = children.get(waiting.pop(), [])
        found += more
        waiting += more
    return found


def _stat(pid: int) -> list[bytes]:
    """The fields after the command's name, which may itself hold blanks and brackets."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []


def _cpu_ticks(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[11]) + int(fields[12]) if fields else None


def _session_of(pid: int) -> bytes:
    mark = SESSION_VARIABLE.encode() + b"="
    try:
        lines = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return b""
    return next((line[len(mark) :] for line in lines if line.startswith(mark)), b"")
