"""Launch step: make the job's directories."""

from __future__ import annotations

import errno

from corral.control.ports import EngineUnavailable, LaunchOrder, LaunchRefused, Workspace
from corral.core.os_errors import placed_reason

#: Errors of the server's disk or of its limits, which may be gone with the next try.
DISK_TROUBLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ESTALE, errno.EMFILE, errno.ENFILE})


class JobDirectories:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def prepare(self, cluster: str, order: LaunchOrder) -> LaunchOrder:
        """Raises LaunchRefused if an earlier attempt of the job has put something else in the place of a directory, and
        EngineUnavailable if the disk is full or away."""
        try:
            self._workspace.prepare(order.job_id)
        except OSError as error:
            raise launch_failure("its directories cannot be prepared", error) from error
        return order


def launch_failure(what: str, error: OSError) -> EngineUnavailable | LaunchRefused:
    """An error with the job's own files ends this attempt only; trouble of the disk is tried again."""
    message = f"{what}: {placed_reason(error)}"
    return EngineUnavailable(message) if error.errno in DISK_TROUBLE else LaunchRefused(message)
