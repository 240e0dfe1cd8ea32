"""Writes a checkpoint atomically, and removes old ones.

The order makes it safe: data, then the manifest, each flushed to the disk; then the rename that makes them a
checkpoint; then the directory that holds the new name. Only after that an older one may be removed. A process that is
killed in between leaves a hidden directory, which a later save removes.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from corral.checkpoint.catalog import list_checkpoints, next_sequence
from corral.checkpoint.layout import (
    FILES,
    MANIFEST,
    STATE,
    Damaged,
    Manifest,
    Name,
    SealedFile,
    digest_steps,
    encode_manifest,
    last_of,
    new_digest,
    open_plain,
)

_DRAFT = ".saving-"
_REMOVED = ".removed-"
#: A save that wrote nothing for this long is dead, wherever its process was.
_LEFTOVER_SECONDS = 3600.0


class SaveError(OSError):
    """A checkpoint was not saved. Earlier checkpoints are unchanged."""


class SealingFile:
    """A file that computes the size and digest of written data, so that nothing has to be read again."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._file = open(path, "xb", buffering=1 << 20)  # noqa: SIM115 (closed by `seal` or `close`)
        self._digest = new_digest()
        self._bytes = 0

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        self._digest.update(data)
        self._file.write(data)
        self._bytes += size
        return size

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def seal(self) -> SealedFile:
        self._file.flush()
        os.fsync(self._file.fileno())
        arrived = os.fstat(self._file.fileno()).st_size
        self._file.close()
        if arrived != self._bytes:
            raise OSError(errno.EIO, f"{arrived} of {self._bytes} bytes arrived in {self._name}")
        return SealedFile(path=self._name, bytes=self._bytes, blake2b=self._digest.hexdigest())


def write_state(folder: Path, dump: Callable[[SealingFile], None]) -> list[SealedFile]:
    file = SealingFile(folder / STATE)
    try:
        dump(file)
        return [file.seal()]
    finally:
        file.close()


def write_files(folder: Path, write: Callable[[Path], None]) -> list[SealedFile]:
    """Calls `write` with a directory, and returns the size and digest of every file in it."""
    inner = folder / FILES
    inner.mkdir()
    write(inner)
    sealed = []
    for where, folders, names in os.walk(inner):
        for name in sorted(folders + names):
            path = Path(where, name)
            if path.is_symlink():
                raise ValueError(
                    f"{path.relative_to(inner)} is a link: what it leads to would not be in the checkpoint"
                )
            if name in names:
                sealed.append(_seal(path, folder))
        _sync_directory(Path(where))
    return sealed


def _seal(path: Path, folder: Path) -> SealedFile:
    name = path.relative_to(folder).as_posix()
    try:
        with open_plain(path, folder) as stream:
            digest = last_of(digest_steps(stream, folder, name))
            os.fsync(stream.fileno())
            return SealedFile(path=name, bytes=os.fstat(stream.fileno()).st_size, blake2b=digest)
    except Damaged as error:
        raise OSError(errno.EIO, error.reason) from error


def publish(
    directory: Path,
    *,
    kind: str,
    step: int,
    at: float,
    attempt: int,
    rank: int,
    world: int,
    write: Callable[[Path], list[SealedFile]],
) -> Path:
    """Write a checkpoint and give it its name. Raises `SaveError` if the disk refuses; then nothing has changed."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _draft(directory, attempt) as draft:
            files = write(draft)
            manifest = Manifest(
                kind=kind, step=step, at=at, attempt=attempt, rank=rank, world=world, files=tuple(files)
            )
            record = SealingFile(draft / MANIFEST)
            try:
                record.write(encode_manifest(manifest))
                record.seal()
            finally:
                record.close()
            _sync_directory(draft)
            path = _rename(draft, directory, step, rank, world)
        _sync_directory(directory)
    except OSError as error:
        reason = error.strerror or str(error)
        text = f"the checkpoint of step {step} was not saved in {directory}: {reason}{_room(directory)}"
        raise SaveError(error.errno or errno.EIO, f"{text}; earlier ones are kept") from error
    return path


def _rename(draft: Path, directory: Path, step: int, rank: int, world: int) -> Path:
    sequence = next_sequence(directory)
    while True:
        path = directory / str(Name(sequence=sequence, step=step, rank=rank, world=world))
        try:
            # Never replaces: a rename fails if the target directory is not empty.
            os.rename(draft, path)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            sequence += 1  # another process took the number meanwhile
        else:
            return path


@contextmanager
def _draft(directory: Path, attempt: int) -> Iterator[Path]:
    path = directory / f"{_DRAFT}{attempt}-{_machine()}-{os.getpid()}-{os.urandom(4).hex()}"
    path.mkdir()
    try:
        yield path
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise


def prune(directory: Path, keep: int, distrusted: Set[str]) -> None:
    """Remove checkpoints older than the newest `keep` good ones; `distrusted` names those whose digest was wrong."""
    good = 0
    for checkpoint in list_checkpoints(directory):
        if good >= keep:
            for part in checkpoint.parts:
                _remove(part)
        elif checkpoint.good and checkpoint.path.name not in distrusted:
            good += 1


def _remove(path: Path) -> None:
    # Hidden first: a checkpoint that is half removed must not be found.
    hidden = path.with_name(f"{_REMOVED}{os.urandom(4).hex()}")
    try:
        os.rename(path, hidden)
    except FileNotFoundError:
        return  # another process removed it
    shutil.rmtree(hidden, ignore_errors=True)


def clean(directory: Path, attempt: int) -> None:
    """Remove leftovers of killed saves. A save that may still be running is not touched."""
    try:
        names = os.listdir(directory)
    except OSError:
        return  # saving will report the problem
    for name in names:
        path = directory / name
        if name.startswith(_REMOVED) or (name.startswith(_DRAFT) and _is_dead(path, attempt)):
            shutil.rmtree(path, ignore_errors=True)


def _is_dead(path: Path, attempt: int) -> bool:
    fields = path.name[len(_DRAFT) :].split("-")
    if len(fields) == 4 and fields[0].isdigit() and fields[2].isdigit():
        if 0 < int(fields[0]) < attempt:
            return True  # an attempt begins when the one before it is over
        if fields[1] == _machine():
            try:
                os.kill(int(fields[2]), 0)
            except ProcessLookupError:
                return True
            except PermissionError:
                pass
    try:
        newest = max(entry.stat().st_mtime for entry in (path, *path.rglob("*")))
    except (OSError, ValueError):
        return False  # it is changing right now
    return time.time() - newest > _LEFTOVER_SECONDS


def _machine() -> str:
    """The scope in which a process id is unique: this machine since its start, seen from this container."""
    digest = new_digest()
    digest.update(os.uname().nodename.encode())
    for source in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            digest.update((os.readlink(source) if "ns" in source.split("/") else Path(source).read_text()).encode())
        except OSError:
            continue
    return digest.hexdigest()[:12]


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems do not support this; there the server keeps the order.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _room(directory: Path) -> str:
    try:
        return f" ({shutil.disk_usage(directory).free / (1 << 20):.0f} MiB free)"
    except OSError:
        return ""
