"""The console's files, as the build left them: read into memory once, and found by their exact names.

No path is ever built from a request: a name that was not found in the folder does not exist, whatever dots, slashes or
links it contains. `routes/system/home.py` decides which address gets which file.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger("corral.server.console")

#: `make console` writes here; wheels contain this folder.
BUILT = Path(__file__).parent.parent / "console"
INDEX = "index.html"
#: The best first; the build writes the encoded files beside the originals.
ENCODINGS = {"br": ".br", "gzip": ".gz"}
#: Listed here, because the operating system's table of file types differs from machine to machine.
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsoleFile:
    content: bytes
    media_type: str
    #: the ETag of the plain content; an encoded answer has its own
    digest: str
    #: the same content by encoding, where that is smaller
    encoded: Mapping[str, bytes]

    def choose(self, accepted: str) -> tuple[str, bytes]:
        """The encoding to answer with, given an Accept-Encoding header, and the bytes; "" is none."""
        wanted = accepted_encodings(accepted)
        for encoding, content in self.encoded.items():
            if encoding in wanted:
                return encoding, content
        return "", self.content

    def etag(self, encoding: str) -> str:
        return f'"{self.digest}-{encoding}"' if encoding else f'"{self.digest}"'


class ConsoleFiles:
    def __init__(self, folder: Path = BUILT) -> None:
        self._folder = folder
        self._files: dict[str, ConsoleFile] = {}
        #: the state of the index that the files belong to; None if there is none
        self._seen: tuple[int, int] | None = None

    def index(self) -> ConsoleFile | None:
        """The page itself; None if the console has not been built. Detects a new build."""
        now = self._build_now()
        if now != self._seen:
            self._files = dict(_read(self._folder)) if now is not None else {}
            self._seen = now
            log.info("the console has %d files", len(self._files))
        return self._files.get(INDEX)

    def get(self, name: str) -> ConsoleFile | None:
        """One file by its name below the folder, such as `assets/index-1a2b.js`."""
        if self._seen is None:
            self.index()
        return self._files.get(name)

    def _build_now(self) -> tuple[int, int] | None:
        try:
            found = os.lstat(self._folder / INDEX)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_mtime_ns, found.st_ino


def accepted_encodings(header: str) -> set[str]:
    """The encodings that the client lists and does not refuse with q=0."""
    found = set()
    for item in header.lower().split(","):
        name, _, parameters = item.partition(";")
        weight = parameters.replace(" ", "").removeprefix("q=")
        try:
            is_wanted = not parameters or float(weight) > 0
        except ValueError:
            is_wanted = False
        if is_wanted:
            found.add(name.strip())
    return found


def matches(header: str, etag: str) -> bool:
    """Whether an If-None-Match header names this version. Proxies that compress mark theirs as weak."""
    return header.strip() == "*" or etag in {item.strip().removeprefix("W/") for item in header.split(",")}


def _read(folder: Path) -> Iterator[tuple[str, ConsoleFile]]:
    found = dict(_contents(folder))
    suffixes = tuple(ENCODINGS.values())
    for name, content in found.items():
        if name.endswith(suffixes) and name.rpartition(".")[0] in found:
            continue
        yield (
            name,
            ConsoleFile(
                content=content,
                media_type=_MEDIA_TYPES.get(Path(name).suffix, "application/octet-stream"),
                digest=hashlib.sha256(content).hexdigest()[:32],
                encoded={
                    encoding: found[name + suffix] for encoding, suffix in ENCODINGS.items() if name + suffix in found
                },
            ),
        )


def _contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Regular files only: a link could lead anywhere, and the build makes none. Hidden files are left out."""
    for directory, inner, names in os.walk(folder, followlinks=False):
        inner[:] = [name for name in inner if not name.startswith(".")]
        for name in names:
            path = Path(directory, name)
            if name.startswith(".") or path.is_symlink() or not path.is_file():
                continue
            yield path.relative_to(folder).as_posix(), path.read_bytes()
