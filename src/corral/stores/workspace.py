"""Job directories on a file system that the nodes share with the server (on one machine: any).

<root>/<shard>/<job>/             the job's own, once it was launched: its account can change everything in it
<root>/<shard>/<job>/checkpoints  what all attempts of the job share
<root>/<shard>/<job>/outputs      what its owner wants to have
<root>/<shard>/<job>.key          the server's own
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corral.files import Place, remove_tree

CHECKPOINTS = "checkpoints"
OUTPUTS = "outputs"


class DirectoryWorkspace:
    """Implements `corral.control.ports.Workspace` under one root."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def env(self, job_id: str) -> Mapping[str, str]:
        return {
            "CORRAL_JOB_DIR": str(self.home(job_id)),
            "CORRAL_CHECKPOINT_DIR": str(self.checkpoint_dir(job_id)),
            "CORRAL_OUTPUT_DIR": str(self.output_dir(job_id)),
        }

    def prepare(self, job_id: str) -> None:
        with self._made(job_id) as home:
            for name in (CHECKPOINTS, OUTPUTS):
                try:
                    # As open as the server's umask allows; the job's account gets it with the launch.
                    home.make(name, 0o777)
                except OSError as error:
                    error.filename = str(self.home(job_id) / name)
                    raise

    def checkpoint_dir(self, job_id: str) -> Path:
        """What all attempts of a job share; there once the job was launched."""
        return self.home(job_id) / CHECKPOINTS

    def output_dir(self, job_id: str) -> Path:
        """Where a job's program leaves what its owner wants to have; there once the job was launched."""
        return self.home(job_id) / OUTPUTS

    def opened(self, job_id: str, *names: str) -> Place:
        """The job's directory, or one below it. Raises OSError, and NotPlain where the job has put something else."""
        home = self.home(job_id)
        return Place.at(home.parent, home.name, *names)

    def put_once(self, job_id: str, name: str, value: Mapping[str, Any]) -> bool:
        with self._made(job_id) as home:
            return home.write_once(name, json.dumps(value).encode())

    def remove(self, job_ids: Sequence[str]) -> None:
        for job_id in job_ids:
            remove_tree(self.home(job_id))
            self.key_file(job_id).unlink(missing_ok=True)

    def key_file(self, job_id: str) -> Path:
        """The server's own, beside the job's directory: not even the job's account can write there."""
        return self.home(job_id).with_name(f"{job_id}.key")

    def home(self, job_id: str) -> Path:
        """A job's directory, whether it is there or not."""
        # A few hundred jobs per directory keeps listing and deleting quick.
        shard = f"{int(job_id.removeprefix('j-')) // 1000:06d}"
        return self._root / shard / job_id

    def _made(self, job_id: str) -> Place:
        home = self.home(job_id)
        with contextlib.suppress(FileExistsError):
            try:
                os.mkdir(home)
            except FileNotFoundError:
                home.parent.mkdir(parents=True, exist_ok=True)
                os.mkdir(home)
        return self.opened(job_id)
