"""The file to which nodes append a line when something happens to one of their instances.

A line only names the instance whose files have changed. If lines are lost, for example because two nodes overwrite each
other on a network file system, the server only notices the change later, when it reads the files of all attempts.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator

#: If more than this is unread, it is skipped; if the file is larger than this, it is emptied. Jobs of all users append
#: here: a thousand ends between two polls are less.
LIMIT_BYTES = 64 << 10
_LINE = re.compile(rb"([A-Za-z0-9_-]{1,64}\.\d{1,9})\.\d{1,9}")


class NodeReports:
    """Reads the reports of nodes. For one reader at a time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._read = 0
        with self._opened() as descriptor:
            # Jobs of all users append, and only the server reads. Older lines were for an earlier server.
            os.fchmod(descriptor, 0o622)
            os.ftruncate(descriptor, 0)

    def take(self) -> list[str]:
        """The attempts with a report since the last call."""
        with self._opened() as descriptor:
            size = os.fstat(descriptor).st_size
            if size < self._read:
                self._read = 0
            unread = size - self._read
            lines = os.pread(descriptor, unread, self._read) if 0 < unread <= LIMIT_BYTES else b""
            if size > LIMIT_BYTES:
                os.ftruncate(descriptor, 0)
                self._read = 0
            else:
                # The last line may be incomplete.
                self._read += lines.rfind(b"\n") + 1
        return sorted({match[1].decode() for line in lines.split(b"\n")[:-1] if (match := _LINE.fullmatch(line))})

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """Opened again each time: that is when a network file system checks for changes by other machines."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o622)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
