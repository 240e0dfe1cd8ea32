"""Many files as one .tar.gz, created while it is sent: only the present piece is in memory."""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

from corral.control.ports import OutputMember
from corral.core.quantities import format_bytes

MEDIA_TYPE = "application/gzip"
#: zlib's parameter for gzip's header.
_GZIP = 31
#: Quick rather than small: most of what is sent this way is compressed already.
_LEVEL = 1


class ChangedWhileRead(Exception):
    """A file became shorter than it was when it was opened."""


def tar_gz(members: Iterable[OutputMember]) -> Iterator[bytes]:
    """Raises ChangedWhileRead, which ends the download: half a file must not look whole. An empty piece means
    that the compressor has no output yet: zeros become very small."""
    packing = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    for block in _tar(members):
        yield packing.compress(block)
    yield packing.flush()


def bounded(members: Iterable[OutputMember], limit_bytes: int | None) -> Iterator[OutputMember]:
    """A file with a size above the limit is replaced by a note: it is sparse, and most of it is a hole."""
    for member in members:
        if limit_bytes is None or member.size_bytes <= limit_bytes:
            yield member
            continue
        note = (
            f"{member.name} is not in this archive: it says that it has {format_bytes(member.size_bytes)}, and a job "
            f"may have {format_bytes(limit_bytes)} on the disk.\n"
        ).encode("utf-8", "surrogateescape")
        yield replace(member, name=f"{member.name}.left-out.txt", size_bytes=len(note), pieces=iter([note]))


def _tar(members: Iterable[OutputMember]) -> Iterator[bytes]:
    for member in members:
        yield _header(member)
        sent = 0
        for piece in member.pieces:
            sent += len(piece)
            yield piece
        if sent != member.size_bytes:
            raise ChangedWhileRead(member.name)
        yield b"\0" * (-sent % tarfile.BLOCKSIZE)
    yield b"\0" * 2 * tarfile.BLOCKSIZE


def _header(member: OutputMember) -> bytes:
    info = tarfile.TarInfo(member.name)
    info.size = member.size_bytes
    info.mtime = int(member.modified_at)
    info.mode = 0o755 if member.is_directory else 0o644
    if member.is_directory:
        info.type = tarfile.DIRTYPE
    elif member.target is not None:
        info.type = tarfile.SYMTYPE
        info.linkname = member.target
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
