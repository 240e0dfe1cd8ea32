"""Writes a version into a directory: all files are written beside the target, verified, and moved there at the end.

Data of a killed checkout is reused: correct files, and correct pieces of large files, are not fetched twice.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from corral.datasets.content.blobs import remove_tree, sync_directory
from corral.datasets.content.piece_reader import Wanted, ranges, read_range
from corral.datasets.content.pieces import PieceStore
from corral.datasets.errors import Busy, Damaged, DatasetError, naming
from corral.datasets.history.records import PathEntry, digest_of
from corral.datasets.history.trees import pieces_of
from corral.datasets.work.progress import Counter, OnProgress


@dataclass(kw_only=True, slots=True)
class _File:
    path: Path
    name: str
    size: int
    executable: bool
    #: pieces that are still to be written
    left: int = 0


_Wanted = Wanted[tuple[_File, int]]


def write_tree(
    entries: Sequence[PathEntry],
    folder: Path,
    pieces: PieceStore,
    *,
    version: str,
    threads: int,
    on_progress: OnProgress | None = None,
) -> None:
    """Make the folder hold exactly these entries; it may hold some of them, completely or partly, from an earlier try.

    Only the caller may write in the folder. Raises `Damaged` with the names of the files that a bad piece belongs to.
    """
    fresh = not any(folder.iterdir())
    if not fresh:
        _clear_others(entries, folder)
    files = []
    for item in entries:
        path = folder / item.path
        if item.entry.kind == "dir":
            path.mkdir(exist_ok=True)
        elif item.entry.kind == "file":
            files.append(item)
    counter = Counter(on_progress, files=len(files), size=sum(item.entry.size for item in files))
    wanted = _plan(files, folder, pieces, counter, version, fresh=fresh)
    _fetch(wanted, pieces, counter, threads=max(threads, pieces.blobs.parallel), version=version)
    for item in entries:
        if item.entry.kind == "link":
            # Last, so that nothing is ever written through a link.
            os.symlink(item.entry.target, folder / item.path)


def _clear_others(entries: Sequence[PathEntry], folder: Path) -> None:
    """Removes the files and directories of an earlier try that do not match."""
    kinds = {item.path: item.entry.kind for item in entries}
    for where, folders, names in os.walk(folder, topdown=True):
        for name in [*folders, *names]:
            path = Path(where, name)
            status = path.lstat()
            kind = "dir" if stat.S_ISDIR(status.st_mode) else "file" if stat.S_ISREG(status.st_mode) else "link"
            if kind == "link" or kinds.get(path.relative_to(folder).as_posix()) != kind:
                remove_tree(path) if kind == "dir" else path.unlink()
                if name in folders:
                    folders.remove(name)


def _plan(
    files: Sequence[PathEntry], folder: Path, pieces: PieceStore, counter: Counter, version: str, *, fresh: bool
) -> list[_Wanted]:
    """The targets of each piece, in the order of the pieces in the packs. Files are made with their full size."""
    targets: dict[bytes, list[tuple[_File, int]]] = {}
    for item in files:
        entry = item.entry
        file = _File(path=folder / item.path, name=item.path, size=entry.size, executable=entry.executable)
        with naming(version=version, path=item.path):
            parts = pieces_of(pieces, entry)
        right = set() if fresh else _right_pieces(file, parts)
        at = 0
        for digest, length in parts:
            if (at, digest) not in right:
                targets.setdefault(digest, []).append((file, at))
                file.left += 1
            else:
                counter.add(size=length, kept=True)
            at += length
        if not (fresh and file.left == 1):
            _prepare(file)
        if file.left == 0:
            _finish(file)
            counter.add(files=1)
    wanted = []
    places = pieces.locate(list(targets))
    if None in places:
        pieces.refresh()
        places = pieces.locate(list(targets))
    for digest, place in zip(targets, places, strict=True):
        if place is None:
            names = [file.name for file, _ in targets[digest]]
            where = pieces.blobs.where
            raise Damaged(f"piece {digest.hex()}", f"no pack in {where} holds it", files=names, version=version)
        wanted.append(Wanted(digest, place, targets[digest]))
    return sorted(wanted, key=lambda piece: (piece.place.pack, piece.place.offset))


def _right_pieces(file: _File, parts: Sequence[tuple[bytes, int]]) -> set[tuple[int, bytes]]:
    """The pieces of a file from an earlier try that are correct already."""
    try:
        if file.path.lstat().st_size != file.size:
            file.path.unlink()
            return set()
    except FileNotFoundError:
        return set()
    right = set()
    with open(file.path, "rb") as stream:
        at = 0
        for digest, length in parts:
            if digest_of(stream.read(length)) == digest:
                right.add((at, digest))
            at += length
    return right


def _prepare(file: _File) -> None:
    """Make the file with its full size. A new file of a single piece is made when that is written."""
    descriptor = os.open(file.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        os.ftruncate(descriptor, file.size)
    finally:
        os.close(descriptor)


def _finish(file: _File) -> None:
    if file.executable:
        os.chmod(file.path, 0o755)


def _fetch(wanted: list[_Wanted], pieces: PieceStore, counter: Counter, *, threads: int, version: str) -> None:
    waiting: deque[tuple[list[_Wanted], Future[None]]] = deque()

    def drain(most: int) -> None:
        while len(waiting) > most:
            done, future = waiting.popleft()
            future.result()
            for piece in done:
                for file, _ in piece.targets:
                    file.left -= 1
                    if file.left == 0:
                        _finish(file)
                    counter.add(files=int(file.left == 0), size=piece.place.length)

    with ThreadPoolExecutor(threads, thread_name_prefix="dataset-write") as pool:
        try:
            for group in ranges(wanted):
                waiting.append((group, pool.submit(_write_range, group, pieces, version)))
                drain(2 * threads)
            drain(0)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _write_range(group: list[_Wanted], pieces: PieceStore, version: str) -> None:
    opened: tuple[Path, int] | None = None
    try:
        for piece, part in read_range(group, pieces):
            if isinstance(part, Damaged):
                names = [file.name for file, _ in piece.targets]
                raise Damaged(part.name, part.reason, files=names, version=version)
            for file, at in piece.targets:
                if opened is None or opened[0] != file.path:
                    if opened is not None:
                        os.close(opened[1])
                        opened = None
                    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
                    opened = file.path, os.open(file.path, flags, 0o644)
                _write_at(opened[1], part, at)
    finally:
        if opened is not None:
            os.close(opened[1])


def _write_at(descriptor: int, part: memoryview, at: int) -> None:
    while len(part):
        written = os.pwrite(descriptor, part, at)
        part, at = part[written:], at + written


@contextmanager
def staging(directory: Path) -> Iterator[Path]:
    """The hidden directory beside the target; one process at a time. It stays after an error."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    folder = directory.with_name(f".{directory.name}.checkout")
    folder.mkdir(exist_ok=True)
    if folder.is_symlink():
        raise DatasetError(f"{folder} is a link: take it away")
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(f"another checkout into {directory} is running") from None
        yield folder
    finally:
        os.close(descriptor)


def make_read_only(folder: Path) -> None:
    for where, folders, names in os.walk(folder):
        for name in [*folders, *names]:
            path = os.path.join(where, name)
            if not os.path.islink(path):
                mode = os.stat(path).st_mode
                os.chmod(path, stat.S_IMODE(mode) & ~0o222)
    os.chmod(folder, stat.S_IMODE(folder.stat().st_mode) & ~0o222)


def flush(folder: Path) -> None:
    """Flushes everything that was written in the folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    finally:
        os.close(descriptor)
    sync_directory(folder.parent)
