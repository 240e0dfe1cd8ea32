"""A process that commits, checks out or collects, and is killed in the middle: run by `test_dataset_crashes.py`.

    python -m tests.contract.dataset_crash commit|checkout|update|collect FOLDER [KILL_AT]

KILL_AT counts what it does to the storage (of a checkout: the reports of its progress); there it kills itself.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from corral.datasets import DirectoryBlobs, DirectoryVersions, Progress, Repository


class MortalBlobs(DirectoryBlobs):
    """A directory whose user dies before the n-th change, or in the middle of it: half of the bytes are written."""

    def __init__(self, root: Path, kill_at: int) -> None:
        super().__init__(root)
        self._left = kill_at

    def put(self, name: str, parts: Sequence[bytes | memoryview]) -> None:
        self._count(name, parts)
        super().put(name, parts)

    def remove(self, name: str) -> None:
        self._count(name, ())
        super().remove(name)

    def _count(self, name: str, parts: Sequence[bytes | memoryview]) -> None:
        self._left -= 1
        if self._left == 0:
            data = b"".join(parts)
            path = Path(self.where, name)
            if data:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.with_name(".partial-killed").write_bytes(data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)


def main(what: str, folder: Path, kill_at: int) -> None:
    repository = Repository(
        MortalBlobs(folder / "blobs", kill_at if what in ("commit", "collect") else 0),
        DirectoryVersions(folder / "versions"),
        cache=folder / "cache",
    )
    left = [kill_at]

    def on_progress(_: Progress) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    if what == "commit":
        repository.commit("faces", folder / "work", message="m", author="ada")
    elif what == "collect":
        repository.collect_garbage(dry_run=False, grace_seconds=-1)
    else:
        version = repository.tags("faces")["wanted"]
        repository.checkout("faces", version, folder / "copy", update=what == "update", on_progress=on_progress)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
