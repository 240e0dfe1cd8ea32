"""The output of an instance: segments named by the byte offset at which they begin.

The writer keeps only the newest bytes, so a job with much output neither blocks nor fills the disk. Because a segment's
name is its offset, an offset means the same byte before and after a rotation. The spawner imports this module, so it
uses the standard library only.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

PREFIX = "log."
DEFAULT_LIMIT_BYTES = 64 << 20
_SEGMENTS = 8
_READ_TRIES = 3


class LogWriter:
    """Appends to the newest segment and removes the oldest ones. On a full disk output is lost, but the
    job continues.
    """

    def __init__(self, directory: str, limit_bytes: int) -> None:
        self._directory = directory
        self._segment_bytes = max(1, limit_bytes // _SEGMENTS)
        self._starts: list[int] = []
        self._descriptor = -1
        self._offset = 0
        self.dropped_bytes = 0

    @classmethod
    def continued(cls, directory: str, limit_bytes: int, offset: int) -> LogWriter:
        """Continues where an earlier writer stopped, or before: the text after `offset` is replaced."""
        writer = cls(directory, limit_bytes)
        found = LogPlaces(((directory, PREFIX),)).segments()
        for start in [start for start in found if start > offset or start == offset > 0]:
            os.unlink(found.pop(start))
        if found:
            start = max(found)
            writer._starts = sorted(found)
            writer._descriptor = os.open(found[start], os.O_WRONLY | os.O_CLOEXEC)
            end = min(offset - start, os.fstat(writer._descriptor).st_size)
            os.ftruncate(writer._descriptor, end)
            os.lseek(writer._descriptor, end, os.SEEK_SET)
            writer._offset = start + end
        return writer

    @property
    def offset(self) -> int:
        """The offset after the last byte."""
        return self._offset

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                if self._descriptor < 0 or self._offset - self._starts[-1] >= self._segment_bytes:
                    self._rotate()
                room = self._starts[-1] + self._segment_bytes - self._offset
                written = os.write(self._descriptor, view[:room])
            except OSError:
                self.dropped_bytes += len(view)
                return
            self._offset += written
            view = view[written:]

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _rotate(self) -> None:
        while len(self._starts) >= _SEGMENTS:
            os.unlink(os.path.join(self._directory, segment_name(self._starts[0])))
            del self._starts[0]
        path = os.path.join(self._directory, segment_name(self._offset))
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.close()
        self._descriptor = descriptor
        self._starts.append(self._offset)


def segment_name(start: int) -> str:
    return f"{PREFIX}{start:015d}"


@dataclass(frozen=True)
class LogPlaces:
    """The directories that hold the segments of one instance's log: its own, and the attempt's after folding."""

    #: each with the prefix of the names of segments in it
    places: tuple[tuple[str, str], ...]

    def segments(self) -> dict[int, str]:
        """The path of each kept segment by its first offset, oldest first. A segment that is moved from the first
        directory to the second during the call is found in one of them."""
        found: dict[int, str] = {}
        for directory, prefix in self.places:
            try:
                names = os.listdir(directory)
            except (FileNotFoundError, NotADirectoryError):
                continue
            for name in names:
                if name.startswith(prefix) and name[len(prefix) :].isdigit():
                    found[int(name[len(prefix) :])] = os.path.join(directory, name)
        return dict(sorted(found.items()))

    def end(self) -> int:
        """The offset after the last byte written so far."""
        start = 0
        for _ in range(_READ_TRIES):
            found = self.segments()
            if not found:
                return 0
            start = max(found)
            try:
                return start + os.stat(found[start]).st_size
            except FileNotFoundError:
                continue  # rotated away or moved meanwhile
        return start

    def read(self, offset: int, limit: int) -> tuple[bytes, int]:
        """Up to `limit` bytes from `offset` on, and the offset after them. Skips bytes that were rotated away."""
        if offset < 0:
            offset = max(0, self.end() + offset)
        for _ in range(_READ_TRIES):
            found = self.segments()
            if not found:
                return b"", offset
            offset = max(offset, min(found))
            try:
                data = _read_segments(found, offset, limit)
            except FileNotFoundError:
                continue  # gone or moved between listing and opening: list again
            return data, offset + len(data)
        return b"", offset


def _read_segments(found: dict[int, str], offset: int, limit: int) -> bytes:
    collected = bytearray()
    starts = list(found)
    for start, following in zip(starts, [*starts[1:], None], strict=True):
        if following is not None and following <= offset:
            continue
        with open(found[start], "rb") as segment:
            segment.seek(max(0, offset + len(collected) - start))
            collected += segment.read(limit - len(collected))
        if len(collected) >= limit:
            break
    return bytes(collected)
