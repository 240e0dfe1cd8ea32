"""Removing directories in the background: a job may have left millions of files, and the caller must not wait for them.

A directory is renamed into the trash at once, so its old path is free; a thread removes what is in the trash. After a
crash the next server finds the rest there.
"""

from __future__ import annotations

import logging
import os
import threading

from corral.files.removal import remove_tree

log = logging.getLogger("corral.files")


class Trash:
    """One directory on the same file system as the directories that are discarded. Only the server can write to it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._lock = threading.Lock()
        self._is_emptying = False

    def discard(self, path: str | os.PathLike[str]) -> None:
        """Remove a directory with everything in it, or anything else of that name, without waiting. No job may be able
        to replace the directory that `path` lies in. A path that does not exist is ignored. Raises OSError if the path
        can be neither moved nor removed."""
        try:
            self._take(path)
        except OSError as error:
            # Another file system, or a directory that may not be moved: the caller has to wait.
            if not remove_tree(path):
                raise OSError(error.errno, f"it cannot be removed ({error.strerror})", os.fspath(path)) from error
        else:
            self.empty()

    def empty(self) -> None:
        """Start to remove what is in the trash, unless a thread does so already."""
        with self._lock:
            if self._is_emptying or not _names(self._path):
                return
            self._is_emptying = True
        try:
            threading.Thread(target=self._empty, name="trash", daemon=True).start()
        except RuntimeError as error:
            # No thread can be started now: the next call or the next server empties it.
            log.warning("%s cannot be emptied now: %s", self._path, error)
            with self._lock:
                self._is_emptying = False

    def _take(self, path: str | os.PathLike[str]) -> None:
        target = os.path.join(self._path, os.urandom(12).hex())
        try:
            os.rename(path, target)
        except FileNotFoundError:
            if not os.path.lexists(path):
                return
            os.makedirs(self._path, mode=0o700, exist_ok=True)
            os.rename(path, target)

    def _empty(self) -> None:
        tried: set[str] = set()
        while True:
            with self._lock:
                names = [name for name in _names(self._path) if name not in tried]
                if not names:
                    self._is_emptying = False
                    return
            for name in names:
                # A directory that cannot be removed now is tried again by the next call or the next server.
                tried.add(name)
                if not remove_tree(path := os.path.join(self._path, name)):
                    log.warning("%s cannot be removed as a whole; it is tried again later", path)


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except FileNotFoundError:
        return []
    except OSError as error:
        log.warning("%s cannot be emptied: %s", path, error)
        return []
