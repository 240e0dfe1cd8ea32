"""Curves of jobs, out of the files that their programs write: `curves.jsonl` and TensorBoard event files.

A running job's files only grow, so each look reads what is new. Jobs can write anything there: depth, number of files
and bytes are limited, and what is left out is said.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from corral.checkpoint.curves import CURVES
from corral.control.ports import OpenedOutput, OutputKind, OutputMissing, OutputRefused, Outputs
from corral.core.monitoring.curves import CurvePoint, Reported, parse_line, thinned
from corral.core.monitoring.tensorboard import FOOTER_BYTES, HEADER_BYTES, Malformed, record_length, scalars

EVENTS = "events.out.tfevents."
MOST_DEPTH = 5
MOST_ENTRIES = 2_000
MOST_FILES = 40
MOST_CURVES = 200
#: the limit of one look at all files of a job: a scalar has about 50 bytes
MOST_BYTES = 8 << 20
#: Shorter lines and records count as this long: each one has a cost.
LEAST_BYTES = 32
#: Records with images and graphs are longer than scalars, and skipped unread.
MOST_RECORD_BYTES = 64 << 10
MOST_KEPT_POINTS = 20_000
MOST_SHOWN_POINTS = 600
#: A job can write very many curves: then fewer points of each are kept. A point takes about 250 bytes.
MOST_JOB_CURVES = 1_000
MOST_JOB_POINTS = 200_000
KEPT_JOBS = 64
#: points of all jobs that are kept
MOST_POINTS = 1_000_000
_CHUNK = 256 << 10

Path = tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    name: str
    #: the file's directory, or file, below the job's output directory
    source: str
    points: Sequence[CurvePoint]
    #: how many points were reported, thinned ones included
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Curves:
    curves: Sequence[Curve]
    #: whether everything that was found is in them
    is_complete: bool


@dataclass(slots=True)
class _Read:
    """The content read from one file so far."""

    offset: int = 0
    points: dict[str, dict[int, CurvePoint]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    #: whether curves were left out
    is_full: bool = False
    #: whether the next look has more to read
    is_behind: bool = False

    def thin(self, name: str, most: int) -> int:
        """How many points fewer there are."""
        steps = self.points[name]
        self.points[name] = {kept.step: kept for kept in thinned(ordered(steps), most)}
        return len(steps) - len(self.points[name])


@dataclass(slots=True)
class _Job:
    lock: threading.Lock = field(default_factory=threading.Lock)
    files: dict[Path, _Read] = field(default_factory=dict)
    #: in all files
    points: int = 0
    curves: int = 0

    def keep(self, paths: Sequence[Path]) -> None:
        """Only these files; new ones are not read yet."""
        self.files = {path: self.files.get(path, _Read()) for path in paths}
        self._count()

    def begin_anew(self, path: Path) -> None:
        self.files[path] = _Read()
        self._count()

    def take(self, read: _Read, reported: Reported) -> None:
        name, point = reported.name, reported.point
        if name not in read.points:
            if len(read.points) >= MOST_CURVES or self.curves >= MOST_JOB_CURVES:
                read.is_full = True
                return
            read.points[name] = {}
            read.counts[name] = 0
            self.curves += 1
        steps = read.points[name]
        is_new = point.step not in steps
        read.counts[name] += is_new
        self.points += is_new
        # A later attempt that repeats steps replaces what the earlier one reported.
        steps[point.step] = point
        if len(steps) > 2 * MOST_KEPT_POINTS:
            self.points -= read.thin(name, MOST_KEPT_POINTS)
        if self.points > MOST_JOB_POINTS:
            self._thin_all()

    def _thin_all(self) -> None:
        """Half of the points are left, the same number of each curve at most."""
        most = max(2, MOST_JOB_POINTS // 2 // self.curves)
        for read in self.files.values():
            for name in read.points:
                self.points -= read.thin(name, most)

    def _count(self) -> None:
        self.curves = sum(len(read.points) for read in self.files.values())
        self.points = sum(len(steps) for read in self.files.values() for steps in read.points.values())


def ordered(steps: dict[int, CurvePoint]) -> list[CurvePoint]:
    return sorted(steps.values(), key=lambda point: point.step)


class CurveFiles:
    def __init__(self, outputs: Outputs) -> None:
        self._outputs = outputs
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, _Job] = OrderedDict()

    def read(self, job_id: str) -> Curves:
        """The curves of a job, by name. May take a second for a job with millions of values."""
        job = self._job(job_id)
        with job.lock:
            paths, is_complete = self._found(job_id)
            job.keep(paths)
            for path in paths:
                self._catch_up(job_id, path, job, MOST_BYTES // len(paths))
            self._forget_oldest()
            curves = list(_merged(job.files))
            left_out = len(curves) > MOST_CURVES or any(read.is_full or read.is_behind for read in job.files.values())
            return Curves(curves=curves[:MOST_CURVES], is_complete=is_complete and not left_out)

    def _job(self, job_id: str) -> _Job:
        with self._lock:
            job = self._jobs.setdefault(job_id, _Job())
            self._jobs.move_to_end(job_id)
            while len(self._jobs) > KEPT_JOBS:
                self._jobs.popitem(last=False)
            return job

    def _forget_oldest(self) -> None:
        """Keep no more points than allowed; what was forgotten is read again when it is asked for."""
        with self._lock:
            while len(self._jobs) > 1 and sum(job.points for job in self._jobs.values()) > MOST_POINTS:
                self._jobs.popitem(last=False)

    def _found(self, job_id: str) -> tuple[list[Path], bool]:
        """Files that can have curves, and whether all directories were searched."""
        found: list[Path] = []
        folders: list[Path] = [()]
        seen = 0
        for folder in folders:  # grows while it is walked
            try:
                entries, more = self._outputs.entries(job_id, folder, after=None, limit=MOST_ENTRIES)
            except (OutputMissing, OutputRefused):
                continue  # removed, or replaced by a link, meanwhile
            for entry in entries:
                seen += 1
                if entry.kind is OutputKind.DIRECTORY and len(folder) < MOST_DEPTH:
                    folders.append((*folder, entry.name))
                elif entry.kind is OutputKind.FILE and _has_curves(folder, entry.name):
                    found.append((*folder, entry.name))
            if more is not None or seen > MOST_ENTRIES or len(found) > MOST_FILES:
                return found[:MOST_FILES], False
        return found, True

    def _catch_up(self, job_id: str, path: Path, job: _Job, most_bytes: int) -> None:
        try:
            opened = self._outputs.open(job_id, path)
        except (OutputMissing, OutputRefused):
            return
        try:
            if opened.size_bytes < job.files[path].offset:
                job.begin_anew(path)  # it was written anew
            read = job.files[path]
            source = _Source(opened, read.offset, most_bytes)
            step = _next_line if path[-1] == CURVES else _next_record
            left = most_bytes
            while left > 0 and (length := step(source, partial(job.take, read))) > 0:
                read.offset += length
                left -= max(length, LEAST_BYTES)
            read.is_behind = source.is_exhausted or (left <= 0 and source.left > 0)
        finally:
            opened.close()


class _Source:
    """A file by pieces, from an offset on, up to so many bytes at one look."""

    def __init__(self, opened: OpenedOutput, start: int, most_bytes: int) -> None:
        self._opened = opened
        self._began = self._start = start
        self._end = min(opened.size_bytes, start + most_bytes)
        self._buffer = b""
        #: how much of the buffer was used
        self._used = 0

    @property
    def left(self) -> int:
        return self._opened.size_bytes - self._start

    @property
    def left_now(self) -> int:
        """How much more is read at this look."""
        return self._end - self._start

    @property
    def is_fresh(self) -> bool:
        """Whether nothing was read at this look."""
        return self._start == self._began

    @property
    def is_exhausted(self) -> bool:
        """Whether the look ended before the file."""
        return self._end < self._opened.size_bytes

    def peek(self, length: int) -> bytes:
        """The next bytes; fewer at the end."""
        if len(self._buffer) - self._used < length:
            self._fill(length)
        return self._buffer[self._used : self._used + length]

    def line(self) -> bytes:
        """The next line with its end; empty if none is complete. A line that is too long comes in parts."""
        end = self._buffer.find(b"\n", self._used)
        if end < 0:
            self._fill(_CHUNK)
            end = self._buffer.find(b"\n", self._used)
        if 0 <= end < self._used + _CHUNK:
            return self._buffer[self._used : end + 1]
        found = self.peek(_CHUNK)
        return found if len(found) == _CHUNK or (self.is_exhausted and self.is_fresh) else b""

    def skip(self, length: int) -> None:
        self._start += length
        self._used += length

    def _fill(self, length: int) -> None:
        """Drops what was used, and reads on until there is so much, or the look ends."""
        self._buffer, self._used = self._buffer[self._used :], 0
        while len(self._buffer) < length and (at := self._start + len(self._buffer)) < self._end:
            piece = b"".join(self._opened.pieces(at, min(max(_CHUNK, length), self._end - at)))
            if not piece:
                break
            self._buffer += piece


def _next_line(source: _Source, take: Callable[[Reported], None]) -> int:
    line = source.line()
    for reported in parse_line(line) if line else ():
        take(reported)
    source.skip(len(line))
    return len(line)


def _next_record(source: _Source, take: Callable[[Reported], None]) -> int:
    header = source.peek(HEADER_BYTES)
    if len(header) < HEADER_BYTES:
        return 0
    length = record_length(header)
    whole = HEADER_BYTES + length + FOOTER_BYTES
    if whole > source.left:
        return 0  # still being written
    if length <= MOST_RECORD_BYTES and whole > source.left_now and not source.is_fresh:
        return 0  # read at the next look
    if length <= MOST_RECORD_BYTES and whole <= source.left_now:
        record = source.peek(whole)[HEADER_BYTES : HEADER_BYTES + length]
        try:
            for reported in scalars(record):
                take(reported)
        except Malformed:
            pass  # a record of another kind; the next one begins after it
    source.skip(whole)
    return whole


def _has_curves(folder: Path, name: str) -> bool:
    return (name == CURVES and not folder) or name.startswith(EVENTS)


def _merged(files: dict[Path, _Read]) -> Iterator[Curve]:
    """Merges curves by name. Event files of several directories are several runs: then the directory is part of the
    name.
    """
    folders = {path[:-1] for path in files if path[-1] != CURVES}
    steps: dict[tuple[str, str], dict[int, CurvePoint]] = {}
    counts: dict[tuple[str, str], int] = {}
    for path in sorted(files):
        read = files[path]
        own = path[-1] == CURVES
        prefix = "" if own or len(folders) == 1 or not path[:-1] else "/".join(path[:-1]) + "/"
        for name, points in read.points.items():
            key = (prefix + name, CURVES if own else "/".join(path[:-1]))
            steps.setdefault(key, {}).update(points)
            counts[key] = counts.get(key, 0) + read.counts[name]
    for key in sorted(steps):
        name, source = key
        yield Curve(name=name, source=source, points=thinned(ordered(steps[key]), MOST_SHOWN_POINTS), count=counts[key])
