"""A bucket as a directory, by FUSE: reads go through the node's cache, writes go to a temporary file and are uploaded
when the file is closed or synced.

Decides the file semantics of a bucket; `bucket_mounts` decides when it is mounted. New directories that are still empty
exist in this process only: buckets have none.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import mfusepy

from corral.objects.access import NotReachable
from corral.objects.bucket import Bucket, Entry, Replaced

log = logging.getLogger("corral.objects.fuse")

_FILE_MODE = stat.S_IFREG | 0o444
_DIRECTORY_MODE = stat.S_IFDIR | 0o555
_WRITABLE = 0o222
#: Shown as the size of the file system: a bucket has no limit.
_ENDLESS_BLOCKS = 1 << 40


@dataclass(kw_only=True)
class _Open:
    """A file that a program has open."""

    path: str
    entry: Entry | None = None
    #: the written data, until it is uploaded
    staging: int | None = None
    is_changed: bool = False
    lock: Any = None


class BucketFiles(mfusepy.Operations):  # type: ignore[misc]
    use_ns = True

    def __init__(self, bucket: Bucket, *, writable: bool, staging: str) -> None:
        self._bucket = bucket
        self._writable = writable
        self._staging = staging
        self._lock = threading.Lock()
        self._handles: dict[int, _Open] = {}
        self._next_handle = 1
        #: by path: files that are being written, so that other programs see their size
        self._writing: dict[str, _Open] = {}
        self._made: set[str] = set()
        self._mounted_at = time.time_ns()

    # -------------------------------------------------------------------------------------------- listing

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        clean = path.strip("/")
        with self._lock:
            writing, is_made = self._writing.get(clean), clean in self._made
        if writing is not None and writing.staging is not None:
            return self._attributes(is_directory=False, size=os.fstat(writing.staging).st_size, at=time.time_ns())
        if is_made or not clean:
            return self._attributes(is_directory=True, size=0, at=self._mounted_at)
        with _as_errno(path):
            entry = self._bucket.find(path)
        return self._attributes(
            is_directory=entry.is_directory, size=entry.size, at=int(entry.modified_at * 1e9) or self._mounted_at
        )

    def readdir(self, path: str, fh: int) -> list[str]:
        clean = path.strip("/")
        with self._lock:
            mine = {name for name in (*self._made, *self._writing) if name.rpartition("/")[0] == clean and name}
            is_made = clean in self._made
        names = {name.rpartition("/")[2] for name in mine}
        try:
            with _as_errno(path):
                names |= set(self._bucket.listing(path))
        except mfusepy.FuseOSError as error:
            if not (is_made and error.errno == errno.ENOENT):
                raise
        return [".", "..", *sorted(names)]

    def statfs(self, path: str) -> dict[str, int]:
        free = _ENDLESS_BLOCKS if self._writable else 0
        return {"f_bsize": 4096, "f_frsize": 4096, "f_blocks": _ENDLESS_BLOCKS, "f_bfree": free, "f_bavail": free}

    def _attributes(self, *, is_directory: bool, size: int, at: int) -> dict[str, Any]:
        mode = (_DIRECTORY_MODE if is_directory else _FILE_MODE) | (_WRITABLE if self._writable else 0)
        times = {"st_mtime": at, "st_ctime": at, "st_atime": at}
        # Blocks of 512 bytes, as `du` counts them.
        return {"st_mode": mode, "st_nlink": 1, "st_size": size, "st_blocks": -(-size // 512), **times}

    # -------------------------------------------------------------------------------------------- reading

    def open(self, path: str, flags: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            self._check_writable()
            opened = self._staged(path, empty=bool(flags & os.O_TRUNC))
            return self._keep(opened)
        with self._lock:
            writing = self._writing.get(path.strip("/"))
        if writing is not None:
            return self._keep(writing)
        with _as_errno(path):
            return self._keep(_Open(path=path.strip("/"), entry=self._bucket.current(path)))

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        opened = self._handle(fh)
        if opened.staging is not None:
            return os.pread(opened.staging, size, offset)
        assert opened.entry is not None
        with _as_errno(path):
            return self._bucket.read(opened.path, opened.entry, offset, size)

    def release(self, path: str, fh: int) -> int:
        with self._lock:
            opened = self._handles.pop(fh)
            is_last = all(other is not opened for other in self._handles.values())
        if opened.staging is not None and is_last:
            try:
                self._upload(opened)
            finally:
                with self._lock:
                    if self._writing.get(opened.path) is opened:
                        del self._writing[opened.path]
                os.close(opened.staging)
        return 0

    # -------------------------------------------------------------------------------------------- writing

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        self._check_writable()
        opened = self._staged(path, empty=True)
        opened.is_changed = True
        return self._keep(opened)

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        opened = self._handle(fh)
        if opened.staging is None:
            raise mfusepy.FuseOSError(errno.EBADF)
        opened.is_changed = True
        return os.pwrite(opened.staging, data, offset)

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        self._check_writable()
        if fh is not None:
            opened = self._handle(fh)
            if opened.staging is None:
                raise mfusepy.FuseOSError(errno.EBADF)
            os.ftruncate(opened.staging, length)
            opened.is_changed = True
            return 0
        handle = self._keep(self._staged(path, empty=length == 0))
        self.truncate(path, length, handle)
        return self.release(path, handle)

    def flush(self, path: str, fh: int) -> int:
        """`close` waits for this: the program that wrote gets the error of a failed upload."""
        return self.fsync(path, 0, fh)

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        opened = self._handle(fh)
        if opened.staging is not None:
            self._upload(opened)
        return 0

    def unlink(self, path: str) -> int:
        self._check_writable()
        with _as_errno(path):
            self._bucket.find(path)
            self._bucket.remove(path)
        return 0

    def mkdir(self, path: str, mode: int) -> int:
        self._check_writable()
        with self._lock:
            self._made.add(path.strip("/"))
        return 0

    def rmdir(self, path: str) -> int:
        self._check_writable()
        if len(self.readdir(path, 0)) > 2:
            raise mfusepy.FuseOSError(errno.ENOTEMPTY)
        with self._lock:
            self._made.discard(path.strip("/"))
        return 0

    def rename(self, old: str, new: str, flags: int = 0) -> int:
        """Renames a file: copies it inside the bucket and removes the old name. Refused for directories, which would be
        many copies.
        """
        self._check_writable()
        with self._lock:
            is_directory = old.strip("/") in self._made
        with _as_errno(old):
            if is_directory or self._bucket.find(old).is_directory:
                raise mfusepy.FuseOSError(errno.EXDEV)
            self._bucket.rename(old, new)
        return 0

    def chmod(self, path: str, mode: int) -> int:
        return self._without_effect()

    def chown(self, path: str, uid: int, gid: int) -> int:
        return self._without_effect()

    def utimens(self, path: str, times: Any = None) -> int:
        return self._without_effect()

    # -------------------------------------------------------------------------------------------- inside

    def _without_effect(self) -> int:
        """Buckets have no owners, permissions or times of files; programs that set them must not fail."""
        self._check_writable()
        return 0

    def _check_writable(self) -> None:
        if not self._writable:
            raise mfusepy.FuseOSError(errno.EROFS)

    def _handle(self, fh: int) -> _Open:
        with self._lock:
            return self._handles[fh]

    def _keep(self, opened: _Open) -> int:
        with self._lock:
            handle, self._next_handle = self._next_handle, self._next_handle + 1
            self._handles[handle] = opened
            return handle

    def _staged(self, path: str, *, empty: bool) -> _Open:
        """The current file, to be changed. All programs that have it open for writing share one."""
        clean = path.strip("/")
        with self._lock:
            writing = self._writing.get(clean)
        if writing is not None:
            if empty and writing.staging is not None:
                os.ftruncate(writing.staging, 0)
                writing.is_changed = True
            return writing
        descriptor, name = tempfile.mkstemp(dir=self._staging)
        os.unlink(name)
        opened = _Open(path=clean, staging=descriptor, is_changed=empty, lock=threading.Lock())
        if not empty:
            with _as_errno(path):
                self._fill(clean, descriptor)
        with self._lock:
            self._made.discard(clean)
            return self._writing.setdefault(clean, opened)

    def _fill(self, path: str, descriptor: int) -> None:
        entry, offset = self._bucket.current(path), 0
        while offset < entry.size:
            offset += os.pwrite(descriptor, self._bucket.read(path, entry, offset, 1 << 20), offset)

    def _upload(self, opened: _Open) -> None:
        assert opened.staging is not None
        with opened.lock:
            if not opened.is_changed:
                return
            opened.is_changed = False
            try:
                with _as_errno(opened.path):
                    self._bucket.upload(opened.path, opened.staging)
            except BaseException:
                opened.is_changed = True
                raise


@contextmanager
def _as_errno(path: str) -> Iterator[None]:
    """The errno for programs. The message goes to the log."""
    try:
        yield
    except FileNotFoundError:
        raise mfusepy.FuseOSError(errno.ENOENT) from None
    except Replaced as error:
        log.warning("%s", error)
        raise mfusepy.FuseOSError(errno.ESTALE) from None
    except NotReachable as error:
        log.warning("%s: %s", path, error)
        raise mfusepy.FuseOSError(errno.EIO) from None


def mount(bucket: Bucket, mountpoint: str, *, writable: bool, staging: str, is_root: bool) -> None:
    """Serve until it is unmounted."""
    files = BucketFiles(bucket, writable=writable, staging=staging)
    options: dict[str, Any] = {"fsname": "corral", "subtype": "bucket", "default_permissions": True}
    # Read data stays in memory until the file changes.
    options["auto_cache"] = True
    if is_root:
        # Jobs have accounts of their own; the directory around it controls access.
        options["allow_other"] = True
    if not writable:
        options["ro"] = True
    mfusepy.FUSE(files, mountpoint, foreground=True, **options)
