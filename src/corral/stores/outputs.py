"""What jobs left in their output directories, read without trusting any of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from corral.control.ports import OutputEntry, OutputMissing, OutputRefused
from corral.stores.descent import DIRECTORY_FLAGS, Descent, OpenedPath, as_output_errors
from corral.stores.workspace import DirectoryWorkspace


class DirectoryOutputs:
    """Implements `corral.control.ports.Outputs`."""

    def __init__(self, workspace: DirectoryWorkspace) -> None:
        self._workspace = workspace

    def entries(
        self, job_id: str, path: Sequence[str], *, after: str | None, limit: int
    ) -> tuple[list[OutputEntry], str | None]:
        try:
            with self._descent(job_id) as descent:
                opened = descent.open(path)
                if not opened.is_directory:
                    opened.close()
                    raise OutputRefused("it is a file, not a directory")
                try:
                    return descent.listed(opened, path, after, limit)
                finally:
                    opened.close()
        except OutputMissing:
            if path:
                raise
            return [], None  # never launched

    def open(self, job_id: str, path: Sequence[str]) -> OpenedPath:
        with self._descent(job_id) as descent:
            return descent.open(path)

    def _descent(self, job_id: str) -> Descent:
        outputs = self._workspace.output_dir(job_id)
        with as_output_errors(), contextlib.ExitStack() as opened:
            descriptor = os.open(outputs.parent.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            # The job owns what comes below.
            for name in (outputs.parent.name, outputs.name):
                opened.callback(os.close, descriptor)
                descriptor = os.open(name, DIRECTORY_FLAGS, dir_fd=descriptor)
        return Descent(descriptor, str(outputs))
