"""The routes of files of volumes. Transfers with retries and progress are in `transfers`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import httpx

from corral.client.http.transport import TIMEOUT_SECONDS, Transport, segment

if TYPE_CHECKING:
    from corral.client.views import ChecksumView, UploadView, VolumeFileView, VolumeView

CHECKSUM_HEADER = "X-Checksum"
MODIFIED_HEADER = "X-Modified-At"
LIST_ITEMS = 2000
#: The lowest throughput of a disk or bucket that the timeout allows for.
_SLOWEST_BYTES_PER_SECOND = 4 * 1024 * 1024


def timeout_for(size_bytes: int) -> float:
    """How long the server may take to read or write this number of bytes."""
    return TIMEOUT_SECONDS + size_bytes / _SLOWEST_BYTES_PER_SECOND


class VolumeFiles:
    """`volume` is always an id: another volume could get the name during a transfer."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def find(self, name: str) -> VolumeView:
        """The volume named by `data`, `owner/data` or `v-12`."""
        owner, slash, own_name = name.rpartition("/")
        found: VolumeView = self._transport.get(f"/volumes/{segment(own_name)}", {"owner": owner if slash else None})
        return found

    def list(self, volume: str, path: str = "", *, recursive: bool = False) -> Iterator[VolumeFileView]:
        """The entries of a directory, or everything below it."""
        cursor = None
        while True:
            params = {"path": path, "recursive": recursive, "limit": LIST_ITEMS, "cursor": cursor}
            page = self._transport.get(self._files(volume), params, timeout_seconds=4 * TIMEOUT_SECONDS)
            yield from page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def stat(self, volume: str, path: str) -> VolumeFileView:
        """One file or directory of a volume."""
        found: VolumeFileView = self._transport.get(f"{self._files(volume)}/stat", {"path": path})
        return found

    def opened(self, volume: str, path: str, headers: dict[str, str]) -> AbstractContextManager[httpx.Response]:
        """The content of a file, read in chunks."""
        sent = {"Accept-Encoding": "identity", **headers}
        return self._transport.opened(f"{self._files(volume)}/content", {"path": path}, sent)

    def checksum(self, volume: str, path: str, size_bytes: int) -> ChecksumView:
        """The checksum of a file, with the file's tag."""
        found: ChecksumView = self._transport.get(
            f"{self._files(volume)}/checksum", {"path": path}, timeout_seconds=timeout_for(size_bytes)
        )
        return found

    def put(self, volume: str, path: str, content: bytes, checksum: str, modified_ms: int) -> VolumeFileView:
        """Write a small file in one request."""
        params = {"path": path, "modified_at": time_text(modified_ms)}
        headers = {CHECKSUM_HEADER: checksum}
        found: VolumeFileView = self._transport.put_bytes(f"{self._files(volume)}/content", content, params, headers)
        return found

    def make_directory(self, volume: str, path: str) -> None:
        """Make a directory with its parents."""
        self._transport.put_bytes(f"{self._files(volume)}/directory", b"", {"path": path})

    def delete(self, volume: str, path: str, *, recursive: bool = False) -> None:
        """Delete a file or an empty directory."""
        self._transport.delete(self._files(volume), {"path": path, "recursive": recursive})

    def begin_upload(self, volume: str, path: str, size_bytes: int, part_bytes: int, modified_ms: int) -> UploadView:
        """Start an upload, or continue the open one of the same file."""
        body = {"path": path, "size": size_bytes, "part_bytes": part_bytes, "modified_at": time_text(modified_ms)}
        found: UploadView = self._transport.post(f"/volumes/{segment(volume)}/uploads", body)
        return found

    def put_part(self, volume: str, upload: str, part: int, content: bytes, checksum: str) -> None:
        """Store a part of an upload."""
        self._transport.put_bytes(
            f"{self._upload(volume, upload)}/parts/{part}",
            content,
            headers={CHECKSUM_HEADER: checksum},
            timeout_seconds=timeout_for(len(content)),
        )

    def complete_upload(self, volume: str, upload: str, checksum: str, size_bytes: int) -> VolumeFileView:
        """Make a file of the parts of an upload."""
        found: VolumeFileView = self._transport.post(
            f"{self._upload(volume, upload)}/complete", {"checksum": checksum}, timeout_seconds=timeout_for(size_bytes)
        )
        return found

    def _files(self, volume: str) -> str:
        return f"/volumes/{segment(volume)}/files"

    def _upload(self, volume: str, upload: str) -> str:
        return f"/volumes/{segment(volume)}/uploads/{segment(upload)}"


def time_text(modified_ms: int) -> str:
    """Formats a time like the API: UTC, to the millisecond."""
    moment = datetime.fromtimestamp(modified_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{modified_ms % 1000:03d}Z"


def time_ms(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return int(moment.timestamp()) * 1000 + moment.microsecond // 1000
