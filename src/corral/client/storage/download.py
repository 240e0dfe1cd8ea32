"""The download of one file from a volume. It is written to a part file beside the target, which is renamed when it is
complete and has the server's checksum. A remaining part file is continued, unless the source has changed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from corral.client.http.errors import ClientError, ServerUnreachable
from corral.client.http.retries import Persistence
from corral.client.storage.volume_files import CHECKSUM_HEADER, MODIFIED_HEADER, VolumeFiles, time_ms
from corral.core.storage.checksums import Checksum, new_checksum

PART_SUFFIX = ".corral-part"
STATE_SUFFIX = ".corral-part.json"
#: Smaller files are downloaded again instead of continued.
STATE_BYTES = 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
_MAX_NAME_BYTES = 255
#: How often the download of a file that changes meanwhile starts again.
_ROUNDS = 3


class NotVerified(ClientError):
    """The received file does not have the source's checksum, or the source kept changing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Received:
    size_bytes: int
    #: how many of them an earlier download had received
    resumed_bytes: int


def is_unfinished(name: str) -> bool:
    """Whether the name is that of a part file of an interrupted transfer."""
    return name.startswith(".") and name.endswith((PART_SUFFIX, STATE_SUFFIX))


def part_path(target: Path) -> Path:
    name = f".{target.name}{PART_SUFFIX}"
    if len(os.fsencode(name)) > _MAX_NAME_BYTES - len(".json"):
        name = f".{hashlib.blake2b(os.fsencode(target.name), digest_size=16).hexdigest()}{PART_SUFFIX}"
    return target.with_name(name)


class Download:
    def __init__(
        self,
        files: VolumeFiles,
        volume: str,
        path: str,
        target: Path,
        persistence: Persistence,
        progress: Callable[[int], None],
    ) -> None:
        self._files = files
        self._volume = volume
        self._path = path
        self._target = target
        self._persistence = persistence
        self._progress = progress
        self._part = part_path(target)
        self._state = self._part.with_name(self._part.name + ".json")
        self._done = 0
        #: how many bytes an earlier download had received
        self._resumed = 0
        self._tag = ""
        self._modified_ms = 0
        self._expected = ""
        self._checksum: Checksum = new_checksum()

    def run(self) -> Received:
        self._resume()
        self._progress(self._resumed)
        for _ in range(_ROUNDS):
            self._persistence.keep_trying(self._receive, lambda: self._done)
            if self._is_verified():
                self._finish()
                return Received(size_bytes=self._done, resumed_bytes=self._resumed)
            self._restart()
        raise NotVerified(f"{self._path}: it does not have the server's checksum, or changes while it is read")

    def _resume(self) -> None:
        """Continue after the last byte of an earlier download, if there was one."""
        try:
            state = json.loads(self._state.read_text())
            self._tag = str(state["etag"])
            with self._part.open("rb") as part:
                while piece := part.read(_CHUNK_BYTES):
                    self._checksum.update(piece)
                    self._done += len(piece)
        except (OSError, ValueError, KeyError, TypeError):
            self._restart()
        self._resumed = self._done

    def _restart(self) -> None:
        self._progress(-self._done)
        self._done = self._resumed = 0
        self._tag, self._expected, self._checksum = "", "", new_checksum()
        self._state.unlink(missing_ok=True)
        self._part.unlink(missing_ok=True)

    def _receive(self) -> None:
        headers = {}
        if self._done and self._tag:
            headers = {"Range": f"bytes={self._done}-", "If-Range": self._tag}
        with self._files.opened(self._volume, self._path, headers) as answer:
            if answer.status_code != 206 and (self._done or self._part.exists()):
                self._restart()
            total = self._done + int(answer.headers["content-length"])
            self._tag = answer.headers["etag"]
            self._modified_ms = time_ms(answer.headers[MODIFIED_HEADER])
            self._expected = answer.headers.get(CHECKSUM_HEADER, "")
            if total > STATE_BYTES:
                self._state.write_text(json.dumps({"etag": self._tag, "size": total}))
            with self._part.open("ab", buffering=0) as part:
                for piece in answer.iter_raw(_CHUNK_BYTES):
                    self._persistence.check()
                    part.write(piece)
                    self._checksum.update(piece)
                    self._done += len(piece)
                    self._progress(len(piece))
        if self._done < total:
            raise ServerUnreachable("the server", f"{self._path} ended after {self._done} of {total} bytes")

    def _is_verified(self) -> bool:
        if not self._expected:
            found = self._persistence.keep_trying(lambda: self._files.checksum(self._volume, self._path, self._done))
            if found["etag"] != self._tag:
                return False
            self._expected = found["checksum"]
        return self._checksum.hexdigest() == self._expected

    def _finish(self) -> None:
        os.utime(self._part, ns=(self._modified_ms * 1_000_000,) * 2)
        os.replace(self._part, self._target)
        self._state.unlink(missing_ok=True)
