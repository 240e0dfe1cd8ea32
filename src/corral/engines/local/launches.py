"""Launches in progress: sent to the spawner, and not yet claimed by a supervisor.

This module starts the spawner, sends launches to it, starts another spawner when one dies, and sends a launch again
that no supervisor has claimed in time. Sending twice is safe: only one supervisor can claim an instance.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from corral.control.ports import EnginePart, EnginePartKind, EngineUnavailable
from corral.engines.local.supervisors.spawner_link import SpawnerLink

SPAWNER = "spawner"
#: A launch that no supervisor has claimed after this long is sent again, this many times.
PATIENCE_SECONDS = 30.0
MAX_SENDS = 3
_RESTART_PAUSE_SECONDS = 0.2


@dataclass(kw_only=True, slots=True)
class _Launch:
    payloads: Mapping[int, bytes] = field(default_factory=dict)
    sent_at: float
    sends: int = 1


class Launches:
    """Not safe for several threads: the engine's lock guards it."""

    def __init__(self, spawner_log: str, *, give_up: Callable[[str], None], wake: Callable[[], None]) -> None:
        """`give_up` is called with an attempt that the spawner did not start after `MAX_SENDS` sends, `wake` when the
        thread that polls the spawner's socket must look at it again."""
        self._spawner_log = spawner_log
        self._give_up = give_up
        self._wake = wake
        self._launches: dict[str, _Launch] = {}
        self._link: SpawnerLink | None = None
        self._link_started_at = 0.0
        self._spawner_since: float | None = None
        self._restarts = 0
        self._spawner_error = ""
        self._start_spawner()

    def close(self) -> None:
        if self._link is not None:
            self._link.close()

    def spawner(self) -> EnginePart:
        link = self._link
        return EnginePart(
            name=SPAWNER,
            kind=EnginePartKind.SPAWNER,
            healthy=link is not None,
            detail=f"process {link.pid}" if link is not None else self._spawner_error,
            started_at=self._spawner_since,
            restarts=self._restarts,
            last_error=self._spawner_error,
        )

    def __contains__(self, attempt_id: str) -> bool:
        return attempt_id in self._launches

    def add(self, attempt_id: str, payloads: Mapping[int, bytes]) -> None:
        """Send the instances of an attempt: the message for the spawner by rank."""
        self._launches[attempt_id] = _Launch(payloads=payloads, sent_at=time.monotonic())
        self._send(b"".join(payloads.values()))

    def drop(self, attempt_id: str) -> None:
        """The attempt is claimed, stopped or lost: it is not sent again."""
        self._launches.pop(attempt_id, None)

    def spawner_fileno(self) -> tuple[int, bool]:
        """The descriptor to poll, and whether it should be polled for writing; -1 without a spawner."""
        return (-1, False) if self._link is None else (self._link.fileno(), self._link.has_unsent)

    def serve_spawner(self) -> None:
        """The spawner's socket is ready: send what is left, or start another spawner if this one died."""
        if self._link is None:
            return
        try:
            dead = self._link.is_dead()
            self._link.flush()
        except OSError:
            dead = True
        if dead:
            self._replace_spawner()

    def send_overdue(self) -> None:
        """Send the launches again that no supervisor has claimed in time."""
        if self._link is None:
            if self._launches:
                self._replace_spawner()
            return
        overdue_since = time.monotonic() - PATIENCE_SECONDS
        self._send_again(self._link, [key for key, launch in self._launches.items() if launch.sent_at < overdue_since])

    def _send(self, payload: bytes) -> None:
        if self._link is None:
            self._replace_spawner()
            return
        try:
            self._link.send(payload)
        except OSError:
            self._replace_spawner()  # which sends all launches, this one too
            return
        if self._link.has_unsent:
            self._wake()

    def _start_spawner(self) -> SpawnerLink:
        self._link_started_at = time.monotonic()
        try:
            self._link = SpawnerLink(self._spawner_log)
        except EngineUnavailable as error:
            self._spawner_error = str(error)
            raise
        self._spawner_since = time.time()
        return self._link

    def _replace_spawner(self) -> None:
        """Start another spawner and send it the launches that the dead one may not have started."""
        if self._link is not None:
            self._spawner_error = f"the spawner ended with status {self._link.close()}"
            self._link, self._spawner_since = None, None
        self._restarts += 1
        # A spawner that dies at each start must not cause a busy loop.
        time.sleep(max(0.0, self._link_started_at + _RESTART_PAUSE_SECONDS - time.monotonic()))
        self._send_again(self._start_spawner(), list(self._launches))
        self._wake()

    def _send_again(self, link: SpawnerLink, attempt_ids: Iterable[str]) -> None:
        for attempt_id in attempt_ids:
            launch = self._launches[attempt_id]
            if launch.sends >= MAX_SENDS:
                del self._launches[attempt_id]
                self._give_up(attempt_id)
                continue
            launch.sends += 1
            launch.sent_at = time.monotonic()
            # If the new spawner is dead too, its closed socket brings the watcher here again.
            with contextlib.suppress(OSError):
                link.send(b"".join(launch.payloads.values()))
