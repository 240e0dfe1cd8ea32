"""Files of jobs, and logs as files. An interrupted download continues at its last byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from corral.client.http.errors import ServerUnreachable
from corral.client.http.transport import Params, Transport, segment

if TYPE_CHECKING:
    from corral.client.views import FileView

ARCHIVE = "application/gzip"
#: Tries without any new byte before a broken download fails, and the delay between them.
_TRIES = 4
_PAUSE_SECONDS = 0.5

#: Called with the number of received bytes, and with the total if it is known.
Progress = Callable[[int, "int | None"], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetched:
    size_bytes: int
    #: whether it is a .tar.gz of several files
    is_archive: bool


class Files:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, job: str, path: str = "", *, limit: int | None = None) -> Iterator[FileView]:
        """The entries of one directory in a job's output directory, by name."""
        return self._transport.pages(f"/jobs/{segment(job)}/files", {"path": path}, limit=limit)

    def fetch(self, job: str, path: str, target: IO[bytes], progress: Progress = lambda done, total: None) -> Fetched:
        """Write a file, or a directory as .tar.gz, to an open file that can be truncated."""
        return self._fetch(f"/jobs/{segment(job)}/files/content", {"path": path}, target, progress)

    def fetch_logs(
        self, job: str, target: IO[bytes], *, attempt: str | None = None, rank: str | None = None
    ) -> Fetched:
        """Write a log, or several logs as .tar.gz if attempt or rank is `all`."""
        params = {"attempt": attempt, "rank": rank}
        return self._fetch(f"/jobs/{segment(job)}/logs/download", params, target, lambda done, total: None)

    def _fetch(self, address: str, params: Params, target: IO[bytes], progress: Progress) -> Fetched:
        done, tag, tries = 0, "", _TRIES
        while True:
            headers = {"Accept-Encoding": "identity"}
            if done and tag:
                headers |= {"Range": f"bytes={done}-", "If-Range": tag}
            before = done
            try:
                with self._transport.opened(address, params, headers) as answer:
                    if answer.status_code != 206:
                        # The file has changed, or the server sends it only as a whole.
                        done = 0
                        target.seek(0)
                        target.truncate()
                    tag = answer.headers.get("etag", "")
                    length = answer.headers.get("content-length")
                    total = None if length is None else done + int(length)
                    for piece in answer.iter_raw():
                        target.write(piece)
                        done += len(piece)
                        progress(done, total)
                    return Fetched(size_bytes=done, is_archive=answer.headers.get("content-type") == ARCHIVE)
            except ServerUnreachable:
                tries = _TRIES if done > before else tries - 1
                if not tries or not (done and tag):
                    raise
                self._transport.sleep(_PAUSE_SECONDS)
