"""The logs that are followed now, one for each instance whose container has started."""

from __future__ import annotations

import threading
from collections.abc import Callable

from corral.engines.kubernetes.api.streams import Streams
from corral.engines.kubernetes.attempts.log_follow import LogFollower
from corral.engines.kubernetes.attempts.pod_attempt import Attempt
from corral.engines.kubernetes.attempts.records import Records

Key = tuple[str, int]


class LogStreams:
    """Safe for several threads. `on_up` gets the attempt, the rank, the time and the devices; `on_done` the attempt
    whose log is complete."""

    def __init__(
        self,
        *,
        streams: Streams,
        records: Records,
        limit_bytes: int,
        log_path: Callable[[str], str],
        on_up: Callable[[str, int, float, str], None],
        on_done: Callable[[str], None],
        is_superseded: Callable[[], bool] = lambda: False,
    ) -> None:
        self._is_superseded = is_superseded
        self._streams = streams
        self._records = records
        self._limit_bytes = limit_bytes
        self._log_path = log_path
        self._on_up = on_up
        self._on_done = on_done
        self._lock = threading.Lock()
        #: None until the event loop has begun it
        self._followers: dict[Key, LogFollower | None] = {}

    def follow(self, attempt: Attempt, rank: int, *, has_ended: bool) -> None:
        key = attempt.id, rank
        with self._lock:
            is_new = key not in self._followers
            if is_new:
                self._followers[key] = None
        if is_new:
            self._streams.call(lambda: self._begin(key, attempt.pods[rank]))
        if has_ended:
            self._streams.call(lambda: self._end(key))

    def is_done(self, attempt_id: str, rank: int) -> bool:
        """Whether the whole log was read, or there is none."""
        with self._lock:
            if (attempt_id, rank) not in self._followers:
                return True
            follower = self._followers[attempt_id, rank]
        return follower is not None and follower.is_done

    def forget(self, attempt_id: str, ranks: int) -> None:
        with self._lock:
            for rank in range(ranks):
                self._followers.pop((attempt_id, rank), None)

    def _begin(self, key: Key, pod: str) -> None:
        attempt_id, rank = key
        if self._is_superseded():
            # To open the log would cut off what the other server has written.
            return
        follower = LogFollower(
            path=self._log_path(pod),
            directory=self._records.log_directory(attempt_id, rank),
            limit_bytes=self._limit_bytes,
            on_up=lambda at, devices: self._on_up(attempt_id, rank, at, devices),
            on_done=lambda: self._on_done(attempt_id),
            is_superseded=self._is_superseded,
        )
        with self._lock:
            self._followers[key] = follower
        self._streams.run(follower.run)

    def _end(self, key: Key) -> None:
        with self._lock:
            follower = self._followers.get(key)
        if follower is not None:
            follower.end()
