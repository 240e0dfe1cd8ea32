"""Ranges of files, and files with strange times."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from corral.control.ports import OpenedOutput, OutputEntry, OutputKind, OutputMember
from corral.server.http.downloads import file_download, range_of
from corral.server.http.problems import Problem
from corral.server.schemas.jobs.files import file_view
from corral.server.storage.readers import PieceStream, Readers


@pytest.mark.parametrize(
    ("wanted", "part"),
    [
        ("bytes=0-", (0, 10)),
        ("bytes=0-0", (0, 1)),
        ("bytes=3-5", (3, 3)),
        ("bytes=3-99", (3, 7)),
        ("bytes=-4", (6, 4)),
        ("bytes=-99", (0, 10)),
        # what is not understood is answered with the whole
        ("bytes=5-3", None),
        ("bytes=-", None),
        ("bytes=0-1,4-5", None),
        ("lines=1-2", None),
        ("bytes=" + "9" * 5000 + "-", None),
    ],
)
def test_ranges(wanted: str, part: tuple[int, int] | None) -> None:
    assert range_of(wanted, 10) == part


@pytest.mark.parametrize(("wanted", "size"), [("bytes=10-", 10), ("bytes=-0", 10), ("bytes=0-", 0), ("bytes=-5", 0)])
def test_ranges_that_are_not_there(wanted: str, size: int) -> None:
    with pytest.raises(Problem) as refused:
        range_of(wanted, size)
    assert refused.value.status == 416
    assert refused.value.headers["Content-Range"] == f"bytes */{size}"


class Strange:
    """A file whose time its program has set to one that no calendar has: file systems keep 64 bits of it."""

    is_directory = False
    size_bytes = 3
    tag = '"1"'

    def __init__(self, modified_at: float) -> None:
        self.modified_at = modified_at

    def pieces(self, offset: int, length: int) -> Iterator[bytes]:
        yield b"abc"[offset : offset + length]

    def members(self) -> Iterator[OutputMember]:
        return iter(())

    def close(self) -> None:
        pass


@pytest.mark.parametrize("modified_at", [1e12, -1e14, 9.2e18])
def test_a_file_with_a_time_that_no_calendar_has_is_listed_and_downloaded(modified_at: float) -> None:
    readers = Readers(name="test")
    opened: OpenedOutput = Strange(modified_at)

    def through(source: Iterator[bytes], close: Callable[[], None] = lambda: None) -> PieceStream:
        return readers.pieces("ann", source, close)

    try:
        answer = file_download(opened, "a.txt", None, None, through)
    finally:
        readers.close()
    assert answer.headers["last-modified"].endswith("GMT")
    entry = OutputEntry(name="a.txt", kind=OutputKind.FILE, size_bytes=3, modified_at=modified_at)
    assert file_view(entry, []).modified_at.endswith("Z")
