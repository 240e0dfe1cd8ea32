"""What attempts resume from, found out on threads of their own.

To know that a checkpoint is undamaged means to read it, and it may have a hundred gigabytes. Meanwhile other attempts
are launched and stopped.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

from corral.control.checkpoints import resuming
from corral.control.ports import Checkpoints, LaunchOrder, SavedWork
from corral.core.model import job_of_attempt

log = logging.getLogger("corral.control")

#: Large checkpoints that are read at the same time; one more would only make all of them slower.
READERS = 4


class Resuming:
    def __init__(self, name: str, checkpoints: Checkpoints, found: Callable[[LaunchOrder], None]) -> None:
        """`found` gets the order with what it resumes from, from any thread."""
        self._checkpoints = checkpoints
        self._found = found
        self._orders: queue.SimpleQueue[LaunchOrder | None] = queue.SimpleQueue()
        # Daemons: a server that stops does not wait for gigabytes to be read; reconciling finds the launch again.
        self._threads = [
            threading.Thread(target=self._run, name=f"resume-{name}-{number}", daemon=True) for number in range(READERS)
        ]

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
        self._start()
        self._orders.put(order)

    def close(self) -> None:
        for _ in self._threads:
            self._orders.put(None)

    def _start(self) -> None:
        """With the first that needs it: most servers' jobs never resume in their lives."""
        for thread in self._threads:
            if thread.ident is None:
                thread.start()

    def _run(self) -> None:
        while (order := self._orders.get()) is not None:
            self._found(resuming(order, self._latest_good(order)))

    def _latest_good(self, order: LaunchOrder) -> SavedWork | None:
        try:
            found = self._checkpoints.latest_good(order.job_id)
        except Exception as error:  # noqa: BLE001 - the attempt can look for itself: that it runs is worth more
            log.warning("the checkpoints of %s cannot be read: %s", order.job_id, error)
            return None
        if found is None:
            log.warning("no checkpoint of %s is good: attempt %s begins anew", order.job_id, order.attempt_id)
        return found
