"""Ends the processes of one instance: at the order of the engine, at the time limit, and what a finished job left.

A stop is SIGTERM to all processes, and SIGKILL after the grace time, repeated while one is left. It is forked from the
spawner, so this module uses the standard library only.
"""

from __future__ import annotations

import os
import signal
import time

from corral.engines.attempts.processes import descendants, send
from corral.engines.local.cgroups import Cgroup
from corral.engines.local.containers.container_job import ContainerJob

#: How long processes that a finished job left behind may take to end by themselves.
LINGER_SECONDS = 0.5
#: How often SIGKILL is repeated while a process is left (a new fork, or a process that is stuck in the kernel).
KILL_AGAIN_SECONDS = 0.05
#: How long a container's runtime may take to notice the end of the container and to clean up.
RUNTIME_SECONDS = 10.0


class JobStop:
    def __init__(self, cgroup: Cgroup | None, container: ContainerJob | None, grace_seconds: float) -> None:
        self._cgroup = cgroup
        self._container = container
        self._grace_seconds = grace_seconds
        self._limit_at: float | None = None
        self._kill_at: float | None = None
        self._stopping = False
        #: SIGTERM is still to be sent: the container had no process yet
        self._warning_due = False
        self.timed_out = False
        #: the engine or the time limit ends the job; it does not end by itself
        self.must_end = False
        #: the first process of the container was killed, because it ignores SIGTERM
        self.ended_first = False

    def limit(self, seconds: float | None) -> None:
        """The time limit begins now."""
        if seconds is not None:
            self._limit_at = time.monotonic() + seconds

    def milliseconds_to_wait(self, *, has_ended: bool) -> float | None:
        """The time until `act` is due without a signal; `has_ended`: the main process has ended."""
        due = [at for at in (self._kill_at, None if self._stopping else self._limit_at) if at is not None]
        if self._stopping and self._container and not has_ended:
            due.append(time.monotonic() + KILL_AGAIN_SECONDS)
        return max(0.0, min(due) - time.monotonic()) * 1000 if due else None

    def order(self, grace_seconds: float) -> None:
        """The engine ends the job."""
        self.must_end = True
        self._terminate(grace_seconds)

    def act(self, *, has_ended: bool) -> None:
        """Send SIGTERM to processes whose time has come."""
        if not has_ended and not self._stopping and self._limit_at is not None and time.monotonic() >= self._limit_at:
            self.timed_out = self.must_end = True
            self._terminate(self._grace_seconds)
        elif has_ended and not self._stopping:
            self._terminate(RUNTIME_SECONDS if self._container else LINGER_SECONDS)
        elif self._stopping and self._container and not has_ended:
            self._go_on(self._container)

    def kill_if_due(self, *, has_ended: bool) -> bool:
        """Send SIGKILL after the grace time. False if only processes are left that cannot be signalled."""
        now = time.monotonic()
        if self._kill_at is None or now < self._kill_at:
            return True
        reached = self.kill_all()
        self._kill_at = now + (RUNTIME_SECONDS if self._container else KILL_AGAIN_SECONDS)
        return reached > 0 or not has_ended

    def kill_all(self) -> int:
        """How many processes were reached."""
        if self._cgroup and not self._container:
            # Not for containers: their processes end with the first one, and the runtime forks to clean up.
            self._cgroup.forbid_forks()
        reached = send(self._processes(), signal.SIGKILL)
        if self._container and not reached:
            # No process of the job is left, but the runtime does not end, or has not started the job.
            reached = send(descendants(os.getpid()), signal.SIGKILL)
        return reached

    def _go_on(self, container: ContainerJob) -> None:
        inside = self._processes()
        if self._warning_due:
            self._warning_due = not container.terminate(inside)
        elif container.end_lonely_first(inside):
            self.ended_first = True

    def _terminate(self, grace_seconds: float) -> None:
        """Send SIGTERM to all processes, and SIGKILL after the grace time; of several stops the earliest end counts."""
        kill_at = time.monotonic() + grace_seconds
        self._kill_at = kill_at if self._kill_at is None else min(self._kill_at, kill_at)
        if self._stopping:
            return
        self._stopping = True
        targets = self._processes()
        if self._container:
            self._warning_due = not self._container.terminate(targets)
            return
        send(targets, signal.SIGTERM)
        send(targets, signal.SIGCONT)  # a suspended process handles SIGTERM only after this

    def _processes(self) -> set[int]:
        """The processes of the job, without those of a container's runtime."""
        found = set(descendants(os.getpid()))
        if self._cgroup:
            found |= self._cgroup.processes()
        return self._container.inside(found) if self._container else found
