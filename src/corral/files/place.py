"""A directory that a job can change, as the server reads and writes it."""

from __future__ import annotations

import contextlib
import itertools
import os
from types import TracebackType
from typing import BinaryIO, cast

from corral.files.descriptors import make_file, open_below, open_file, open_trusted


class Place:
    """A directory that is held open, so that operations stay in it, wherever a job moves it. Every method raises
    OSError, and NotPlain if a job has put something else there."""

    def __init__(self, descriptor: int) -> None:
        """Takes ownership of the descriptor."""
        self.descriptor = descriptor

    @classmethod
    def at(cls, trusted: str | os.PathLike[str], *names: str) -> Place:
        """`trusted` cannot be replaced by a job; every name below it can."""
        outer = open_trusted(trusted)
        try:
            return cls(open_below(outer, names))
        except OSError as error:
            error.filename = os.path.join(trusted, *names)
            raise
        finally:
            os.close(outer)

    def __enter__(self) -> Place:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self.descriptor)

    @property
    def path(self) -> str:
        """A path to this directory while it is held open, for libraries that accept only paths."""
        return f"/proc/self/fd/{self.descriptor}"

    def below(self, *names: str) -> Place:
        return Place(open_below(self.descriptor, names))

    def names(self, limit: int) -> list[str]:
        """Returns at most `limit` names, in no order: a job can make millions."""
        with os.scandir(self.descriptor) as entries:
            return [entry.name for entry in itertools.islice(entries, limit)]

    def stat(self, name: str = "") -> os.stat_result:
        """The status of the directory, or of a name in it; a link is not followed."""
        if not name:
            return os.fstat(self.descriptor)
        return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)

    def make(self, name: str, mode: int = 0o700) -> None:
        """Make a directory with the same owner as this one. An existing directory stays as it is."""
        try:
            os.mkdir(name, mode, dir_fd=self.descriptor)
        except FileExistsError:
            self.below(name).__exit__(None, None, None)
            return
        above = self.stat()
        if above.st_uid == os.geteuid():
            return
        with self.below(name) as made:
            # By descriptor, and only for the server's own files: the name may mean another directory by now.
            if made.stat().st_uid == os.geteuid():
                os.fchown(made.descriptor, above.st_uid, above.st_gid)

    def open_to_read(self, name: str) -> BinaryIO:
        return cast(BinaryIO, os.fdopen(open_file(self.descriptor, name), "rb"))

    def read(self, name: str, limit: int) -> bytes:
        """Reads at most `limit` bytes of a regular file."""
        with self.open_to_read(name) as file:
            return file.read(limit)

    def holds(self, name: str, content: bytes) -> bool:
        """Whether a regular file of that name has this content."""
        try:
            return self.read(name, len(content) + 1) == content
        except OSError:
            return False

    def write(self, name: str, content: bytes, *, mode: int = 0o644, for_owner: bool = False) -> None:
        """Replace a file as a whole. With `for_owner` it gets the owner of the directory."""
        draft = self._draft(content, mode, for_owner=for_owner)
        try:
            os.rename(draft, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        except OSError:
            self.remove(draft)
            raise

    def write_once(self, name: str, content: bytes, *, mode: int = 0o644) -> bool:
        """The same, but False if the name exists already."""
        draft = self._draft(content, mode, for_owner=False)
        try:
            # A hard link is atomic, and never replaces an existing file.
            os.link(draft, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor, follow_symlinks=False)
        except FileExistsError:
            return False
        finally:
            self.remove(draft)
        return True

    def remove(self, name: str) -> None:
        """Remove a name that is not a directory; does nothing if it does not exist."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.descriptor)

    def link(self, name: str, target: str) -> None:
        """A symbolic link, which replaces any file of that name."""
        draft = _random_name()
        os.symlink(target, draft, dir_fd=self.descriptor)
        try:
            os.rename(draft, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        except OSError:
            self.remove(draft)
            raise

    def _draft(self, content: bytes, mode: int, *, for_owner: bool) -> str:
        name = _random_name()
        descriptor = make_file(self.descriptor, name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                above = self.stat()
                if for_owner and above.st_uid != os.geteuid():
                    os.fchown(descriptor, above.st_uid, above.st_gid)
                os.fchmod(descriptor, mode)
        except OSError:
            self.remove(name)
            raise
        return name


def _random_name() -> str:
    """No job can predict it, so no job can have put a file there."""
    return f".corral-{os.urandom(12).hex()}"
