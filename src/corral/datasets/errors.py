"""Errors about versions of files, each with a message for users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class DatasetError(Exception):
    """An error about a dataset whose message can be shown to users as it is."""


class BadName(DatasetError):
    """An invalid name of a dataset, a tag or a file."""


class NotFound(DatasetError):
    """No such dataset, version, tag or file."""


class ObjectMissing(DatasetError):
    """An object is not in the storage."""

    def __init__(self, name: str, where: str) -> None:
        super().__init__(f"object {name} is not in {where}")
        self.name = name


class HeadMoved(DatasetError):
    """Another user made a version meanwhile: look at that version, then commit again."""

    def __init__(self, dataset: str, expected: str | None, found: str | None) -> None:
        super().__init__(
            f"the latest version of {dataset} is {short(found)}, not {short(expected)}: it changed meanwhile"
        )
        self.expected = expected
        self.found = found


class Damaged(DatasetError):
    """Stored data has changed: the object, and if known the file and the version that it belongs to."""

    def __init__(self, name: str, reason: str, *, files: Sequence[str] = (), version: str | None = None) -> None:
        of = f"; it belongs to {_some(files)}" if files else ""
        in_version = f" of version {short(version)}" if version else ""
        super().__init__(f"object {name} is damaged: {reason}{of}{in_version}")
        self.name = name
        self.reason = reason
        self.files = tuple(files)
        self.version = version


@contextmanager
def naming(*, version: str | None = None, path: str | None = None) -> Iterator[None]:
    """Adds file and version to the errors of the block, for callers that know which file of which version is read."""
    try:
        yield
    except Damaged as error:
        files = error.files or ((path,) if path is not None else ())
        raise Damaged(error.name, error.reason, files=files, version=error.version or version) from None


class Unstable(DatasetError):
    """A file changed while it was read: the stored content would be neither the old nor the new one."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} changed while it was read: commit again when no program writes to it")
        self.path = path


class NotPlain(DatasetError):
    """Neither a file, a directory nor a symbolic link: versions cannot keep it."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is neither a file, a directory nor a link: take it away, or commit another directory")
        self.path = path


class LocalChanges(DatasetError):
    """An update would overwrite or remove files that no version holds."""

    def __init__(self, directory: str, paths: Sequence[str]) -> None:
        super().__init__(f"{directory} has changes of its own, nothing was touched: {_some(paths)}")
        self.paths = tuple(paths)


class Busy(DatasetError):
    """Another process works at the same place: try again later."""


class LeaseLost(DatasetError):
    """The storage could not be reached for so long that uploaded data may have been removed: run it again."""


class AnotherOwner(DatasetError):
    """Two sources of metadata over one storage would collect each other's files as garbage."""

    def __init__(self, where: str, owner: str, asked: str) -> None:
        super().__init__(f"{where} keeps the files of {owner}; {asked} needs a storage of its own")


class UnknownFormat(DatasetError):
    """Written by a newer corral."""


class GitFailed(DatasetError):
    """The Git repository could not be read or written; the message is Git's own, without the token."""


def short(version: str | None) -> str:
    return version[:12] if version else "none"


def _some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
    return ", ".join(printable(path) for path in paths[:5]) + more


def printable(path: str) -> str:
    """A printable form of a name: names are bytes, and not all of them are text."""
    return path.encode("utf-8", "backslashreplace").decode()
