"""Where an attempt lives on disk, and how its small files are written so that a crash leaves nothing half done.

    <root>/term                              the term of the server that may give orders here
    <root>/live/<attempt>                    marker: launched and not yet forgotten; then moved to <root>/ended/
    <root>/runs/<shard>/<attempt>/order      the same file: what must be known after a restart
    <root>/runs/<shard>/<attempt>/stop       the grace time, once the attempt is to end, and who says so
    <root>/runs/<shard>/<attempt>/lost       once a node of it went down: which, when
    <root>/runs/<shard>/<attempt>/<rank>/    claim, log.*, work/, tmp/ and storage/ while it runs

A claim appears already locked (a locked file is linked to its name), so its supervisor lives exactly as long as
the lock is held; a process id would not tell, ids are used again. Its first line names the supervisor, a second one
the job's process once that runs, the last one how it ended: a line more costs less than a file more, and has room in
the file's block when the disk is full. Which attempts run is the engine's business. Used by the spawner too, so only
the standard library is imported here.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from corral.engines.attempts.terms import TERM

CLAIM = "claim"
#: Written by supervisors of an earlier version, which outlive their server.
EXIT = "exit"
LOST = "lost"
ORDER = "order"
OVER = "over"
STOP = "stop"
WORK = "work"
TMP = "tmp"
#: Where everything is mounted that an instance gets to see, in its own namespace only.
PRIVATE = "storage"
#: How far the preparation of an instance is, in words; while it starts.
PROGRESS = "progress"
#: Of a container, while it runs: its environment, and the login that its image is pulled with.
ENVIRONMENT = "env"
AUTH = "auth"

_CHUNK_BYTES = 1 << 14
_SHORT_MESSAGE = 300
#: An attempt id becomes the name of a directory.
_FOLDED = re.compile(r"\d+\.log\.")
_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class ClaimState(Enum):
    NONE = "none"
    HELD = "held"
    FREE = "free"


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
        """Create what is missing. Logs and commands are the users' own, so nobody else may look."""
        os.makedirs(self.root, mode=0o700, exist_ok=True)
        for path in (self.live_dir, self.ended_dir, self.runs_dir):
            os.makedirs(path, mode=0o700, exist_ok=True)
        if not os.path.exists(self.events_path):
            os.mkfifo(self.events_path, 0o600)

    def note_containers(self) -> None:
        """From now on there may be containers to look for after a crash."""
        os.close(os.open(self._containers_path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def had_containers(self) -> bool:
        return os.path.exists(self._containers_path)

    def marker(self, attempt_id: str) -> str:
        return os.path.join(self.live_dir, attempt_id)

    def ended(self, attempt_id: str) -> str:
        """The marker of an attempt that is forgotten, and whose files are to be put together."""
        return os.path.join(self.ended_dir, attempt_id)

    def attempt_dir(self, attempt_id: str) -> str:
        # Two hexadecimal digits keep a directory small also after a million attempts.
        shard = f"{zlib.crc32(attempt_id.encode()) & 0xFF:02x}"
        return os.path.join(self.runs_dir, shard, attempt_id)

    def rank_dir(self, attempt_id: str, rank: int) -> str:
        return os.path.join(self.attempt_dir(attempt_id), str(rank))

    def live_attempts(self) -> list[str]:
        return [name for name in os.listdir(self.live_dir) if is_safe_id(name)]


def folded_prefix(rank: int | str) -> str:
    """How the names of an instance's log begin in the directory of a folded attempt."""
    return f"{rank}.log."


def is_folded(names: Iterable[str]) -> bool:
    """Whether these are the names in the directory of an attempt that is over and was put together."""
    return any(name == OVER or _FOLDED.match(name) is not None for name in names)


def is_safe_id(attempt_id: str) -> bool:
    return _SAFE_ID.fullmatch(attempt_id) is not None and not attempt_id.endswith(".tmp")


def write_json(path: str, body: dict[str, Any], *, durable: bool = False) -> None:
    """Replace the file as a whole; `durable` also waits for the disk."""
    temporary = f"{path}.{os.getpid()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, json.dumps(body).encode())
        if durable:
            os.fsync(descriptor)
    except OSError:
        os.unlink(temporary)
        raise
    finally:
        os.close(descriptor)
    os.rename(temporary, path)


def write_all(descriptor: int, data: bytes) -> None:
    """A disk that becomes full takes a part of it, and refuses the rest with the next call."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def read_json(path: str) -> dict[str, Any] | None:
    """The file's content, or None if there is none or it is damaged (a machine that lost power)."""
    return _parsed(_read(path).partition(b"\n")[0])


def write_stop(attempt_dir: str, body: dict[str, Any]) -> None:
    """The order to stop. On a full disk it is a line more in the attempt's order, whose block has room."""
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
    lines = [line for line in _read(os.path.join(attempt_dir, ORDER)).split(b"\n")[1:] if line]
    return (_parsed(lines[-1]) or {}) if lines else None


def _read(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    try:
        data = os.read(descriptor, _CHUNK_BYTES)
        while len(data) % _CHUNK_BYTES == 0 and (more := os.read(descriptor, _CHUNK_BYTES)):
            data += more
        return data
    finally:
        os.close(descriptor)


def _parsed(data: bytes) -> dict[str, Any] | None:
    try:
        body = json.loads(data)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def take_claim(rank_dir: str, body: dict[str, Any]) -> int | None:
    """Become the only supervisor of an instance: the locked descriptor, or None if another was first."""
    temporary = os.path.join(rank_dir, f"{CLAIM}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        add_to_claim(descriptor, body)
        os.link(temporary, os.path.join(rank_dir, CLAIM))
    except FileExistsError:
        os.close(descriptor)
        return None
    finally:
        os.unlink(temporary)
    return descriptor


def add_to_claim(descriptor: int, body: dict[str, Any]) -> None:
    """One write of one line, so that a reader sees it whole or not at all."""
    write_all(descriptor, json.dumps(body).encode() + b"\n")


def record_end(rank_dir: str, body: dict[str, Any]) -> None:
    """How an instance ended, on the disk when this returns. The instance must have been claimed. When the disk is full,
    a long message is cut to what the claim's block has room for."""
    descriptor = os.open(os.path.join(rank_dir, CLAIM), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        # A line before it may be unfinished.
        try:
            write_all(descriptor, b"\n" + json.dumps(body).encode() + b"\n")
        except OSError:
            short = {**body, "message": str(body.get("message", ""))[:_SHORT_MESSAGE]}
            write_all(descriptor, b"\n" + json.dumps(short).encode() + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Claim:
    """Who supervises an instance, what it started, and how that ended; empty where it is not (yet) told."""

    supervisor: dict[str, Any]
    started: dict[str, Any]
    end: dict[str, Any]


def read_claim(rank_dir: str) -> Claim:
    lines = _read(os.path.join(rank_dir, CLAIM)).split(b"\n")
    bodies = [_parsed(line) or {} for line in lines[:-1] if line]  # the last is empty, or unfinished
    ends = [body for body in bodies if "ended_at" in body]
    begun = [body for body in bodies if "ended_at" not in body]
    return Claim(
        supervisor=begun[0] if begun else {},
        started=begun[1] if len(begun) > 1 else {},
        end=ends[0] if ends else {},
    )


def claim_state(rank_dir: str) -> ClaimState:
    try:
        descriptor = os.open(os.path.join(rank_dir, CLAIM), os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return ClaimState.NONE
    try:
        # Shared, so that two observers never mistake each other for the supervisor.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return ClaimState.HELD
    finally:
        os.close(descriptor)
    return ClaimState.FREE


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as source:
        return source.read().strip()


def notify(events_path: str, attempt_id: str) -> bool:
    """Tell the engine to look at an attempt, if one listens. Never blocks; False if its pipe is full just now."""
    try:
        descriptor = os.open(events_path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return True  # no engine lives: the next one looks by itself
    try:
        os.write(descriptor, attempt_id.encode() + b"\n")
    except BlockingIOError:
        return False
    except BrokenPipeError:
        return True
    finally:
        os.close(descriptor)
    return True
