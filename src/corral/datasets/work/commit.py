"""Stores a directory as a tree: reads files that may have changed, cuts and hashes them, stores new pieces."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from corral.core.quantities import format_bytes
from corral.datasets.content.chunker import MOST, cuts_of
from corral.datasets.content.piece_writer import Uploader
from corral.datasets.content.pieces import PieceStore
from corral.datasets.errors import DatasetError, Unstable, printable
from corral.datasets.history.records import Entry, decode_list, digest_of, encode_list, encode_tree
from corral.datasets.work.progress import Counter, OnProgress
from corral.datasets.work.scan import FoundDirectory, FoundFile, Opener, scan
from corral.datasets.work.working_index import KnownFile, WorkingIndex

_SEGMENT_BYTES = 8 << 20
_BATCH_BYTES = 4 << 20
_BATCH_FILES = 128

Pieces = list[tuple[bytes, bytes | memoryview]]


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredTree:
    tree: bytes
    files: int
    bytes: int
    new_bytes: int
    #: the files at the time of reading
    known: dict[str, KnownFile]


def store_directory(
    root: int,
    pieces: PieceStore,
    index: WorkingIndex,
    *,
    threads: int,
    clock: Callable[[], float],
    on_progress: OnProgress | None = None,
    max_bytes: int | None = None,
) -> StoredTree:
    """Store everything below an open directory. When this returns, all of it is stored. Raises DatasetError if the
    files are longer than `max_bytes` together by their lengths: then most of it is holes."""
    found = scan(root)
    files = list(found.all_files())
    size = sum(file.stamp.size for file in files)
    if max_bytes is not None and size > max_bytes:
        raise DatasetError(
            f"the files say that they have {format_bytes(size)}, and where they are there is room for "
            f"{format_bytes(max_bytes)}"
        )
    with Uploader(pieces, clock) as uploader:
        run = _Run(root, uploader, Counter(on_progress, files=len(files), size=size), threads)
        known = _unchanged(files, index, pieces, uploader)
        for file in files:
            if file.path in known:
                run.counter.add(files=1, size=file.stamp.size, kept=True)
        known |= run.store([file for file in files if file.path not in known])
        tree = _store_tree(found, known, uploader)
        uploader.finish()
        return StoredTree(tree=tree, files=len(files), bytes=size, new_bytes=uploader.new_bytes, known=known)


def _unchanged(
    files: list[FoundFile], index: WorkingIndex, pieces: PieceStore, uploader: Uploader
) -> dict[str, KnownFile]:
    """Unchanged files whose every piece is still in the storage."""
    maybe = {file.path: known for file in files if (known := index.find(file)) is not None}
    there = dict(zip(maybe, uploader.has([known.digest for known in maybe.values()]), strict=True))
    unchanged = {}
    for path, known in maybe.items():
        if there[path] and known.listed:
            inner = [digest for digest, _ in decode_list(pieces.get(known.digest))]
            there[path] = all(uploader.has(inner))
        if there[path]:
            unchanged[path] = known
    return unchanged


def _store_tree(found: FoundDirectory, known: dict[str, KnownFile], uploader: Uploader) -> bytes:
    entries = [
        Entry(
            name=file.path.rpartition("/")[2],
            kind="file",
            size=file.stamp.size,
            executable=file.executable,
            digest=known[file.path].digest,
            listed=known[file.path].listed,
        )
        for file in found.files
    ]
    entries += [Entry(name=name, kind="link", target=target) for name, target in found.links]
    for inner in found.directories:
        digest = _store_tree(inner, known, uploader)
        entries.append(Entry(name=inner.path.rpartition("/")[2], kind="dir", digest=digest))
    return uploader.add_meta(encode_tree(entries))


class _Run:
    """Reads and cuts in the caller's thread, hashes in others, and takes results in the order of the files."""

    def __init__(self, root: int, uploader: Uploader, counter: Counter, threads: int) -> None:
        self._root = root
        self._uploader = uploader
        self.counter = counter
        self._threads = threads
        self._waiting: deque[tuple[list[FoundFile], Future[Pieces]]] = deque()
        self._known: dict[str, KnownFile] = {}
        #: pieces so far of the large file that is being read
        self._large: list[tuple[bytes, int]] = []

    def store(self, files: list[FoundFile]) -> dict[str, KnownFile]:
        with ThreadPoolExecutor(self._threads, thread_name_prefix="dataset-hash") as pool, Opener(self._root) as opener:
            try:
                for batch in _batches(files):
                    if len(batch) == 1 and batch[0].stamp.size > MOST:
                        self._store_large(batch[0], opener, pool)
                    else:
                        self._push(batch, pool.submit(_read_small, self._root, batch))
                self._drain(0)
            finally:
                pool.shutdown(wait=True, cancel_futures=True)
        return self._known

    def _store_large(self, file: FoundFile, opener: Opener, pool: ThreadPoolExecutor) -> None:
        with opener.open(file) as descriptor:
            for segment, cuts in _segments(descriptor, file):
                self._push([], pool.submit(_hash_segment, segment, cuts))
            self._drain(0)
        listed = self._uploader.add_meta(encode_list(self._large))
        self._known[file.path] = KnownFile(file.stamp, listed, listed=True)
        self._large = []
        self.counter.add(files=1)

    def _push(self, batch: list[FoundFile], future: Future[Pieces]) -> None:
        self._waiting.append((batch, future))
        self._drain(self._threads + 1)

    def _drain(self, most: int) -> None:
        while len(self._waiting) > most:
            batch, future = self._waiting.popleft()
            pieces = future.result()
            self._uploader.add(pieces)
            for file, (digest, _) in zip(batch, pieces, strict=False):
                self._known[file.path] = KnownFile(file.stamp, digest, listed=False)
            if not batch:
                self._large += [(digest, len(data)) for digest, data in pieces]
            self.counter.add(files=len(batch), size=sum(len(data) for _, data in pieces))


def _batches(files: list[FoundFile]) -> Iterator[list[FoundFile]]:
    """Small files together, so that passing them to a thread costs little; a large file alone."""
    batch: list[FoundFile] = []
    size = 0
    for file in files:
        if file.stamp.size > MOST:
            if batch:
                yield batch
                batch, size = [], 0
            yield [file]
            continue
        batch.append(file)
        size += file.stamp.size
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _read_small(root: int, batch: list[FoundFile]) -> Pieces:
    pieces: Pieces = []
    with Opener(root) as opener:
        for file in batch:
            with opener.open(file) as descriptor:
                data = os.pread(descriptor, file.stamp.size, 0)
                if len(data) != file.stamp.size:
                    raise Unstable(printable(file.path))
                pieces.append((digest_of(data), data))
    return pieces


def _segments(descriptor: int, file: FoundFile) -> Iterator[tuple[bytes, list[int]]]:
    at, size = 0, file.stamp.size
    while at < size:
        # The rest behind the last cut is read again: that is cheaper than moving it.
        segment = os.pread(descriptor, min(_SEGMENT_BYTES, size - at), at)
        if len(segment) != min(_SEGMENT_BYTES, size - at):
            raise Unstable(printable(file.path))
        cuts = cuts_of(segment, last=at + len(segment) == size)
        yield segment, cuts
        at += cuts[-1]


def _hash_segment(segment: bytes, cuts: list[int]) -> Pieces:
    view = memoryview(segment)
    parts = [view[begin:end] for begin, end in zip([0, *cuts], cuts, strict=False)]
    return [(digest_of(part), part) for part in parts]
