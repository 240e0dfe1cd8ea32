"""The files of attempts on the file system that the server and the nodes share.

    ROOT/orders/ATTEMPT                the order, its Slurm job, and the end that the engine decided: a line each.
                                       The server's own, until the attempt is forgotten
    ROOT/fetched/ATTEMPT/              files of buckets that it mounts, removed when it is forgotten
    ROOT/stops/ATTEMPT                 the grace time, once it is to stop
    ROOT/news                          reports of nodes: the instances to which something happened
    ROOT/hurry                         when a job was last submitted: jobs that end may wait for the next one
    ROOT/never                         a pipe that is never written to: scripts wait by reading from it
    ROOT/places/ATTEMPT.RANK/          instance and log; attempt and claim in the first of a gang. The instance's
                                       environment may hold secrets: the node empties the file once it has read it
    ROOT/places/ATTEMPT.RANK/told      the reports of the node about the instance
    ROOT/places/ATTEMPT.RANK.log       its log after folding
    ROOT/places/ATTEMPT.RANK.log-start the offset from which on its log is kept
    ROOT/forgotten/ATTEMPT             its order, once its end is recorded
    ROOT/folded/ATTEMPT                the same, after folding
    ROOT/new                           restored from a backup: Slurm may have jobs of which there is no record

There are few files, and none is removed while jobs are launched: creating files is slow on shared file systems, and on
some even slower after files were removed. Only the directories in `places` may belong to the job's account: the server
trusts nothing in them, and follows no link. Nodes append whole lines to `…/told`; a line without its newline is
ignored.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import logging
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from corral.engines.attempts.json_files import write_all
from corral.files.trash import Trash

log = logging.getLogger("corral.engines.slurm")

#: Longer than any file of lines here.
MAX_BYTES = 4 << 20
#: The same for files that a job's account can write.
MAX_REPORT_BYTES = 16 << 10
_AS_IT_IS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
LOG = "log"
#: Files of an instance that are needed until its end is recorded; the last two are those of an image.
_BEFORE_THE_END = ("instance", "told", "attempt", "claim", "pull", "runner")
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
        if os.path.exists(f"{self.root}/engine-id") and not os.path.exists(f"{self.root}/orders"):
            append(self._new, "", sync=True)
        for name in ("orders", "stops", "places", "forgotten", "folded"):
            os.makedirs(f"{self.root}/{name}", exist_ok=True)
        # Accounts of jobs may pass to their own directories, and list nothing.
        for path in (self.root, f"{self.root}/stops", f"{self.root}/places"):
            os.chmod(path, os.stat(path).st_mode & 0o777 | 0o711)
        with contextlib.suppress(FileExistsError):
            os.mkfifo(self.never)
        os.chmod(self.never, 0o666)
        # Jobs of all accounts read it, whatever the server's umask is.
        os.close(os.open(self.hurry, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644))
        os.chmod(self.hurry, 0o644)

    @property
    def _new(self) -> str:
        return f"{self.root}/new"

    @property
    def may_adopt(self) -> bool:
        """Whether Slurm may have jobs of which there is no record, after a restore."""
        return os.path.exists(self._new)

    def note_adopted(self) -> None:
        self._remove(self._new)

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

    def was_claimed(self, attempt_id: str, rank: int) -> bool:
        """Whether corral's script ever ran for this instance. The script of a gang runs on the first node before Slurm
        starts the instances: that counts for none of them."""
        return os.path.exists(f"{self.place(attempt_id, rank)}/told")

    def was_ordered(self, attempt_id: str) -> bool:
        """Whether the attempt may have been submitted. Removes incomplete files of an earlier server."""
        if read_lines(self.order(attempt_id)):
            return True
        if os.path.exists(self._forgotten(attempt_id)) or os.path.exists(self._folded(attempt_id)):
            return True
        self._remove_places(attempt_id)
        return False

    def ranks(self, attempt_id: str) -> int:
        """The number of instances that have a directory."""
        return next(rank for rank in itertools.count() if not os.path.isdir(self.place(attempt_id, rank)))

    def live(self) -> list[str]:
        """The attempts that are not forgotten."""
        return sorted(name for name in os.listdir(f"{self.root}/orders") if is_safe_id(name))

    def mark_live(self, attempt_id: str) -> None:
        """The attempt is about to be ordered."""
        append(self.order(attempt_id), "")

    def forget(self, attempt_id: str, *, delete_logs: bool) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.rename(self.order(attempt_id), self._forgotten(attempt_id))
        self._empty_instances(attempt_id)
        if os.path.exists(self.fetched(attempt_id)):
            self._trash.discard(self.fetched(attempt_id))
        if delete_logs:
            self._remove_places(attempt_id)
            for path in (self._forgotten(attempt_id), self._folded(attempt_id), self.stop(attempt_id)):
                self._remove(path)

    def unfolded(self) -> list[str]:
        return list(filter(is_safe_id, os.listdir(f"{self.root}/forgotten")))

    def fold(self, attempt_id: str) -> None:
        """Keep only the logs of a forgotten attempt. Without its directory, a script that Slurm starts again claims
        nothing. Implements `corral.engines.attempts.fold_worker.Folds`."""
        for rank in itertools.count():
            place = self.place(attempt_id, rank)
            try:
                # It may belong to the job: links are not followed.
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
        self._remove(self.stop(attempt_id))

    def note_folded(self, attempt_id: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.rename(self._forgotten(attempt_id), self._folded(attempt_id))

    def _folded(self, attempt_id: str) -> str:
        return f"{self.root}/folded/{attempt_id}"

    def _forgotten(self, attempt_id: str) -> str:
        return f"{self.root}/forgotten/{attempt_id}"

    def _empty_instances(self, attempt_id: str) -> None:
        """The environment of an instance that never began may hold secrets. The file itself stays until the attempt is
        folded: removing files would slow down launches."""
        for rank in itertools.count():
            place = self.place(attempt_id, rank)
            if not os.path.lexists(place):
                return
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, NotPlain):
                try:
                    with open_of_job(f"{place}/instance", to_write=True) as file:
                        if os.fstat(file.fileno()).st_size:
                            file.truncate(0)
                except PermissionError as error:
                    log.warning("the environment of attempt %s cannot be emptied: %s", attempt_id, error)

    def _remove_places(self, attempt_id: str) -> None:
        every = (self.place(attempt_id, rank) for rank in itertools.count())
        places = list(itertools.takewhile(lambda place: os.path.lexists(place) or has_folded_log(place), every))
        # Rank 0 last: if it is gone, all are gone.
        for place in reversed(places):
            self._remove(log_start(place))
            self._trash.discard(place)
            # A job may have put a directory where its log was.
            self._remove(folded_log(place))

    def _remove(self, path: str) -> None:
        """Remove a file, or anything else that a job put there."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            return
        except OSError:
            self._trash.discard(path)

    def note_submission(self, now: float) -> None:
        """The file is never empty, not even for a moment: jobs read it at any time."""
        descriptor = os.open(self.hurry, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            os.pwrite(descriptor, f"{int(now * 1e6):016d}\n".encode(), 0)
        finally:
            os.close(descriptor)


def _fold_place(place: int, log: str) -> bool:
    """Move the log out of the directory and remove the files that were needed until the end was recorded. False if
    there are other files: then all of them stay."""
    names = set(os.listdir(place))
    if names - {*_BEFORE_THE_END, LOG} or not all(_is_own_file(place, name) for name in names):
        return False
    if LOG in names:
        os.rename(LOG, log, src_dir_fd=place)
    else:
        # It shows that the instance existed.
        os.close(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    for name in names - {LOG}:
        os.unlink(name, dir_fd=place)
    return True


def _is_own_file(place: int, name: str) -> bool:
    """Whether a name in a directory is a regular file with the directory's owner and without a second hard link: a job
    could have linked a file of another account there."""
    return _is_own(os.stat(name, dir_fd=place, follow_symlinks=False), os.fstat(place))


def _is_own(file: os.stat_result, directory: os.stat_result) -> bool:
    return stat.S_ISREG(file.st_mode) and file.st_nlink == 1 and file.st_uid == directory.st_uid


def has_folded_log(place: str) -> bool:
    return os.path.lexists(folded_log(place))


def folded_log(place: str) -> str:
    """The path of an instance's log after folding."""
    return f"{place}.log"


def log_start(place: str) -> str:
    """The path of the file with the first kept offset of a log: beside the instance's directory, which may belong to
    the job."""
    return f"{place}.log-start"


def write_text(path: str | Path, text: str, *, mode: int = 0o600, sync: bool = True) -> None:
    """Atomic; with `sync` also if the machine crashes."""
    fresh = f"{path}.new"
    with open(fresh, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), mode)
        file.write(text)
        if sync:
            file.flush()
            os.fsync(file.fileno())
    os.replace(fresh, path)


def append(path: str, line: str, *, sync: bool = False) -> None:
    """Appends a line. With `sync` it survives a crash of the machine. The order of an attempt must survive; a loss of
    other lines can be repaired, or ends that attempt.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, line.encode())
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_lines(path: str | Path) -> list[str]:
    """The complete lines of a short file; empty if it does not exist or is not a regular file."""
    try:
        with open_plain(path) as file:
            text = file.read(MAX_BYTES).decode("utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError, NotPlain):
        return []
    return text.split("\n")[:-1]


def read_on(path: str | Path, offset: int) -> tuple[list[str], int]:
    """The complete lines from an offset on, and the next offset. Of a file that a job's account can write, only the
    first MAX_REPORT_BYTES count. Raises OSError if it cannot be read."""
    try:
        with open_of_job(path) as file:
            file.seek(offset)
            data = file.read(max(0, MAX_REPORT_BYTES - offset))
    except (FileNotFoundError, NotADirectoryError, NotPlain):
        return [], offset
    whole = data[: data.rfind(b"\n") + 1]
    return whole.decode("utf-8", errors="replace").split("\n")[:-1], offset + len(whole)


def read_line(path: str | Path) -> str | None:
    """The first line, or None."""
    return next(iter(read_lines(path)), None)


class NotPlain(Exception):
    """A job has put something else where a regular file is expected."""


def open_plain(path: str | Path) -> BinaryIO:
    """Open a regular file to read it: follows no link, never waits. Raises NotPlain and OSError."""
    return _opened(str(path))


def open_of_job(path: str | Path, *, to_write: bool = False) -> BinaryIO:
    """The same for a file in a directory that may belong to a job. A file that has a second hard link, or another owner
    than the directory, is not plain: with a hard link a job could have the server read or change a file of another
    account."""
    place, name = os.path.split(path)
    directory = os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        file = _opened(name, directory=directory, to_write=to_write)
        if not _is_own(os.fstat(file.fileno()), os.fstat(directory)):
            file.close()
            raise NotPlain(str(path))
        return file
    finally:
        os.close(directory)


def _opened(path: str, *, directory: int | None = None, to_write: bool = False) -> BinaryIO:
    try:
        descriptor = os.open(path, (os.O_RDWR if to_write else os.O_RDONLY) | _AS_IT_IS, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise NotPlain(path) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotPlain(path)
    return os.fdopen(descriptor, "r+b" if to_write else "rb")
