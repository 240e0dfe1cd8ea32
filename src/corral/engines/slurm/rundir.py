"""What an attempt leaves on the file system that the server and the nodes share.

    ROOT/live/ATTEMPT                an empty file for each attempt that is not forgotten
    ROOT/fetched/ATTEMPT/            files of buckets that it mounts, gone when it is forgotten
    ROOT/events/ATTEMPT.RANK.up|end  something happened to an instance; read and removed by the server
    ROOT/hurry                       when Slurm last got a job: those that end may wait for the next one
    ROOT/never                       a pipe into which nobody writes, to wait at
    ROOT/attempts/ATTEMPT/           attempt, job, stop, verdict, order.json, rank-N.log-start
    ROOT/attempts/ATTEMPT/rank-N/    instance, log, up, exit; claim in that of rank 0

Only what is in rank-N may belong to the job's account: the server acts upon nothing there, and follows no link.
Nodes write short files in one go that end with a newline; one without it is not there yet.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

#: Longer than anything that is written in one line here.
MAX_LINE_BYTES = 4 << 20
_AS_IT_IS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_SAFE = re.compile(r"[A-Za-z0-9_-]{1,64}\.\d{1,9}")
_EVENT = re.compile(rf"({_SAFE.pattern})\.(\d+)\.(up|end)")


def is_safe_id(attempt_id: str) -> bool:
    return _SAFE.fullmatch(attempt_id) is not None


@dataclass(frozen=True, slots=True)
class Layout:
    root: Path

    def prepare(self) -> None:
        for name in ("live", "attempts"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        # Jobs' accounts pass to what is theirs, and see nothing else.
        for path in (self.root, self.root / "attempts"):
            path.chmod(path.stat().st_mode & 0o777 | 0o711)
        # Everybody's jobs leave their marks there, and nobody can take away another's.
        self.events.mkdir(exist_ok=True)
        self.events.chmod(0o1733)
        with contextlib.suppress(FileExistsError):
            os.mkfifo(self.never)
        self.never.chmod(0o666)

    @property
    def events(self) -> Path:
        return self.root / "events"

    @property
    def hurry(self) -> Path:
        return self.root / "hurry"

    @property
    def never(self) -> Path:
        return self.root / "never"

    def attempt(self, attempt_id: str) -> Path:
        return self.root / "attempts" / attempt_id

    def rank(self, attempt_id: str, rank: int) -> Path:
        return self.attempt(attempt_id) / f"rank-{rank}"

    def was_ordered(self, attempt_id: str) -> bool:
        """Whether Slurm may have heard of it. What an earlier server left half made is gone after this."""
        directory = self.attempt(attempt_id)
        if directory.exists() and not (directory / "order.json").exists():
            shutil.rmtree(directory)
        return directory.exists()

    def live(self) -> list[str]:
        return sorted(name for name in os.listdir(self.root / "live") if is_safe_id(name))

    def live_mark(self, attempt_id: str) -> Path:
        return self.root / "live" / attempt_id

    def fetched(self, attempt_id: str) -> Path:
        return self.root / "fetched" / attempt_id

    def mark_live(self, attempt_id: str) -> None:
        self.live_mark(attempt_id).touch()

    def forget(self, attempt_id: str, *, delete_logs: bool) -> None:
        self.live_mark(attempt_id).unlink(missing_ok=True)
        shutil.rmtree(self.fetched(attempt_id), ignore_errors=True)
        if delete_logs:
            shutil.rmtree(self.attempt(attempt_id), ignore_errors=True)

    def note_submission(self, now: float) -> None:
        """Never empty, not even for a moment: jobs read it at any time."""
        descriptor = os.open(self.hurry, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.pwrite(descriptor, f"{int(now * 1e6):016d}\n".encode(), 0)
        finally:
            os.close(descriptor)

    def take_events(self) -> list[str]:
        """The attempts to which something happened since the last call."""
        found = []
        for name in os.listdir(self.events):
            match = _EVENT.fullmatch(name)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.events / name)
            if match:
                found.append(match[1])
        return sorted(set(found))


def write_text(path: Path, text: str, *, mode: int = 0o600, sync: bool = True) -> None:
    """Whole or not at all. With `sync` also after the machine crashed: what says that an attempt was ordered must stay,
    and everything else can be found out, or ends that attempt."""
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), mode)
        file.write(text)
        if sync:
            file.flush()
            os.fsync(file.fileno())
    fresh.replace(path)


def write_new(path: Path, text: str) -> None:
    """Where nobody looks yet: it may be half there for a while."""
    with open(path, "w", encoding="utf-8", opener=_private) as file:
        file.write(text)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value) + "\n")


def read_json(path: Path) -> Any | None:
    text = read_line(path)
    return None if text is None else json.loads(text)


def read_line(path: Path) -> str | None:
    """A short file's text; None if it is not there, not whole yet, or no plain file."""
    try:
        with open_plain(path) as file:
            text = file.read(MAX_LINE_BYTES).decode("utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError, NotPlain):
        return None
    return text.rstrip("\n") if text.endswith("\n") else None


class NotPlain(Exception):
    """A job has put something else where a plain file should be."""


def open_plain(path: Path, *, to_write: bool = False) -> BinaryIO:
    """A file in a place that may be a job's own: no link is followed, and nothing is waited for. Raises NotPlain and
    OSError."""
    try:
        descriptor = os.open(path, (os.O_RDWR if to_write else os.O_RDONLY) | _AS_IT_IS)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise NotPlain(str(path)) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotPlain(str(path))
    return os.fdopen(descriptor, "r+b" if to_write else "rb")


def read_job_id(path: Path) -> int | None:
    text = read_line(path)
    return int(text) if text and text.isdigit() else None
