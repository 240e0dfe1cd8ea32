"""To which instances something happened, told by their nodes: a line for each in one file, to which all of them append.

It says no more than where to look. Who overwrites or empties it, as two nodes may on a network file system, only makes
the server notice later, when it looks at everybody.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator

#: What lies there unread is passed over when it is more, and what was read is thrown away. Everybody's jobs append
#: here: a thousand ends between two looks are less.
LIMIT_BYTES = 64 << 10
_LINE = re.compile(rb"([A-Za-z0-9_-]{1,64}\.\d{1,9})\.\d{1,9}")


class NodeReports:
    """For one reader at a time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._read = 0
        with self._opened() as descriptor:
            # Everybody's jobs append, and only the server reads. What was told before was for an earlier server.
            os.fchmod(descriptor, 0o622)
            os.ftruncate(descriptor, 0)

    def take(self) -> list[str]:
        """The attempts of which something was told since the last call."""
        with self._opened() as descriptor:
            size = os.fstat(descriptor).st_size
            if size < self._read:
                self._read = 0
            unread = size - self._read
            told = os.pread(descriptor, unread, self._read) if 0 < unread <= LIMIT_BYTES else b""
            if size > LIMIT_BYTES:
                os.ftruncate(descriptor, 0)
                self._read = 0
            else:
                # The last line may be half there.
                self._read += told.rfind(b"\n") + 1
        return sorted({match[1].decode() for line in told.split(b"\n")[:-1] if (match := _LINE.fullmatch(line))})

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """Anew each time: that is when a network file system looks whether others have written."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o622)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
