"""Ranges of files."""

from __future__ import annotations

import pytest

from corral.server.http.downloads import range_of
from corral.server.http.problems import Problem


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
