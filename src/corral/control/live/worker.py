"""A worker: a thread that repeats one task until it is stopped, also after failures.

Every loop of the server is one of these: a round that fails is logged, tried again after a pause that grows, and shown
to operators until one succeeds.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from corral.control.ports import StoreUnavailable

log = logging.getLogger("corral.worker")

#: After a round that failed, doubled with each further one.
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
#: How long `stop` waits for a round that is under way.
STOP_SECONDS = 3.0


class WorkerStopped(Exception):
    """Raised by a round: there is nothing more to do, because the server stops."""


def log_failure(
    log: logging.Logger,
    message: str,
    *,
    ignored: tuple[type[BaseException], ...] = (WorkerStopped,),
    with_traceback: bool = False,
) -> Callable[[Future[Any]], None]:
    """A callback for `Future.add_done_callback`: logs the error of a request for whose answer no caller waits."""

    def done(answer: Future[Any]) -> None:
        error = answer.exception()
        if error is not None and not isinstance(error, ignored):
            log.error("%s: %s", message, error, exc_info=error if with_traceback else None)

    return done


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerHealth:
    name: str
    #: rounds that failed since the last one that did not
    failures: int = 0
    #: what the last of them ended with
    error: str = ""
    #: rounds that failed since the start, and what the last of them ended with
    failures_in_all: int = 0
    last_error: str = ""
    #: whether a round is under way
    is_busy: bool = False


class Worker:
    def __init__(
        self,
        name: str,
        work: Callable[[], float | None],
        *,
        every_seconds: float,
        first_after: float = 0.0,
        at_start: Callable[[], None] = lambda: None,
        interrupt: Callable[[], None] = lambda: None,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        """`work` is one round. It may answer how many seconds to wait for the next one; otherwise `every_seconds` pass,
        or `wake` is called. With 0 the rounds follow on each other, and each waits by itself for something to do.

        `interrupt` ends what a round waits for, when the worker is to stop. `at_start` and `at_end` are called by the
        worker's own thread before the first round and after the last one.
        """
        self.name = name
        self._work = work
        self._every_seconds = every_seconds
        self._first_after = first_after
        self._at_start = at_start
        self._interrupt = interrupt
        self._at_end = at_end
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._failures = 0
        self._error = ""
        self._failures_in_all = 0
        self._last_error = ""
        self._is_busy = False
        self._thread = _WorkerThread(self)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Starts the next round now, or right after the present one."""
        self._woken.set()

    def ask_to_stop(self) -> None:
        self._stopping.set()
        self._woken.set()
        self._interrupt()

    def stop(self, timeout: float = STOP_SECONDS) -> bool:
        """Whether it has ended. A round that takes longer is left to itself: its thread ends with the process."""
        self.ask_to_stop()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def pause(self, seconds: float) -> bool:
        """Wait within a round; whether the worker is to stop."""
        return self._stopping.wait(seconds)

    @property
    def health(self) -> WorkerHealth:
        # One whose rounds wait by themselves is always in one.
        is_busy = self._is_busy and self._every_seconds > 0.0
        return WorkerHealth(
            name=self.name,
            failures=self._failures,
            error=self._error,
            failures_in_all=self._failures_in_all,
            last_error=self._last_error,
            is_busy=is_busy,
        )

    # ---------------------------------------------------------------- the thread

    def run(self) -> None:
        """Called by the worker's own thread only."""
        self._at_start()
        self._repeat()
        try:
            self._at_end()
        except Exception:
            log.exception("%s could not be ended properly", self.name)

    def _repeat(self) -> None:
        rest = self._first_after
        while not self._is_over(rest):
            # Cleared before the round: what is asked for from now on is seen by the next one.
            self._woken.clear()
            self._is_busy = True
            try:
                answer = self._work()
            except WorkerStopped:
                return
            except Exception as error:  # noqa: BLE001 - the next round may succeed
                rest = self._failed(error)
            else:
                self._worked()
                rest = self._every_seconds if answer is None else answer
            finally:
                self._is_busy = False

    def _is_over(self, rest: float) -> bool:
        if self._failures:
            # A worker that fails is not woken at once, or it would fail as often as it is woken.
            self._stopping.wait(min(rest, FIRST_PAUSE_SECONDS))
            rest -= FIRST_PAUSE_SECONDS
        if rest > 0 and not self._stopping.is_set():
            self._woken.wait(rest)
        return self._stopping.is_set()

    def _failed(self, error: Exception) -> float:
        self._failures += 1
        self._failures_in_all += 1
        self._error = self._last_error = f"{type(error).__name__}: {error}"
        pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures - 1, 16))
        if self._stopping.is_set():
            return pause
        # Not every time: what fails all the time would bury everything else. The controller says why the store is away.
        is_known = isinstance(error, StoreUnavailable)
        if self._failures & (self._failures - 1) == 0:
            log.log(
                logging.WARNING if is_known else logging.ERROR,
                "%s failed, and tries again in %.0f s (%d in a row): %s",
                self.name,
                pause,
                self._failures,
                self._error,
                exc_info=None if is_known or self._failures > 1 else error,
            )
        return pause

    def _worked(self) -> None:
        if self._failures:
            log.warning("%s works again after %d failures", self.name, self._failures)
            self._failures, self._error = 0, ""


class _WorkerThread(threading.Thread):
    def __init__(self, worker: Worker) -> None:
        # Daemons: a server that stops waits for nothing that cannot be found again.
        super().__init__(target=worker.run, name=worker.name, daemon=True)
        self.worker = worker


def workers_alive() -> list[Worker]:
    """All that run in this process, by name."""
    found = [thread.worker for thread in threading.enumerate() if isinstance(thread, _WorkerThread)]
    return sorted(found, key=lambda worker: worker.name)
