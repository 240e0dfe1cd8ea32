"""Detects new checkpoints of running jobs.

Programs do not report checkpoints; their directories show them. Every few seconds the time stamp of each running job's
directory is checked, and the directory is read only if it has changed. A job that has ended is checked one last time,
because many programs save at their end.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from corral.control.jobs.checkpoints import Saved, note_saved
from corral.control.live.controller import Controller, ControllerStopped
from corral.control.live.state import State
from corral.control.live.worker import Worker, log_failure
from corral.control.ports import Checkpoints, Clock
from corral.control.records import ReceiptRecord
from corral.control.scheduling.preemptions import LastSave, note_last_saves, undecided

log = logging.getLogger("corral.server.jobs.checkpoint_watch")

LOOK_SECONDS = 2.0
#: A program may save with every step; the scheduler and the owner do not need the exact second.
NOTE_SECONDS = 15.0
#: A directory that changed so recently may change again with the same time stamp.
_SETTLE_NANOSECONDS = 2_000_000_000
_ASK_SECONDS = 10.0
#: After a slow check the next one waits for so many times its duration.
_LOOK_PART = 20


class CheckpointWatch:
    def __init__(self, *, controller: Controller, checkpoints: Checkpoints, clock: Clock) -> None:
        self._controller = controller
        self._checkpoints = checkpoints
        self._clock = clock
        #: the jobs of the last round, with the time stamps of their directories when they were read
        self._marks: dict[str, int | None] = {}
        self._is_first = True
        self._unreadable: set[str] = set()
        #: users with directories that take long to check, and when theirs are checked again
        self._again_at: dict[str, float] = {}
        #: by job
        self._users: dict[str, str] = {}
        self._worker = Worker("checkpoints", self.look, every_seconds=LOOK_SECONDS, first_after=LOOK_SECONDS)

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        self._worker.stop()

    def look(self) -> float | None:
        """One round; returns after how many seconds the next one follows, if it takes long to look at all jobs."""
        began = self._clock.monotonic()
        self._look()
        return max(LOOK_SECONDS, (self._clock.monotonic() - began) * _LOOK_PART)

    def _look(self) -> None:
        try:
            # After a start, waiting jobs too: they may have saved while no server was running.
            known = self._controller.inspect(_last_saved, self._is_first).result(_ASK_SECONDS)
        except ControllerStopped:
            return
        self._is_first = False
        self._record_last_saves()
        self._users |= {job_id: user for job_id, (user, _) in known.items()}
        seen = [saved for job_id, (_, at) in known.items() if (saved := self._changed(job_id, at)) is not None]
        seen += self._last_looks(self._marks.keys() - known.keys())
        self._users = {job_id: user for job_id, user in self._users.items() if job_id in known or job_id in self._marks}
        if seen:
            self._controller.execute(note_saved, seen).add_done_callback(
                log_failure(log, "saved checkpoints could not be recorded", with_traceback=True)
            )

    def _record_last_saves(self) -> None:
        """Record for preempted jobs whether they saved after the warning; both owners see it."""
        try:
            ended = self._controller.inspect(undecided).result(_ASK_SECONDS)
        except ControllerStopped:
            return
        saves = [save for receipt in ended if (save := self._last_save(receipt)) is not None]
        if saves:
            self._controller.execute(note_last_saves, saves).add_done_callback(
                log_failure(log, "saved checkpoints could not be recorded", with_traceback=True)
            )

    def _last_save(self, receipt: ReceiptRecord) -> LastSave | None:
        """Checkpoints that were saved later belong to the next attempt."""
        assert receipt.ended_at is not None
        try:
            found = self._checkpoints.list(receipt.job_id)
            at = next(
                (work.at for work in found if work.is_good and work.at is not None and work.at <= receipt.ended_at),
                None if found else self._checkpoints.last_saved_at(receipt.job_id),
            )
        except OSError as error:
            self._complain(receipt.job_id, error)
            return None
        return LastSave(job_id=receipt.job_id, attempt=receipt.attempt, at=at)

    def _changed(self, job_id: str, noted_at: float | None) -> Saved | None:
        """New checkpoints of a running job."""
        if self._is_paused(job_id):
            # Read later, also if it ends before: 0 is the time stamp of no directory.
            self._marks.setdefault(job_id, 0)
            return None
        began = self._clock.monotonic()
        try:
            mark = self._checkpoints.mark(job_id)
            if job_id in self._marks and self._marks[job_id] == mark:
                return None
            at = self._checkpoints.last_saved_at(job_id)
        except OSError as error:
            self._complain(job_id, error)
            return None
        finally:
            self._pause(job_id, began)
        self._unreadable.discard(job_id)
        too_early = noted_at is not None and at is not None and 0.0 < at - noted_at < NOTE_SECONDS
        is_settled = mark is None or self._clock.now() * 1e9 - mark > _SETTLE_NANOSECONDS
        # No directory has the time stamp 0: a directory that may still change is read again in the next round.
        self._marks[job_id] = mark if is_settled and not too_early else 0
        return None if too_early or at == noted_at else Saved(job_id=job_id, at=at)

    def _is_paused(self, job_id: str) -> bool:
        user = self._users[job_id]
        if self._clock.monotonic() < self._again_at.get(user, float("-inf")):
            return True
        self._again_at.pop(user, None)
        return False

    def _pause(self, job_id: str, began: float) -> None:
        """Delays the next look at the jobs of a user with a slow directory, so that they do not delay all others."""
        now = self._clock.monotonic()
        if (now - began) * _LOOK_PART > LOOK_SECONDS:
            self._again_at[self._users[job_id]] = now + (now - began) * _LOOK_PART

    def _last_looks(self, job_ids: Iterable[str]) -> list[Saved]:
        seen = []
        for job_id in sorted(job_ids):
            if self._is_paused(job_id):
                continue  # in a later round
            del self._marks[job_id]
            began = self._clock.monotonic()
            try:
                seen.append(Saved(job_id=job_id, at=self._checkpoints.last_saved_at(job_id)))
            except OSError as error:
                self._complain(job_id, error)
            self._pause(job_id, began)
            self._unreadable.discard(job_id)
        return seen

    def _complain(self, job_id: str, error: OSError) -> None:
        """Log it once: a line every two seconds would hide everything else."""
        if job_id not in self._unreadable:
            self._unreadable.add(job_id)
            log.warning("the checkpoints of %s cannot be read: %s", job_id, error)


def _last_saved(state: State, with_waiting: bool) -> dict[str, tuple[str, float | None]]:
    """The users of running jobs, and the known times of their last checkpoints."""
    jobs = state.snapshot.jobs
    if with_waiting:
        found = [job for job in jobs.values() if job.state.holds_resources or job.attempt > 0]
    else:
        found = [jobs[attempt.job_id] for attempt in state.attempts.values()]
    return {job.id: (job.user, job.checkpointed_at) for job in found}
