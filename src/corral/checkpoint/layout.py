"""The format of a checkpoint on disk, and when a checkpoint is good.

A checkpoint is a directory `save-SEQUENCE-step-STEP`, in a gang that saves in parts `…-rank-R-of-W`, with

    manifest.json   what was saved, when, by which attempt, and the size and digest of every file
    state           the object that was passed to `save`, or
    files/…         the files of `save_files`

It is written under a hidden name and renamed at the end, so it is there completely or not at all. The sequence number
shows which save came later: neither clocks of different nodes nor steps can, since a program may go back.

The platform reads these directories too, and the owner of a job can put anything there. So reading opens regular files
only, follows no links, and verifies everything that a manifest says.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Generator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

FORMAT = 1
MANIFEST = "manifest.json"
STATE = "state"
FILES = "files"
#: If this file is newer than the last save, the program is asked to save.
REQUEST = ".request"

#: How the payload is loaded: `pickle`, `torch`, or `files` for a directory that is not loaded at all.
KINDS = ("pickle", "torch", "files")

_NAME = re.compile(r"save-([0-9]{6,18})-step-([0-9]{1,18})(?:-rank-([0-9]{1,6})-of-([0-9]{1,6}))?")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_CHUNK_BYTES = 1 << 20
_MANIFEST_LIMIT_BYTES = 16 << 20
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)

Json = dict[str, Any]
_Result = TypeVar("_Result")


class Damaged(Exception):
    """A checkpoint cannot be trusted: it is incomplete, was changed, or is not one at all."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


# The dataclasses of this package are not `kw_only`, which needs Python 3.10. They are built by keyword nevertheless.


@dataclass(frozen=True)
class Name:
    """The parts of the name of a checkpoint's directory."""

    sequence: int
    step: int
    rank: int = 0
    world: int = 1

    def __str__(self) -> str:
        part = f"-rank-{self.rank}-of-{self.world}" if self.world > 1 else ""
        return f"save-{self.sequence:06d}-step-{self.step}{part}"


@dataclass(frozen=True)
class SealedFile:
    """A file of a checkpoint at the time of the save."""

    #: Relative to the checkpoint, with `/`.
    path: str
    bytes: int
    blake2b: str


@dataclass(frozen=True)
class Manifest:
    kind: str
    step: int
    #: Seconds since the epoch when the save began: the state is of that moment, later work is not in it.
    at: float
    #: The attempt of the job that saved it; 0 outside of a job.
    attempt: int
    rank: int
    world: int
    files: tuple[SealedFile, ...]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)


def parse_name(name: str) -> Name | None:
    """Parses the name of a checkpoint. None for other names: hidden files, and files that a program keeps beside
    checkpoints.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    sequence, step, rank, world = match.groups()
    return Name(sequence=int(sequence), step=int(step), rank=int(rank or 0), world=int(world or 1))


def new_digest() -> hashlib.blake2b:
    # Faster than SHA-256 on processors without instructions for it, and in every Python.
    return hashlib.blake2b(digest_size=32)


def encode_manifest(manifest: Manifest) -> bytes:
    body = {"format": FORMAT, **asdict(manifest)}
    return _dump({**body, "checksum": _checksum(body)})


def _checksum(body: Json) -> str:
    digest = new_digest()
    digest.update(_dump(body))
    return digest.hexdigest()


def _dump(body: Json) -> bytes:
    return (json.dumps(body, indent=1, sort_keys=True) + "\n").encode()


def check(folder: Path) -> Manifest:
    """The manifest of a checkpoint whose files have their full length. Raises `Damaged`."""
    return last_of(check_steps(folder, thorough=False))


def check_steps(folder: Path, *, thorough: bool) -> Generator[None, None, Manifest]:
    """The same as a generator, which yields often; `thorough` reads the files and compares digests."""
    manifest = read_manifest(folder)
    for file in manifest.files:
        with open_plain(folder / file.path, folder) as stream:
            found = os.fstat(stream.fileno()).st_size
            if found != file.bytes:
                raise Damaged(folder, f"{file.path} has {found} bytes instead of {file.bytes}")
            if not thorough:
                continue
            digest = yield from digest_steps(stream, folder, file.path)
            if digest != file.blake2b:
                raise Damaged(folder, f"{file.path} was changed: its digest is another one")
    return manifest


def read_manifest(folder: Path) -> Manifest:
    with open_plain(folder / MANIFEST, folder) as stream:
        raw = stream.read(_MANIFEST_LIMIT_BYTES + 1)
    if len(raw) > _MANIFEST_LIMIT_BYTES:
        raise Damaged(folder, f"{MANIFEST} is too large")
    try:
        body = json.loads(raw)
        # Comparing the bytes also finds differences that parsing accepts: spaces, duplicate keys, other spellings of a
        # number.
        if not isinstance(body, dict) or _dump(body) != raw:
            raise ValueError
        if body.pop("checksum") != _checksum(body):
            raise ValueError
    except (ValueError, KeyError, RecursionError) as error:
        raise Damaged(folder, f"{MANIFEST} is damaged") from error
    if body.get("format") != FORMAT:
        raise Damaged(folder, f"{MANIFEST} has format {body.get('format')!r}, and this helper reads {FORMAT}")
    try:
        return _decode(body)
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(folder, f"{MANIFEST} is invalid: {error}") from error


def _decode(body: Json) -> Manifest:
    """A job that writes a manifest can also compute its checksum: types and ranges are checked separately."""
    rank, world = _number(body, "rank"), _number(body, "world")
    if not 0 <= rank < world:
        raise ValueError(f"rank {rank} of {world}")
    if body["kind"] not in KINDS:
        raise ValueError(f"kind {body['kind']!r}")
    at = body["at"]
    if not isinstance(at, float) or not 0 <= at < 1e12:
        raise ValueError(f"at {at!r}")
    if not isinstance(body["files"], list):
        raise TypeError("files is no list")
    return Manifest(
        kind=body["kind"],
        step=_number(body, "step"),
        at=at,
        attempt=_number(body, "attempt"),
        rank=rank,
        world=world,
        files=tuple(_decode_file(file) for file in body["files"]),
    )


def _decode_file(body: Json) -> SealedFile:
    path, digest = body["path"], body["blake2b"]
    if (
        not isinstance(path, str)
        or not path
        or "\0" in path
        or any(part in ("", ".", "..") for part in path.split("/"))
    ):
        raise ValueError(f"path {path!r}")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise ValueError(f"digest {digest!r}")
    return SealedFile(path=path, bytes=_number(body, "bytes"), blake2b=digest)


def _number(body: Json, key: str) -> int:
    value = body[key]
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise ValueError(f"{key} {value!r}")
    return value


def open_plain(path: Path, folder: Path) -> BinaryIO:
    """Open a regular file of a checkpoint for reading; a link, a pipe or a device would lead elsewhere or block the
    reader. From the folder on, every directory on the path is held open: none can be replaced by a link meanwhile."""
    *directories, name = path.relative_to(folder).parts
    held = -1
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _NO_LINKS)
        for directory in directories:
            inner = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | _NO_LINKS, dir_fd=held)
            os.close(held)
            held = inner
        descriptor = os.open(name, os.O_RDONLY | _NO_LINKS, dir_fd=held)
    except (OSError, ValueError) as error:
        raise Damaged(folder, f"{path.name} cannot be opened: {_why(error)}") from error
    finally:
        if held >= 0:
            os.close(held)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Damaged(folder, f"{path.name} is not a plain file")
    return cast(BinaryIO, os.fdopen(descriptor, "rb"))


def digest_steps(stream: BinaryIO, folder: Path, name: str) -> Generator[None, None, str]:
    digest = new_digest()
    try:
        while True:
            chunk = stream.read(_CHUNK_BYTES)
            if not chunk:
                return digest.hexdigest()
            digest.update(chunk)
            yield
    except OSError as error:
        raise Damaged(folder, f"{name} cannot be read: {_why(error)}") from error


def last_of(steps: Generator[None, None, _Result]) -> _Result:
    """The return value of the generator."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(_Result, end.value)


def _why(error: Exception) -> str:
    if not isinstance(error, OSError):
        return str(error)
    return "it is a link" if error.errno == errno.ELOOP else (error.strerror or str(error))
