"""The engine's thread: wakes up when a supervisor reports an event, and reports each change of an attempt once.

An event is only the id of an attempt whose files have changed; the files hold the state. A slow rescan finds changes
without an event, for example of a supervisor that was killed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import threading
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from corral.control.live.worker import Worker
from corral.control.ports import AttemptPhase, AttemptStatus
from corral.engines.attempts.aggregation import aggregate, up_since
from corral.engines.local.attempts import Tracked

logger = logging.getLogger(__name__)
_READ_BYTES = 1 << 16


class Watched(Protocol):
    """The methods of the engine that the watcher calls."""

    def look(self, attempt_id: str) -> Tracked | None: ...

    def poll_all(self) -> list[Tracked]: ...

    def spawner_fileno(self) -> tuple[int, bool]: ...

    def serve_spawner(self) -> None: ...


class Watcher:
    def __init__(self, watched: Watched, events_path: str, rescan_seconds: float) -> None:
        self._watched = watched
        self._rescan_seconds = rescan_seconds
        # Opened for reading and writing, so that the pipe reports no end while no supervisor has it open.
        self._events = os.open(events_path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._partial = b""
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._lock = threading.Lock()
        self._asked: set[str] = set()
        self._sinks: list[Callable[[AttemptStatus], None]] = []
        self._closed = False
        self._rescan_at = time.monotonic() + rescan_seconds
        self._worker = Worker("local-engine", self._round, every_seconds=0.0, interrupt=self.wake)

    def prime(self, attempts: Iterable[Tracked]) -> None:
        """Mark the phases of these attempts as reported."""
        for tracked in attempts:
            if tracked.is_over:
                tracked.reported = AttemptPhase.ENDED
            elif up_since(tracked.instances) is not None:
                tracked.reported = AttemptPhase.RUNNING

    def start(self) -> None:
        self._worker.start()

    def subscribe(self, sink: Callable[[AttemptStatus], None]) -> None:
        with self._lock:
            self._sinks.append(sink)

    def look_at(self, attempt_id: str) -> None:
        with self._lock:
            self._asked.add(attempt_id)
        self.wake()

    def wake(self) -> None:
        with self._lock, contextlib.suppress(BlockingIOError):
            if not self._closed:
                os.write(self._wake_write, b"\0")

    def stop(self) -> None:
        if not self._worker.stop():
            return  # the thread hangs: its descriptors stay open until the process ends
        with self._lock:
            self._closed = True
            for descriptor in (self._events, self._wake_read, self._wake_write):
                os.close(descriptor)

    # -------------------------------------------------------------------------------------------- the thread

    def _round(self) -> None:
        self._turn(self._rescan_at)
        if time.monotonic() >= self._rescan_at:
            for tracked in self._watched.poll_all():
                self._report(tracked)
            self._rescan_at = time.monotonic() + self._rescan_seconds

    def _turn(self, rescan_at: float) -> None:
        poll = select.poll()
        poll.register(self._events, select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        spawner, has_unsent = self._watched.spawner_fileno()
        if spawner >= 0:
            poll.register(spawner, select.POLLIN | (select.POLLOUT if has_unsent else 0))
        ready = {descriptor for descriptor, _ in poll.poll(max(0.0, rescan_at - time.monotonic()) * 1000)}
        if self._wake_read in ready:
            os.read(self._wake_read, _READ_BYTES)
        if spawner in ready:
            self._watched.serve_spawner()
        for attempt_id in self._take_events():
            tracked = self._watched.look(attempt_id)
            if tracked is not None:
                self._report(tracked)

    def _take_events(self) -> set[str]:
        with self._lock:
            named, self._asked = self._asked, set()
        with contextlib.suppress(BlockingIOError):
            *lines, self._partial = (self._partial + os.read(self._events, _READ_BYTES)).split(b"\n")
            named.update(line.decode(errors="replace") for line in lines)
        return named

    def _report(self, tracked: Tracked) -> None:
        """Report each phase once and in order, also for a short job that was over before its files were read."""
        if tracked.reported is AttemptPhase.ENDED:
            return
        since = up_since(tracked.instances)
        if tracked.reported is None and since is not None:
            tracked.reported = AttemptPhase.RUNNING
            self._notify(AttemptStatus(attempt_id=tracked.attempt_id, phase=AttemptPhase.RUNNING, at=since))
        if tracked.is_over and (status := aggregate(tracked.attempt_id, tracked.instances)) is not None:
            tracked.reported = AttemptPhase.ENDED
            self._notify(status)

    def _notify(self, status: AttemptStatus) -> None:
        with self._lock:
            sinks = list(self._sinks)
        for sink in sinks:
            try:
                sink(status)
            except Exception:
                logger.exception("a listener failed on %s of %s", status.phase, status.attempt_id)
