"""What an attempt leaves on the file system that the server and the nodes share.

    ROOT/live/ATTEMPT                an empty file for each attempt that is not forgotten
    ROOT/events/ATTEMPT.RANK.up|end  something happened to an instance; read and removed by the server
    ROOT/attempts/ATTEMPT/           attempt, claim/job, job, stop, order.json; rank-N/{instance, log, up, exit}

Nodes write short files in one go that end with a newline; one without it is not there yet.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
        # Everybody's jobs leave their marks there, and nobody can take away another's.
        self.events.mkdir(exist_ok=True)
        self.events.chmod(0o1733)

    @property
    def events(self) -> Path:
        return self.root / "events"

    def attempt(self, attempt_id: str) -> Path:
        return self.root / "attempts" / attempt_id

    def rank(self, attempt_id: str, rank: int) -> Path:
        return self.attempt(attempt_id) / f"rank-{rank}"

    def live(self) -> list[str]:
        return sorted(name for name in os.listdir(self.root / "live") if is_safe_id(name))

    def mark_live(self, attempt_id: str) -> None:
        (self.root / "live" / attempt_id).touch()

    def forget(self, attempt_id: str, *, delete_logs: bool) -> None:
        (self.root / "live" / attempt_id).unlink(missing_ok=True)
        if delete_logs:
            shutil.rmtree(self.attempt(attempt_id), ignore_errors=True)

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


def write_text(path: Path, text: str) -> None:
    """Whole or not at all, also after a crash."""
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value) + "\n")


def read_json(path: Path) -> Any | None:
    text = read_line(path)
    return None if text is None else json.loads(text)


def read_line(path: Path) -> str | None:
    """A short file's text; None if it is not there, or not whole yet."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    return text.rstrip("\n") if text.endswith("\n") else None


def read_job_id(path: Path) -> int | None:
    text = read_line(path)
    return int(text) if text and text.isdigit() else None
