"""What attempts resume from, found out on threads of their own.

To know that a checkpoint is undamaged means to read it, and it may have a hundred gigabytes. Meanwhile other attempts
are launched and stopped. Jobs of one user share a part of the threads (`fair_pool`): forged checkpoints of one delay
nobody else. After a deadline the attempt starts without an answer: it holds GPUs, and the helper verifies what it
restores anyway.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future

from corral.control.checkpoints import resuming
from corral.control.fair_pool import DeadlinePassed, FairPool, Task, TaskCancelled
from corral.control.ports import Checkpoints, LaunchOrder, SavedWork
from corral.core.model import job_of_attempt

log = logging.getLogger("corral.control")

#: Large checkpoints that are read at the same time; one more would only make all of them slower.
READERS = 4
_READERS_PER_USER = 2
_WAITING = 1_000_000


class Resuming:
    def __init__(self, name: str, checkpoints: Checkpoints, found: Callable[[LaunchOrder], None]) -> None:
        """`found` gets the order with what it resumes from, from any thread."""
        self._checkpoints = checkpoints
        self._found = found
        self._tasks: dict[str, Task[SavedWork | None]] = {}
        # Daemons: a server that stops does not wait for gigabytes to be read; reconciling finds the launch again.
        self._pool = FairPool(f"resume-{name}", threads=READERS, per_user=_READERS_PER_USER, waiting_per_user=_WAITING)

    def is_needed(self, order: LaunchOrder) -> bool:
        """Whether there is anything to resume from. Quick."""
        if job_of_attempt(order.attempt_id)[1] == 1:
            return False
        try:
            return self._checkpoints.has_any(order.job_id)
        except OSError as error:
            log.warning("the checkpoints of %s cannot be read: %s", order.job_id, error)
            return False

    def look_up(self, order: LaunchOrder) -> None:
        steps = self._checkpoints.latest_good(order.job_id)
        task = self._pool.submit(order.user, steps, deadline_seconds=self._checkpoints.verify_seconds)
        self._tasks[order.attempt_id] = task
        task.future.add_done_callback(lambda done: self._answered(order, done))

    def give_up(self, attempt_id: str) -> None:
        """It is stopped: nothing is read for it any more."""
        task = self._tasks.pop(attempt_id, None)
        if task is not None:
            task.cancel()

    def close(self) -> None:
        self._pool.close()

    def _answered(self, order: LaunchOrder, done: Future[SavedWork | None]) -> None:
        self._tasks.pop(order.attempt_id, None)
        error = done.exception()
        if isinstance(error, TaskCancelled):
            return  # it was stopped, or the server stops
        if isinstance(error, DeadlinePassed):
            self._found(resuming(order, self._unverified(order)))
            return
        if error is not None:
            # The attempt can look for itself: that it runs is worth more.
            log.warning("the checkpoints of %s cannot be read: %s", order.job_id, error)
            self._found(order)
            return
        found = done.result()
        if found is None:
            log.warning("no checkpoint of %s is good: attempt %s begins anew", order.job_id, order.attempt_id)
        self._found(resuming(order, found))

    def _unverified(self, order: LaunchOrder) -> SavedWork | None:
        """The newest whose files have their lengths."""
        try:
            found = next((saved for saved in self._checkpoints.list(order.job_id) if saved.is_good), None)
        except OSError as error:
            log.warning("the checkpoints of %s cannot be read: %s", order.job_id, error)
            return None
        log.warning(
            "reading the checkpoints of %s takes longer than %g s: attempt %s resumes from %s, which was not verified",
            order.job_id,
            self._checkpoints.verify_seconds,
            order.attempt_id,
            found.name if found is not None else "nothing",
        )
        return found
