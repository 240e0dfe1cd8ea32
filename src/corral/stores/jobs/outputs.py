"""Files in jobs' output directories, read as untrusted data."""

from __future__ import annotations

from collections.abc import Sequence

from corral.control.ports import OutputEntry, OutputMissing, OutputRefused
from corral.stores.jobs.job_directories import OUTPUTS, DirectoryWorkspace
from corral.stores.storage.untrusted_tree import Descent, OpenedPath, as_output_errors


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
        with as_output_errors():
            outputs = self._workspace.opened(job_id, OUTPUTS)
        return Descent(outputs.descriptor, str(self._workspace.output_dir(job_id)))
