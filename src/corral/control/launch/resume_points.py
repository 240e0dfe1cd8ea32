"""Finds the checkpoint that an attempt resumes from, while other attempts are launched and stopped.

A checkpoint must be read to verify it, and may have a hundred gigabytes. The attempt holds its GPUs meanwhile, so the
port answers in bounded time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from corral.control.jobs.checkpoints import resuming
from corral.control.ports import Checkpoints, LaunchOrder, Lookup, SavedWork
from corral.core.model import job_of_attempt

log = logging.getLogger("corral.control")


class ResumePoints:
    def __init__(self, checkpoints: Checkpoints, found: Callable[[LaunchOrder], None]) -> None:
        """`found` gets the order with what it resumes from, from any thread."""
        self._checkpoints = checkpoints
        self._found = found
        self._lookups: dict[str, Lookup] = {}

    def is_needed(self, order: LaunchOrder) -> bool:
        """Whether there is anything to resume from. Quick."""
        if job_of_attempt(order.attempt_id)[1] == 1:
            return False
        try:
            return self._checkpoints.has_any(order.job_id)
        except Exception as error:  # noqa: BLE001 - a directory of one job must not hold up the launches of others
            log.warning("the checkpoints of %s cannot be read: %s", order.job_id, error)
            return False

    def look_up(self, order: LaunchOrder) -> None:
        def answer(saved: SavedWork | None) -> None:
            self._found(resuming(order, saved))

        self._lookups[order.attempt_id] = self._checkpoints.look_up(order.job_id, order.user, answer)

    def end(self, attempt_id: str) -> None:
        """Ends the lookup of an attempt that has its resume point or was stopped."""
        lookup = self._lookups.pop(attempt_id, None)
        if lookup is not None:
            lookup.cancel()

    def close(self) -> None:
        for attempt_id in list(self._lookups):
            self.end(attempt_id)
