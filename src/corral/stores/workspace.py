"""Job directories on a file system that the nodes share with the server (on one machine: any)."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class DirectoryWorkspace:
    """Implements `corral.control.ports.Workspace` under one root."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        #: how often a job's directories were made by this process
        self._launches: Counter[str] = Counter()

    def env(self, job_id: str) -> Mapping[str, str]:
        checkpoints, outputs = self.checkpoint_dir(job_id), self.output_dir(job_id)
        with self._lock:
            self._launches[job_id] += 1
            for directory in (checkpoints, outputs):
                directory.mkdir(parents=True, exist_ok=True)
        return {
            "CORRAL_JOB_DIR": str(self.home(job_id)),
            "CORRAL_CHECKPOINT_DIR": str(checkpoints),
            "CORRAL_OUTPUT_DIR": str(outputs),
        }

    def launches(self, job_ids: Sequence[str]) -> dict[str, int]:
        """How often directories were made for these jobs by this process; for `fold`."""
        with self._lock:
            return {job_id: self._launches[job_id] for job_id in job_ids}

    def fold(self, launches: Mapping[str, int]) -> None:
        """Remove the directories of jobs that left nothing in them. `launches` was asked for before it was known that
        the jobs are over: one that was launched since then keeps them."""
        for job_id, count in launches.items():
            with self._lock:
                if self._launches[job_id] != count:
                    continue
                for directory in (self.checkpoint_dir(job_id), self.output_dir(job_id), self.home(job_id)):
                    with contextlib.suppress(OSError):
                        directory.rmdir()
                del self._launches[job_id]

    def checkpoint_dir(self, job_id: str) -> Path:
        """What all attempts of a job share; there once the job was launched."""
        return self.home(job_id) / "checkpoints"

    def output_dir(self, job_id: str) -> Path:
        """Where a job's program leaves what its owner wants to have; there once the job was launched."""
        return self.home(job_id) / "outputs"

    def put_once(self, job_id: str, name: str, value: Mapping[str, Any]) -> bool:
        home = self.home(job_id)
        home.mkdir(parents=True, exist_ok=True)
        draft = home / f".{name}.{os.getpid()}"
        draft.write_text(json.dumps(value))
        try:
            # A link appears whole or not at all, and never replaces what is there.
            os.link(draft, home / name)
        except FileExistsError:
            return False
        finally:
            draft.unlink(missing_ok=True)
        return True

    def remove(self, job_ids: Sequence[str]) -> None:
        for job_id in job_ids:
            shutil.rmtree(self.home(job_id), ignore_errors=True)
            self.key_file(job_id).unlink(missing_ok=True)

    def highest_job(self) -> int:
        """The number of the latest job that ever had a directory here, as far as can be told; 0 without any."""
        for shard in sorted((name for name in _names(self._root) if name.isdigit()), reverse=True):
            numbers = [int(name[2:]) for name in _names(self._root / shard) if name[:2] == "j-" and name[2:].isdigit()]
            if numbers:
                return max(numbers)
        return 0

    def key_file(self, job_id: str) -> Path:
        """The server's own, beside the job's directory: not even the job's account can write there."""
        return self.home(job_id).with_name(f"{job_id}.key")

    def home(self, job_id: str) -> Path:
        """A job's directory, whether it is there or not."""
        # A few hundred jobs per directory keeps listing and deleting quick.
        shard = f"{int(job_id.removeprefix('j-')) // 1000:06d}"
        return self._root / shard / job_id


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
