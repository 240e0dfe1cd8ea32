"""The packs of pieces that each user has sent to a target of datasets.

A storage holds the pieces of all users. A commit may only name pieces that the user has sent, or can read in the same
dataset: knowing an id does not give access to its content. The list is lost with the home directory; then pieces that
no version has yet are sent again.
"""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

#: Maximum per user and target; beyond, the oldest half is removed. A removed pack that no version has is sent again.
MOST_PACKS = 200_000


class SentPacks:
    """One file per target and user in the server's home, with one line per pack."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._guard = threading.Lock()

    def note(self, target: str, user: str, pack: str) -> None:
        path = self._path(target, user)
        with self._guard:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with path.open("a", encoding="ascii") as file:
                file.write(f"{pack}\n")
                lines = file.tell() // 65
            if lines > MOST_PACKS:
                kept = path.read_text(encoding="ascii").splitlines()[-MOST_PACKS // 2 :]
                draft = path.with_suffix(".new")
                draft.write_text("".join(f"{line}\n" for line in kept), encoding="ascii")
                draft.replace(path)

    def packs(self, target: str, user: str) -> frozenset[str]:
        with self._guard:
            try:
                return frozenset(self._path(target, user).read_text(encoding="ascii").split())
            except FileNotFoundError:
                return frozenset()

    def forget_user(self, user: str) -> None:
        """Deletes a deleted user's records: a later user of the same name has sent nothing."""
        with self._guard:
            for path in self._directory.glob(f"*/{_file_name(user)}"):
                path.unlink(missing_ok=True)

    def _path(self, target: str, user: str) -> Path:
        return self._directory / _file_name(target) / _file_name(user)


def _file_name(name: str) -> str:
    """A file name for any name; different names have different file names."""
    return hashlib.sha256(name.encode()).hexdigest()[:32]
