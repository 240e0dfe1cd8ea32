"""Launch step: make the job's directories."""

from __future__ import annotations

import errno

from corral.control.ports import EngineUnavailable, LaunchOrder, LaunchRefused, Workspace
from corral.core.os_errors import placed_reason

#: Errors of the server's disk or of its limits, which may be gone with the next try.
_DISK_TROUBLE = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ESTALE, errno.EMFILE, errno.ENFILE}
)


class JobDirectories:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def prepare(self, cluster: str, order: LaunchOrder) -> LaunchOrder:
        """Raises LaunchRefused if an earlier attempt of the job has put something else in the place of a directory, and
        EngineUnavailable if the disk is full or away."""
        try:
            self._workspace.prepare(order.job_id)
        except OSError as error:
            message = f"its directories cannot be prepared: {placed_reason(error)}"
            if error.errno in _DISK_TROUBLE:
                raise EngineUnavailable(message) from error
            raise LaunchRefused(message) from error
        return order
