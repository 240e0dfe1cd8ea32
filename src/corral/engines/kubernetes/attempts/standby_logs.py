"""The logs that the leader has read from pods, for a server that stands by and has no engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from corral.control.ports import LogChunk
from corral.engines.kubernetes.attempts.pods import is_safe_id
from corral.engines.kubernetes.attempts.records import Records


class KubernetesLogs:
    """Implements `corral.control.ports.AttemptLogs`."""

    def __init__(self, root: Path, is_over: Callable[[str], bool]) -> None:
        self._records = Records(root)
        self._is_over = is_over

    def has(self, attempt_id: str) -> bool:
        return is_safe_id(attempt_id) and self._records.has(attempt_id)

    def logs(self, attempt_id: str, rank: int, offset: int, limit: int) -> LogChunk:
        if not is_safe_id(attempt_id):
            return LogChunk(data=b"", next_offset=max(0, offset), at_end=True)
        # Checked before reading: nothing is written to the log after the end.
        is_over = self._is_over(attempt_id)
        places = self._records.log(attempt_id, rank)
        data, next_offset = places.read(offset, max(1, limit))
        return LogChunk(data=data, next_offset=next_offset, at_end=is_over and next_offset >= places.end())
