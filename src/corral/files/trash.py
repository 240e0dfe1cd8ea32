"""Removing directories in the background: a job may have left millions of files, and the caller must not wait for them.

A directory is renamed into the trash at once, so its old path is free; a thread removes what is in the trash. After a
crash the next server finds the rest there.
"""

from __future__ import annotations

import os
import threading

from corral.files.removal import remove_tree


class Trash:
    """One directory on the same file system as the directories that are discarded. Only the server can write to it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._lock = threading.Lock()
        self._is_emptying = False

    def discard(self, path: str | os.PathLike[str]) -> None:
        """Remove a directory with everything in it, without waiting. No job may be able to replace the directory that
        `path` lies in. A path that does not exist is ignored."""
        try:
            self._take(path)
        except OSError:
            # Another file system, or a directory that may not be moved: the caller has to wait.
            remove_tree(path)
        else:
            self.empty()

    def empty(self) -> None:
        """Start to remove what is in the trash, unless a thread does so already."""
        with self._lock:
            if self._is_emptying or not _names(self._path):
                return
            self._is_emptying = True
        threading.Thread(target=self._empty, name="trash", daemon=True).start()

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
                remove_tree(os.path.join(self._path, name))


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except FileNotFoundError:
        return []
