"""What an attempt leaves on the file system that the server and the nodes share.

    ROOT/orders/ATTEMPT                what was ordered, its Slurm job, and how it ended for the engine: a line each.
                                       The server's own, until the attempt is forgotten
    ROOT/fetched/ATTEMPT/              files of buckets that it mounts, gone when it is forgotten
    ROOT/stops/ATTEMPT                 how long it has to end, once it was asked to
    ROOT/news                          to which instances something happened
    ROOT/hurry                         when Slurm last got a job: those that end may wait for the next one
    ROOT/never                         a pipe into which nobody writes, to wait at
    ROOT/places/ATTEMPT.RANK/          instance, told, log; attempt and claim in the first of a gang
    ROOT/places/ATTEMPT.RANK.log       its log, once that is all that is kept of the instance
    ROOT/places/ATTEMPT.RANK.log-start from where on its log is kept
    ROOT/forgotten/ATTEMPT             its order, once its end is recorded
    ROOT/folded/ATTEMPT                the same, once nothing but its logs is kept

Files are few, and none is removed while jobs follow each other: to make one is what costs on a file system, the more
so if machines share it, and some look for a long time beside those that were just removed.
Only what is in a place may belong to the job's account: the server acts upon nothing there, and follows no link.
Nodes append whole lines to `told`; one without its newline is not there yet.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from corral.files import Trash

#: Longer than anything that is written in lines here.
MAX_BYTES = 4 << 20
#: The same for what a job's account can write.
MAX_REPORT_BYTES = 16 << 10
_AS_IT_IS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
LOG = "log"
#: Of an instance: what matters until its end is recorded.
_BEFORE_THE_END = ("instance", "told", "attempt", "claim")
_SAFE = re.compile(r"[A-Za-z0-9_-]{1,64}\.\d{1,9}")


def is_safe_id(attempt_id: str) -> bool:
    return _SAFE.fullmatch(attempt_id) is not None


@dataclass(frozen=True, slots=True)
class Layout:
    root: str
    _trash: Trash = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_trash", Trash(f"{self.root}/removed"))

    def prepare(self) -> None:
        self._trash.empty()
        for name in ("orders", "stops", "places", "forgotten", "folded"):
            os.makedirs(f"{self.root}/{name}", exist_ok=True)
        # Jobs' accounts pass to what is theirs, and see nothing else.
        for path in (self.root, f"{self.root}/stops", f"{self.root}/places"):
            os.chmod(path, os.stat(path).st_mode & 0o777 | 0o711)
        with contextlib.suppress(FileExistsError):
            os.mkfifo(self.never)
        os.chmod(self.never, 0o666)
        # Jobs of all accounts read it, whatever the server's umask is.
        os.close(os.open(self.hurry, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644))
        os.chmod(self.hurry, 0o644)

    @property
    def reports(self) -> str:
        return f"{self.root}/news"

    @property
    def hurry(self) -> str:
        return f"{self.root}/hurry"

    @property
    def never(self) -> str:
        return f"{self.root}/never"

    @property
    def places(self) -> str:
        return f"{self.root}/places"

    def order(self, attempt_id: str) -> str:
        return f"{self.root}/orders/{attempt_id}"

    def stop(self, attempt_id: str) -> str:
        return f"{self.root}/stops/{attempt_id}"

    def fetched(self, attempt_id: str) -> str:
        return f"{self.root}/fetched/{attempt_id}"

    def place(self, attempt_id: str, rank: int) -> str:
        return f"{self.root}/places/{attempt_id}.{rank}"

    def was_claimed(self, attempt_id: str) -> bool:
        """Whether corral's script ever ran for it."""
        first = self.place(attempt_id, 0)
        return any(os.path.exists(f"{first}/{name}") for name in ("claim", "told"))

    def was_ordered(self, attempt_id: str) -> bool:
        """Whether Slurm may have heard of it. What an earlier server left half made is gone after this."""
        if read_lines(self.order(attempt_id)):
            return True
        if os.path.exists(self._forgotten(attempt_id)) or os.path.exists(self._folded(attempt_id)):
            return True
        self._remove_places(attempt_id)
        return False

    def live(self) -> list[str]:
        """Those that are not forgotten."""
        return sorted(name for name in os.listdir(f"{self.root}/orders") if is_safe_id(name))

    def mark_live(self, attempt_id: str) -> None:
        """It is about to be ordered."""
        append(self.order(attempt_id), "")

    def forget(self, attempt_id: str, *, delete_logs: bool) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.rename(self.order(attempt_id), self._forgotten(attempt_id))
        if os.path.exists(self.fetched(attempt_id)):
            self._trash.discard(self.fetched(attempt_id))
        if delete_logs:
            self._remove_places(attempt_id)
            for path in (self._forgotten(attempt_id), self._folded(attempt_id), self.stop(attempt_id)):
                _remove(path)

    def unfolded(self) -> list[str]:
        return list(filter(is_safe_id, os.listdir(f"{self.root}/forgotten")))

    def fold(self, attempt_id: str) -> None:
        """Leave the logs of an attempt that is forgotten. Without its place, a script that Slurm starts again
        claims nothing. Implements `corral.engines.attempts.fold_worker.Folds`."""
        for rank in itertools.count():
            place = self.place(attempt_id, rank)
            try:
                # The job's own, maybe: not through a link.
                descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | _AS_IT_IS)
            except FileNotFoundError:
                if not has_folded_log(place):
                    break
                continue
            try:
                is_empty = _fold_place(descriptor, folded_log(place))
            finally:
                os.close(descriptor)
            if is_empty:
                os.rmdir(place)
        _remove(self.stop(attempt_id))

    def note_folded(self, attempt_id: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.rename(self._forgotten(attempt_id), self._folded(attempt_id))

    def _folded(self, attempt_id: str) -> str:
        return f"{self.root}/folded/{attempt_id}"

    def _forgotten(self, attempt_id: str) -> str:
        return f"{self.root}/forgotten/{attempt_id}"

    def _remove_places(self, attempt_id: str) -> None:
        every = (self.place(attempt_id, rank) for rank in itertools.count())
        places = list(itertools.takewhile(lambda place: os.path.lexists(place) or has_folded_log(place), every))
        # The first at last: if it is gone, so are all.
        for place in reversed(places):
            _remove(log_start(place))
            self._trash.discard(place)
            _remove(folded_log(place))

    def note_submission(self, now: float) -> None:
        """Never empty, not even for a moment: jobs read it at any time."""
        descriptor = os.open(self.hurry, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            os.pwrite(descriptor, f"{int(now * 1e6):016d}\n".encode(), 0)
        finally:
            os.close(descriptor)


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _fold_place(place: int, log: str) -> bool:
    """Move the log out of a place and remove what mattered until the end was recorded. False if there is anything else:
    then all of it stays."""
    names = set(os.listdir(place))
    if names - {*_BEFORE_THE_END, LOG}:
        return False
    if LOG in names:
        os.rename(LOG, log, src_dir_fd=place)
    else:
        # What says that there was such an instance.
        os.close(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    for name in names - {LOG}:
        os.unlink(name, dir_fd=place)
    return True


def has_folded_log(place: str) -> bool:
    return os.path.lexists(folded_log(place))


def folded_log(place: str) -> str:
    """Where the log of an instance is once its place is gone."""
    return f"{place}.log"


def log_start(place: str) -> str:
    """Where it is written from where on a log is kept: beside the place of its instance, which may be the job's own."""
    return f"{place}.log-start"


def write_text(path: str | Path, text: str, *, mode: int = 0o600, sync: bool = True) -> None:
    """Whole or not at all; with `sync` also after the machine crashed."""
    fresh = f"{path}.new"
    with open(fresh, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), mode)
        file.write(text)
        if sync:
            file.flush()
            os.fsync(file.fileno())
    os.replace(fresh, path)


def append(path: str, line: str, *, sync: bool = False) -> None:
    """With `sync` it stays also if the machine crashes: what says that an attempt was ordered must, and everything else
    can be found out, or ends that attempt."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, line.encode())
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_lines(path: str | Path) -> list[str]:
    """Those of a short file that are whole; none if it is not there, or no plain file."""
    try:
        with open_plain(path) as file:
            text = file.read(MAX_BYTES).decode("utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError, NotPlain):
        return []
    return text.split("\n")[:-1]


def read_on(path: str | Path, offset: int) -> tuple[list[str], int]:
    """The whole lines from an offset on, and where the next ones begin. Of a file that a job's account can write, no
    more than its first MAX_REPORT_BYTES count."""
    try:
        with open_plain(path) as file:
            file.seek(offset)
            data = file.read(max(0, MAX_REPORT_BYTES - offset))
    except (FileNotFoundError, NotADirectoryError, NotPlain):
        return [], offset
    whole = data[: data.rfind(b"\n") + 1]
    return whole.decode("utf-8", errors="replace").split("\n")[:-1], offset + len(whole)


def read_line(path: str | Path) -> str | None:
    """The first one, if it is there."""
    return next(iter(read_lines(path)), None)


class NotPlain(Exception):
    """A job has put something else where a plain file should be."""


def open_plain(path: str | Path, *, to_write: bool = False) -> BinaryIO:
    """A file in a place that may be a job's own: no link is followed, and nothing is waited for. Raises NotPlain and
    OSError."""
    try:
        descriptor = os.open(path, (os.O_RDWR if to_write else os.O_RDONLY) | _AS_IT_IS)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise NotPlain(str(path)) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotPlain(str(path))
    return os.fdopen(descriptor, "r+b" if to_write else "rb")
