"""Executes transfer plans: many files in parallel, each verified, in an order in which an interruption loses nothing.

An error of one file is reported at the end and does not stop the others. An error that all files would have, such as an
unreachable server, ends the transfer at once. Running the same transfer again continues it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import ParamSpec, Protocol

from corral.client.http.errors import ClientError, Forbidden, NotSignedIn, ServerUnreachable
from corral.client.http.retries import Interrupted, Persistence
from corral.client.storage.download import Download
from corral.client.storage.places import LocalSide, PlaceRefused, Side, VolumeSide
from corral.client.storage.sync_plan import Entry, Plan, Tree, plan
from corral.client.storage.upload import LocalSource, Upload, VolumeSource

Params = ParamSpec("Params")

#: Files whose contents are compared at once.
_COMPARED = 8
#: Errors that every other file would have, too.
_FATAL = (NotSignedIn, Forbidden, ServerUnreachable, Interrupted)


class Progress(Protocol):
    """Receives the progress of a transfer, from several threads."""

    def planned(self, files: int, size_bytes: int) -> None: ...

    def carried(self, size_bytes: int) -> None:
        """More bytes were transferred; negative if a file starts again."""

    def file_done(self) -> None: ...


@dataclass(kw_only=True)
class Summary:
    """The outcome of a transfer. `bytes` counts the bytes that were sent or received."""

    files: int = 0
    bytes: int = 0
    #: bytes that an earlier transfer had sent or received already
    resumed_bytes: int = 0
    skipped: int = 0
    deleted: int = 0
    seconds: float = 0.0
    left_out: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return not self.failed


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """The transfer of one file or directory; `source` and `target` are its paths on the two sides."""

    source_side: Side
    target_side: Side
    source: str
    target: str
    tree: Tree
    plan: Plan

    def copies(self) -> Iterator[tuple[str, str, Entry]]:
        for path in self.plan.copy:
            yield joined(self.source, path), joined(self.target, path), self.tree.entries[path]


def joined(root: str, path: str) -> str:
    return "/".join(part for part in (root, path) if part)


def prepared(source_side: Side, source: str, target_side: Side, target: str, *, delete: bool, by_content: bool) -> Task:
    """List both sides of a directory and make a plan."""
    mine, theirs = source_side.tree(source), target_side.tree(target)
    return _planned(source_side, source, mine, target_side, target, theirs, delete, by_content)


def prepared_file(source_side: Side, source: str, target_side: Side, target: str, *, by_content: bool) -> Task:
    """A plan for one file; `target` is the path of the copy."""
    mine, theirs = source_side.entry(source), target_side.entry(target)
    if mine is None:
        raise PlaceRefused(f"there is no {source_side.label(source)}")
    there = {} if theirs is None else {"": theirs}
    return _planned(
        source_side,
        source,
        Tree(entries={"": mine}),
        target_side,
        target,
        Tree(entries=there, keeps_times=target_side.keeps_times),
        delete=False,
        by_content=by_content,
    )


def _planned(
    source_side: Side,
    source: str,
    mine: Tree,
    target_side: Side,
    target: str,
    theirs: Tree,
    delete: bool,
    by_content: bool,
) -> Task:
    equal: set[str] | None = None
    if by_content:

        def is_equal(path: str) -> bool:
            size = mine.entries[path].size
            ours = source_side.checksum(joined(source, path), size)
            return ours == target_side.checksum(joined(target, path), size)

        alike = [path for path, entry in mine.entries.items() if _is_alike(entry, theirs.entries.get(path))]
        with ThreadPoolExecutor(_COMPARED, "comparing") as pool:
            equal = {path for path, same in zip(alike, pool.map(is_equal, alike), strict=True) if same}
    planned = plan(mine, theirs, delete=delete, equal_contents=equal)
    return Task(source_side=source_side, target_side=target_side, source=source, target=target, tree=mine, plan=planned)


def _is_alike(mine: Entry, theirs: Entry | None) -> bool:
    return mine.kind == "file" and theirs is not None and (theirs.kind, theirs.size) == ("file", mine.size)


class Transfer:
    def __init__(self, persistence: Persistence, progress: Progress, jobs: int = 8) -> None:
        self._persistence = persistence
        self._progress = progress
        self._jobs = jobs
        self._summary = Summary()
        self._lock = threading.Lock()
        self._fatal: ClientError | None = None
        #: parts in memory at once, of all files
        self._room = threading.Semaphore(2 * jobs)

    def run(self, tasks: list[Task]) -> Summary:
        """Raises the error that ended the transfer; errors of single files are in the summary."""
        started = time.monotonic()
        self._announce(tasks)
        for task in tasks:
            self._one_by_one(task.target_side.delete, task, task.plan.clear)
            self._one_by_one(task.target_side.make_directory, task, _bare_directories(task.plan))
        with ThreadPoolExecutor(self._jobs, "parts") as self._parts:
            self._many(self._copies(tasks))
        for task in tasks:
            # Files are deleted only after everything was copied.
            if self._summary.is_complete:
                self._one_by_one(task.target_side.delete, task, task.plan.delete)
                self._summary.deleted += len(task.plan.clear) + len(task.plan.delete)
        self._summary.seconds = time.monotonic() - started
        return self._summary

    def _announce(self, tasks: list[Task]) -> None:
        sizes = [task.tree.entries[path].size for task in tasks for path in task.plan.copy]
        self._progress.planned(len(sizes), sum(sizes))
        for task in tasks:
            label = task.target_side.label
            self._summary.skipped += len(task.plan.unchanged)
            self._summary.left_out += [task.source_side.label(joined(task.source, p)) for p in task.plan.left_out]
            self._summary.failed |= {label(joined(task.target, p)): why for p, why in task.plan.refused.items()}

    def _one_by_one(self, action: Callable[[str], None], task: Task, paths: Iterable[str]) -> None:
        for path in paths:
            self._persistence.check()
            target = joined(task.target, path)
            self._attempt(task, target, action, target)
        self._raise_fatal()

    def _copies(self, tasks: list[Task]) -> Iterator[tuple[Task, str, str, Entry]]:
        for task in tasks:
            for source, target, entry in task.copies():
                yield task, source, target, entry

    def _many(self, copies: Iterator[tuple[Task, str, str, Entry]]) -> None:
        """Copy `jobs` files in parallel. After Ctrl-C the running copies stop at the end of a part, not of a file."""

        def work() -> None:
            while self._fatal is None:
                with self._lock:
                    copy = next(copies, None)
                if copy is None:
                    return
                self._attempt(copy[0], copy[2], self._copy, *copy)

        workers = [
            threading.Thread(target=work, name=f"transfer-{number}", daemon=True) for number in range(self._jobs)
        ]
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                worker.join()
        except BaseException:
            self._persistence.stop()
            for worker in workers:
                worker.join()
            raise
        self._raise_fatal()

    def _attempt(
        self, task: Task, target: str, action: Callable[Params, None], *args: Params.args, **kwargs: Params.kwargs
    ) -> None:
        try:
            action(*args, **kwargs)
        except _FATAL as error:
            with self._lock:
                self._fatal = self._fatal or error
            self._persistence.stop()
        except ClientError as error:
            self._fail(task, target, error.message)
        except OSError as error:
            self._fail(task, target, error.strerror or str(error))

    def _fail(self, task: Task, target: str, why: str) -> None:
        with self._lock:
            self._summary.failed[task.target_side.label(target)] = why

    def _raise_fatal(self) -> None:
        if self._fatal is not None:
            raise self._fatal

    def _copy(self, task: Task, source: str, target: str, entry: Entry) -> None:
        if isinstance(task.target_side, VolumeSide):
            size, resumed = self._upload(task, source, target, entry)
        else:
            size, resumed = self._download(task, source, target)
        self._progress.file_done()
        with self._lock:
            self._summary.files += 1
            self._summary.bytes += size - resumed
            self._summary.resumed_bytes += resumed

    def _upload(self, task: Task, path: str, target: str, entry: Entry) -> tuple[int, int]:
        to, origin = task.target_side, task.source_side
        assert isinstance(to, VolumeSide)
        source: LocalSource | VolumeSource
        if isinstance(origin, VolumeSide):
            source = VolumeSource(
                origin.files, origin.volume, origin.at(path), entry.size, entry.modified_ms, self._persistence
            )
        else:
            assert isinstance(origin, LocalSide)
            source = LocalSource(origin.at(path))
        upload = Upload(
            to.files, to.volume, to.at(target), self._persistence, self._progress.carried, self._parts, self._room
        )
        with closing(source):
            sent = upload.run(source)
        return sent.size_bytes, sent.resumed_bytes

    def _download(self, task: Task, path: str, target: str) -> tuple[int, int]:
        to, origin = task.target_side, task.source_side
        if not isinstance(to, LocalSide) or not isinstance(origin, VolumeSide):
            raise PlaceRefused("source or target must be a volume")
        place = to.at(target)
        place.parent.mkdir(parents=True, exist_ok=True)
        received = Download(
            origin.files, origin.volume, origin.at(path), place, self._persistence, self._progress.carried
        ).run()
        return received.size_bytes, received.resumed_bytes


def _bare_directories(planned: Plan) -> list[str]:
    """Directories that are not created implicitly with a file in them."""
    brought = {parent for path in (*planned.copy, *planned.directories) for parent in _parents(path)}
    return [path for path in planned.directories if path not in brought]


def _parents(path: str) -> Iterator[str]:
    at = path.rfind("/")
    while at > 0:
        yield path[:at]
        at = path.rfind("/", 0, at)
