"""The engine's own files: what was ordered, what is known of it, and the logs.

    ROOT/engine-id              the id of this installation, which its pods have as a label
    ROOT/pods-known             pods without records are not this engine's: they were looked for once
    ROOT/orders/ATTEMPT         the order and what happened since, a JSON document per line, until it is forgotten
    ROOT/forgotten/ATTEMPT      the same, once its end is recorded
    ROOT/folded/ATTEMPT         the same, after folding
    ROOT/secrets/NAME           a secret of Kubernetes that is to be removed after its attempt
    ROOT/logs/ATTEMPT.RANK/     the log of an instance: its segments, and how far the pod's log was read

Only the server writes here. Everything else is in Kubernetes: a new engine over the same root knows everything that an
earlier one knew.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import secrets
from pathlib import Path
from typing import Any

from corral.engines.attempts.json_files import parse_json, read_bytes, write_all
from corral.engines.attempts.log_segments import PREFIX, LogPlaces
from corral.engines.kubernetes.attempts.pods import is_safe_id
from corral.files import remove_tree

_DIRECTORIES = ("orders", "forgotten", "folded", "logs", "secrets")
POSITION = "position"
_KNOWN = "pods-known"


class Records:
    def __init__(self, root: Path) -> None:
        self.root = root
        for name in _DIRECTORIES:
            (root / name).mkdir(parents=True, exist_ok=True)
        self.installation = _engine_id(root / "engine-id")

    @property
    def may_adopt(self) -> bool:
        """Whether these records are new, so that there may be pods of an earlier copy of them."""
        return not (self.root / _KNOWN).exists()

    def note_adopted(self) -> None:
        (self.root / _KNOWN).touch()

    def note_not_adopted(self) -> None:
        """Pods without records are looked for again: a record was damaged."""
        (self.root / _KNOWN).unlink(missing_ok=True)

    def live(self) -> list[str]:
        """The attempts that are not forgotten."""
        return sorted(filter(is_safe_id, os.listdir(self.root / "orders")))

    def was_ordered(self, attempt_id: str) -> bool:
        return any((self.root / name / attempt_id).exists() for name in _DIRECTORIES[:3])

    def note(self, attempt_id: str, document: dict[str, Any], *, sync: bool = False) -> None:
        """Appends a note. With `sync` it survives a crash of the machine; other notes can be read again from
        Kubernetes.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(self.root / "orders" / attempt_id, flags, 0o600)
        try:
            write_all(descriptor, f"{json.dumps(document)}\n".encode())
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def notes(self, attempt_id: str) -> list[dict[str, Any]]:
        """The notes in the order in which they were written; a line that a crash has cut off is left out."""
        lines = read_bytes(str(self.root / "orders" / attempt_id)).split(b"\n")[:-1]
        return [body for body in map(parse_json, lines) if body is not None]

    def forget(self, attempt_id: str, *, delete_logs: bool) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.rename(self.root / "orders" / attempt_id, self.root / "forgotten" / attempt_id)
        if delete_logs:
            for rank in itertools.count():
                if not (place := self.log_directory(attempt_id, rank)).exists():
                    break
                if not remove_tree(str(place)):
                    raise OSError(errno.EBUSY, "it cannot be removed", str(place))
            for name in ("forgotten", "folded"):
                (self.root / name / attempt_id).unlink(missing_ok=True)

    def log_directory(self, attempt_id: str, rank: int) -> Path:
        return self.root / "logs" / f"{attempt_id}.{rank}"

    def log(self, attempt_id: str, rank: int) -> LogPlaces:
        return LogPlaces(((str(self.log_directory(attempt_id, rank)), PREFIX),))

    def has(self, attempt_id: str) -> bool:
        return (self.root / "orders" / attempt_id).exists() or self.log_directory(attempt_id, 0).exists()

    def note_secret(self, name: str) -> None:
        """Before it is made, so that none is left behind: this server may have no right to list secrets."""
        (self.root / "secrets" / name).touch()

    def secrets(self) -> set[str]:
        return set(os.listdir(self.root / "secrets"))

    def drop_secret(self, name: str) -> None:
        (self.root / "secrets" / name).unlink(missing_ok=True)

    # ---------------------------------------------------------------- corral.engines.attempts.fold_worker.Folds

    def unfolded(self) -> list[str]:
        return list(filter(is_safe_id, os.listdir(self.root / "forgotten")))

    def fold(self, attempt_id: str) -> None:
        for rank in itertools.count():
            if not (place := self.log_directory(attempt_id, rank)).exists():
                break
            (place / POSITION).unlink(missing_ok=True)

    def note_folded(self, attempt_id: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.rename(self.root / "forgotten" / attempt_id, self.root / "folded" / attempt_id)


def _engine_id(path: Path) -> str:
    """A random id: several servers may share a cluster, and their attempts may have the same ids."""
    known = read_bytes(str(path)).decode("ascii", "replace").strip()
    if known.isalnum():
        return known
    # There is none yet, or it is damaged: without an id, pods would be those of any other server.
    body = secrets.token_hex(4)
    descriptor = os.open(path.with_suffix(".new"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, f"{body}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(path.with_suffix(".new"), path)
    return body
