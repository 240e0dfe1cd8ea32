"""Logs that are followed through the API: nothing is lost or repeated by breaks and restarts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from corral.engines.attempts.log_segments import PREFIX, LogPlaces, LogWriter
from corral.engines.kubernetes.attempts import log_follow
from corral.engines.kubernetes.attempts.log_follow import LogFollower, StampedLines
from tests.unit.engines.kubernetes.api_server import Answer, Asked, api_server

T = "2026-01-01T00:00:{}.{}00000000Z "


def line(second: int, tenth: int, text: str) -> bytes:
    return (T.format(f"{second:02}", tenth) + text).encode()


UP = line(1, 0, "corral-up GPU-1\n")
WHOLE = [UP, line(1, 1, "one\n"), line(1, 1, "two\n"), line(2, 0, "three\n"), line(3, 0, "x" * 40_000 + "\n")]
TEXT = b"one\ntwo\nthree\n" + b"x" * 40_000 + b"\n"


class Follow:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.up: list[tuple[float, str]] = []
        #: another server leads from this request on
        self.superseded_at = 1 << 30

    def run(self, answers: list[Answer]) -> list[Asked]:
        left = iter(answers)
        with api_server(lambda _: next(left)) as server:

            async def follow() -> None:
                follower = LogFollower(
                    path="/log",
                    directory=self.directory,
                    limit_bytes=1 << 20,
                    on_up=lambda at, devices: self.up.append((at, devices)),
                    on_done=lambda: None,
                    is_superseded=lambda: len(server.asked) >= self.superseded_at,
                )
                follower.end()
                async with httpx.AsyncClient(base_url=server.url) as client:
                    await follower.run(client)

            asyncio.run(follow())
            return server.asked

    def text(self) -> bytes:
        return LogPlaces(((str(self.directory), PREFIX),)).read(0, 1 << 20)[0]


@pytest.fixture
def follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Follow:
    monkeypatch.setattr(log_follow, "FIRST_PAUSE_SECONDS", 0.01)
    return Follow(tmp_path / "log")


def test_the_first_line_says_when_the_program_began_and_is_not_shown(follow: Follow) -> None:
    follow.run([Answer(parts=WHOLE)])
    assert follow.text() == TEXT
    assert follow.up == [(1767225601.0, "GPU-1")]


@pytest.mark.parametrize("cut", range(0, len(b"".join(WHOLE)), 3001))
def test_a_break_anywhere_loses_and_repeats_nothing(follow: Follow, cut: int) -> None:
    stream = b"".join(WHOLE)
    parts = [stream[:cut]] if cut else []
    asked = follow.run([Answer(parts=parts, breaks=True), Answer(parts=WHOLE)])
    assert follow.text() == TEXT
    assert len(follow.up) == 1
    assert asked[-1].params["timestamps"] == "true"


def test_after_a_restart_reading_goes_on_where_it_was_noted(follow: Follow) -> None:
    follow.run([Answer(parts=WHOLE[:3])])
    asked = follow.run([Answer(parts=WHOLE)])
    assert asked[0].params["sinceTime"] == "2026-01-01T00:00:01Z"
    assert follow.text() == TEXT
    assert len(follow.up) == 1


def test_messages_of_the_kubelet_are_not_output(follow: Follow) -> None:
    follow.run([Answer(parts=[*WHOLE, b"unable to retrieve container logs for containerd://1"])])
    assert follow.text() == TEXT


def test_a_log_of_a_pod_that_is_gone_is_over(follow: Follow) -> None:
    follow.run([Answer(status=404, parts=[b"{}"])])
    assert follow.text() == b""


def test_lines_are_split_wherever_chunks_end() -> None:
    stream = b"".join(WHOLE[:3])
    for size in (1, 7, 33):
        lines = StampedLines()
        parts = [part for start in range(0, len(stream), size) for part in lines.feed(stream[start : start + size])]
        assert b"".join(text for _, text, _ in parts) == b"corral-up GPU-1\none\ntwo\n"
        assert sum(is_first for _, _, is_first in parts) == 3


def test_a_writer_goes_on_before_the_end_of_an_earlier_one(tmp_path: Path) -> None:
    first = LogWriter(str(tmp_path), 80)
    first.write(b"a" * 25)
    first.close()
    second = LogWriter.continued(str(tmp_path), 80, 15)
    assert second.offset == 15
    second.write(b"b" * 10)
    second.close()
    assert LogPlaces(((str(tmp_path), PREFIX),)).read(0, 100)[0] == b"a" * 15 + b"b" * 10


def test_a_first_line_that_the_kubelet_has_removed_does_not_keep_the_job_starting(follow: Follow) -> None:
    """A long log was rotated while no server was connected."""
    follow.run([Answer(parts=WHOLE[1:])])
    assert follow.text() == TEXT
    assert follow.up == [(1767225601.1, "")]


def test_a_first_line_without_an_end_is_not_collected(follow: Follow) -> None:
    endless = line(1, 0, "x" * 300_000)
    follow.run([Answer(parts=[endless])])
    assert follow.text() == b"x" * 300_000
    assert len(follow.up) == 1


def test_control_characters_in_the_names_of_devices_are_escaped(follow: Follow) -> None:
    follow.run([Answer(parts=[line(1, 0, "corral-up \x1b[2J\n")])])
    assert follow.up == [(1767225601.0, "\\x1b[2J")]


def test_stamps_with_the_nodes_own_time_zone_are_read_as_utc(follow: Follow) -> None:
    """A container runtime writes the time of its machine. Its offset may change between two lines."""
    zoned = [
        b"2026-10-25T02:59:59.500000000+02:00 corral-up GPU-1\n",
        b"2026-10-25T02:59:59.900000000+02:00 summer\n",
        b"2026-10-25T02:00:00.100000000+01:00 winter\n",
    ]
    follow.run([Answer(parts=zoned[:2], breaks=True), Answer(parts=zoned)])
    assert follow.text() == b"summer\nwinter\n"
    assert follow.up == [(1792889999.5, "GPU-1")]
    asked = follow.run([Answer(parts=zoned)])
    assert asked[0].params["sinceTime"] == "2026-10-25T01:00:00Z"
    assert follow.text() == b"summer\nwinter\n"


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        (b"2026-01-01T00:00:00Z", b"2026-01-01T00:00:00.000000000Z"),
        (b"2026-01-01T00:00:00.12Z", b"2026-01-01T00:00:00.120000000Z"),
        (b"2025-12-31T19:30:00.123456789-04:30", b"2026-01-01T00:00:00.123456789Z"),
        (b"unable", b""),
    ],
)
def test_times_of_lines_compare_as_bytes(stamp: bytes, expected: bytes) -> None:
    assert log_follow.utc(stamp) == expected


def test_a_log_that_breaks_often_is_read_on_at_once(follow: Follow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses grow while nothing is heard, and not while each connection shows something new."""
    monkeypatch.setattr(log_follow, "LONGEST_PAUSE_SECONDS", 0.04)
    breaks = [Answer(parts=WHOLE[:number], breaks=True) for number in range(1, len(WHOLE))]
    follow.run([*breaks, Answer(parts=WHOLE)])
    assert follow.text() == TEXT


def test_a_server_that_was_superseded_writes_no_log(follow: Follow) -> None:
    """It was frozen, or cut off from the store: another server follows the same log into the same files."""
    follow.superseded_at = 2
    follow.run([Answer(parts=WHOLE[:3], breaks=True), Answer(parts=WHOLE)])
    assert follow.text() == b"one\ntwo\n"
