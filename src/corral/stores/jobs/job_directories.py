"""Job directories on a file system that the nodes share with the server (on one machine: any).

<root>/<shard>/<job>/             the job's own, once it was launched: its account can change everything in it
<root>/<shard>/<job>/checkpoints  what all attempts of the job share
<root>/<shard>/<job>/outputs      what its owner wants to have
<root>/<shard>/<job>.key          the server's own
<root>/.removed                   directories of deleted jobs, until they are removed
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corral.files import Place
from corral.files.trash import Trash

CHECKPOINTS = "checkpoints"
OUTPUTS = "outputs"


class DirectoryWorkspace:
    """Implements `corral.control.ports.Workspace` under one root."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._root_text = str(root)
        self._trash = Trash(root / ".removed")
        self._trash.empty()
        self._lock = threading.Lock()
        #: how often a job's directories were made by this process
        self._launches: Counter[str] = Counter()

    def env(self, job_id: str) -> Mapping[str, str]:
        home = self._home(job_id)
        return {
            "CORRAL_JOB_DIR": home,
            "CORRAL_CHECKPOINT_DIR": f"{home}/{CHECKPOINTS}",
            "CORRAL_OUTPUT_DIR": f"{home}/{OUTPUTS}",
        }

    def prepare(self, job_id: str) -> None:
        with self._lock:
            self._launches[job_id] += 1
            with self._made(job_id) as home:
                for name in (CHECKPOINTS, OUTPUTS):
                    try:
                        # As open as the server's umask allows; the job's account gets it with the launch.
                        home.make(name, 0o777)
                    except OSError as error:
                        error.filename = str(self.home(job_id) / name)
                        raise

    def launches(self, job_ids: Sequence[str]) -> dict[str, int]:
        """How often directories were made for these jobs by this process; for `fold`."""
        with self._lock:
            return {job_id: self._launches[job_id] for job_id in job_ids}

    def fold(self, launches: Mapping[str, int]) -> None:
        """Remove the empty directories of ended jobs. `launches` was read before the jobs were found to be over: a job
        that was launched since then keeps its directories."""
        for job_id, count in launches.items():
            with self._lock:
                if self._launches[job_id] != count:
                    continue
                with contextlib.suppress(OSError), self.opened(job_id) as home:
                    for name in (CHECKPOINTS, OUTPUTS):
                        with contextlib.suppress(OSError):
                            os.rmdir(name, dir_fd=home.descriptor)
                with contextlib.suppress(OSError):
                    self.home(job_id).rmdir()
                del self._launches[job_id]

    def checkpoint_dir(self, job_id: str) -> Path:
        """The checkpoint directory, shared by all attempts of a job; it exists once the job was launched."""
        return self.home(job_id) / CHECKPOINTS

    def output_dir(self, job_id: str) -> Path:
        """The directory for the job's output files; it exists once the job was launched."""
        return self.home(job_id) / OUTPUTS

    def opened(self, job_id: str, *names: str) -> Place:
        """The job's directory, or one below it. Raises OSError, and NotPlain if the job has replaced it."""
        parent, _, name = self._home(job_id).rpartition("/")
        return Place.at(parent, name, *names)

    def put_once(self, job_id: str, name: str, value: Mapping[str, Any]) -> bool:
        with self._made(job_id) as home:
            return home.write_once(name, json.dumps(value).encode())

    def remove(self, job_ids: Sequence[str]) -> None:
        failures: list[OSError] = []
        for job_id in job_ids:
            try:
                self._trash.discard(self.home(job_id))
                self.key_file(job_id).unlink(missing_ok=True)
            except OSError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def highest_job(self) -> int:
        """The highest job number of which a trace is found here; 0 without any."""
        for shard in sorted((name for name in _names(self._root) if name.isdigit()), reverse=True):
            numbers = [int(name[2:]) for name in _names(self._root / shard) if name[:2] == "j-" and name[2:].isdigit()]
            if numbers:
                return max(numbers)
        return 0

    def key_file(self, job_id: str) -> Path:
        """A file of the server beside the job's directory: the job's account cannot write there."""
        return self.home(job_id).with_name(f"{job_id}.key")

    def home(self, job_id: str) -> Path:
        """The path of a job's directory, whether it exists or not."""
        return Path(self._home(job_id))

    def _home(self, job_id: str) -> str:
        # A few hundred jobs per directory keeps listing and deleting quick. As text: each launch needs several paths.
        return f"{self._root_text}/{int(job_id.removeprefix('j-')) // 1000:06d}/{job_id}"

    def _made(self, job_id: str) -> Place:
        home = self._home(job_id)
        with contextlib.suppress(FileExistsError):
            try:
                os.mkdir(home)
            except FileNotFoundError:
                os.makedirs(os.path.dirname(home), exist_ok=True)
                os.mkdir(home)
        return self.opened(job_id)


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
