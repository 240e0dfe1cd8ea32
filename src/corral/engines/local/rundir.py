"""The directories and files of the local engine, and how its small files are written so that a crash loses nothing.

    <root>/term                              the term of the server that may launch and stop attempts here
    <root>/live/<attempt>                    marker: the attempt was launched; `forget` moves it to <root>/ended/
    <root>/runs/<shard>/<attempt>/order      the same file (a hard link): what the engine must know after a restart
    <root>/runs/<shard>/<attempt>/stop       the order to stop: grace time and term of the server that stops it
    <root>/runs/<shard>/<attempt>/lost       a node of the attempt went down: which node, and when
    <root>/runs/<shard>/<attempt>/<rank>/    one instance: claim, log.*, work/, and tmp/ and storage/ while it runs

`corral.engines.attempts.claims` explains the claim. The engine decides which attempts run; this module only knows where
their files are. The spawner imports this module, so it uses the standard library only.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterable
from typing import Any

from corral.engines.attempts.json_files import parse_json, read_bytes, read_json, write_all, write_json
from corral.engines.attempts.terms import TERM

#: Written by supervisors of an earlier version, which outlive their server.
EXIT = "exit"
LOST = "lost"
ORDER = "order"
OVER = "over"
STOP = "stop"
WORK = "work"
TMP = "tmp"
#: The file of a running container with its environment, and the login that pulls its image.
ENVIRONMENT = "env"
AUTH = "auth"

#: The name of a log file after folding.
_FOLDED = re.compile(r"\d+\.log\.")
#: An attempt id becomes the name of a directory.
_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class Layout:
    """The paths under an engine's root."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.live_dir = os.path.join(root, "live")
        self.ended_dir = os.path.join(root, "ended")
        self.runs_dir = os.path.join(root, "runs")
        #: directories of deleted attempts, until they are removed
        self.removed_dir = os.path.join(root, "removed")
        self.events_path = os.path.join(root, "events")
        self.spawner_log = os.path.join(root, "spawner.log")
        self.term_path = os.path.join(root, TERM)
        self._containers_path = os.path.join(root, "containers")

    def prepare(self) -> None:
        """Create the missing directories. Logs and commands belong to users, so other accounts must not read them."""
        os.makedirs(self.root, mode=0o700, exist_ok=True)
        for path in (self.live_dir, self.ended_dir, self.runs_dir):
            os.makedirs(path, mode=0o700, exist_ok=True)
        if not os.path.exists(self.events_path):
            os.mkfifo(self.events_path, 0o600)

    def note_containers(self) -> None:
        """Notes that containers are used, so that a new engine searches for those that a crash left behind."""
        os.close(os.open(self._containers_path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def had_containers(self) -> bool:
        return os.path.exists(self._containers_path)

    def marker(self, attempt_id: str) -> str:
        return f"{self.live_dir}/{attempt_id}"

    def ended(self, attempt_id: str) -> str:
        """The marker of an attempt that is forgotten and not yet folded."""
        return os.path.join(self.ended_dir, attempt_id)

    def attempt_dir(self, attempt_id: str) -> str:
        # Two hexadecimal digits keep each directory small, even after a million attempts.
        return f"{self.runs_dir}/{zlib.crc32(attempt_id.encode()) & 0xFF:02x}/{attempt_id}"

    def rank_dir(self, attempt_id: str, rank: int) -> str:
        return f"{self.attempt_dir(attempt_id)}/{rank}"

    def live_attempts(self) -> list[str]:
        return [name for name in os.listdir(self.live_dir) if is_safe_id(name)]


def folded_prefix(rank: int | str) -> str:
    """The prefix of the log files of an instance in the directory of a folded attempt."""
    return f"{rank}.log."


def is_folded(names: Iterable[str]) -> bool:
    """Whether a directory with these names is that of a folded attempt."""
    return any(name == OVER or _FOLDED.match(name) is not None for name in names)


def is_safe_id(attempt_id: str) -> bool:
    return _SAFE_ID.fullmatch(attempt_id) is not None and not attempt_id.endswith(".tmp")


def write_stop(attempt_dir: str, body: dict[str, Any]) -> None:
    """Write the order to stop. On a full disk it is appended to the attempt's order, whose disk block has space."""
    try:
        write_json(os.path.join(attempt_dir, STOP), body)
    except OSError:
        descriptor = os.open(os.path.join(attempt_dir, ORDER), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            write_all(descriptor, b"\n" + json.dumps(body).encode() + b"\n")
        finally:
            os.close(descriptor)


def read_stop(attempt_dir: str) -> dict[str, Any] | None:
    """The order to stop, empty if it is damaged; None if there is none."""
    path = os.path.join(attempt_dir, STOP)
    if os.path.exists(path):
        return read_json(path) or {}
    lines = [line for line in read_bytes(os.path.join(attempt_dir, ORDER)).split(b"\n")[1:] if line]
    return (parse_json(lines[-1]) or {}) if lines else None


def notify(events_path: str, attempt_id: str) -> bool:
    """Ask the engine to read the files of an attempt. Never blocks; False if the pipe is full."""
    try:
        descriptor = os.open(events_path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return True  # no engine runs: the next one reads all files at its start
    try:
        os.write(descriptor, attempt_id.encode() + b"\n")
    except BlockingIOError:
        return False
    except BrokenPipeError:
        return True
    finally:
        os.close(descriptor)
    return True
