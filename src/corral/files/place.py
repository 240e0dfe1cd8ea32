"""A directory that a job can change, as the server reads and writes it."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
from types import TracebackType
from typing import BinaryIO, cast

from corral.files.opening import make_file, open_below, open_file, open_trusted


class Place:
    """Held open, so that what is done in it stays in it, wherever a job moves it. Every method raises OSError; NotPlain
    where a job has put something else there."""

    def __init__(self, descriptor: int) -> None:
        """Takes the descriptor over."""
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
        """Leads to this directory as long as it is held open, for libraries that take nothing but paths."""
        return f"/proc/self/fd/{self.descriptor}"

    def below(self, *names: str) -> Place:
        return Place(open_below(self.descriptor, names))

    def names(self, limit: int) -> list[str]:
        """At most so many, in no order: a job can make millions."""
        with os.scandir(self.descriptor) as entries:
            return [entry.name for entry in itertools.islice(entries, limit)]

    def stat(self, name: str = "") -> os.stat_result:
        """Of the directory, or of a name in it; of a link itself."""
        if not name:
            return os.fstat(self.descriptor)
        return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)

    def make(self, name: str, mode: int = 0o700) -> None:
        """A directory that belongs to whom this one belongs to. One that is there stays as it is."""
        try:
            os.mkdir(name, mode, dir_fd=self.descriptor)
        except FileExistsError:
            self.below(name).__exit__(None, None, None)
            return
        above = self.stat()
        if above.st_uid == os.geteuid():
            return
        with self.below(name) as made:
            # By descriptor, and only what is the server's: the name may mean another directory by now.
            if made.stat().st_uid == os.geteuid():
                os.fchown(made.descriptor, above.st_uid, above.st_gid)

    def open_to_read(self, name: str) -> BinaryIO:
        return cast(BinaryIO, os.fdopen(open_file(self.descriptor, name), "rb"))

    def read(self, name: str, limit: int) -> bytes:
        """At most `limit` bytes of a regular file."""
        with self.open_to_read(name) as file:
            return file.read(limit)

    def holds(self, name: str, content: bytes) -> bool:
        """Whether a regular file of that name has this content."""
        try:
            return self.read(name, len(content) + 1) == content
        except OSError:
            return False

    def write(self, name: str, content: bytes, *, mode: int = 0o644, for_owner: bool = False) -> None:
        """Replace a file as a whole. With `for_owner` it belongs to whom the directory belongs to."""
        draft = self._draft(content, mode, for_owner=for_owner)
        try:
            os.rename(draft, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        except OSError:
            self.remove(draft)
            raise

    def write_once(self, name: str, content: bytes, *, mode: int = 0o644) -> bool:
        """The same, but False if anything has that name already."""
        draft = self._draft(content, mode, for_owner=False)
        try:
            # A link appears whole or not at all, and never replaces what is there.
            os.link(draft, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor, follow_symlinks=False)
        except FileExistsError:
            return False
        finally:
            self.remove(draft)
        return True

    def remove(self, name: str) -> None:
        """A name that is no directory; nothing if it is not there."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.descriptor)

    def link(self, name: str, target: str) -> None:
        """A symbolic link in place of whatever file has the name."""
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
    """No job can guess it, so none can have put something there."""
    return f".corral-{secrets.token_hex(12)}"
