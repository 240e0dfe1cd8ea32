"""Searching logs: what is found is what a plain look at the whole log finds, however it is cut into pieces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.checkpoint.layout import last_of
from corral.control.errors import Invalid
from corral.control.ports import LogChunk
from corral.server.jobs import line_scan, log_search
from corral.server.jobs.line_scan import LineScan, outcomes, text_scan
from corral.server.jobs.log_search import Position, Question, search


class Shelf:
    """Logs by attempt id and rank. `kept_from` is where each begins after a rotation."""

    def __init__(self, logs: Mapping[tuple[str, int], bytes], *, chunk: int = 10**9, kept_from: int = 0) -> None:
        self._logs = logs
        self._chunk = chunk
        self._kept_from = kept_from
        self.read_bytes = 0

    def logs(self, attempt_id: str, rank: int, offset: int, limit: int) -> LogChunk:
        log = self._logs.get((attempt_id, rank), b"")
        offset = max(offset, min(self._kept_from, len(log)))
        data = log[offset : offset + min(limit, self._chunk)]
        self.read_bytes += len(data)
        return LogChunk(data=data, next_offset=offset + len(data), at_end=True)


def found(shelf: Any, question: Question, *, limit: int = 1000, ranks: int = 1) -> list[tuple[int, int, int, str]]:
    """Over all pages."""
    logs = [(1, rank) for rank in range(ranks)]
    position: Position | None = Position(attempt=1, rank=0)
    matches = []
    while position is not None:
        answer = last_of(search(shelf, "j-1", logs, question, position, limit))
        matches += [(place.rank, match.line, match.offset, match.text) for place, match in answer.matches]
        assert len(answer.matches) <= limit
        position = answer.following
    return matches


def expected(log: bytes, needle: str) -> list[tuple[int, int, int, str]]:
    matches, offset = [], 0
    for number, line in enumerate(log.split(b"\n"), start=1):
        if needle in line.decode("utf-8", "replace"):
            matches.append((0, number, offset, line.decode("utf-8", "replace").rstrip("\r")))
        offset += len(line) + 1
    return matches


LETTERS = st.sampled_from([b"a", b"b", b"\n", b"\n", b"ab", "é".encode(), b"\xff", b" "])


@given(st.lists(LETTERS, max_size=60).map(b"".join), st.integers(1, 9), st.integers(1, 4))
def test_pieces_and_pages_change_nothing(log: bytes, chunk: int, limit: int) -> None:
    shelf = Shelf({("j-1.1", 0): log}, chunk=chunk)
    assert found(shelf, Question(text="ab"), limit=limit) == expected(log, "ab")
    assert found(shelf, Question(text="AB", ignore_case=True), limit=limit) == expected(log, "ab")


@settings(max_examples=8, deadline=None)
@given(st.lists(LETTERS, max_size=60).map(b"".join), st.integers(1, 9), st.integers(1, 4))
def test_a_pattern_finds_the_same(log: bytes, chunk: int, limit: int) -> None:
    shelf = Shelf({("j-1.1", 0): log}, chunk=chunk)
    assert found(shelf, Question(text="a(b)", is_pattern=True), limit=limit) == expected(log, "ab")


def test_every_rank_is_searched_in_its_turn() -> None:
    shelf = Shelf({("j-1.1", 0): b"x\nhit\n", ("j-1.1", 2): b"hit"})
    question = Question(text="hit")
    assert found(shelf, question, limit=1, ranks=3) == [(0, 2, 2, "hit"), (2, 1, 0, "hit")]
    assert found(shelf, Question(text="HIT", is_pattern=True, ignore_case=True), ranks=3) == found(
        shelf, question, ranks=3
    )


def test_a_log_that_was_rotated_is_searched_from_where_it_is_kept() -> None:
    shelf = Shelf({("j-1.1", 0): b"hit\nhit\nhit\n"}, kept_from=4)
    assert found(shelf, Question(text="hit")) == [(0, 1, 4, "hit"), (0, 2, 8, "hit")]


def test_request_reads_at_most_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_search, "MAX_BYTES", 1000)
    log = b"".join(b"line %04d\n" % number for number in range(1000))
    for is_pattern in (False, True):
        shelf = Shelf({("j-1.1", 0): log}, chunk=300)
        question = Question(text="0999", is_pattern=is_pattern)
        answer = last_of(search(shelf, "j-1", [(1, 0)], question, Position(attempt=1, rank=0), 5))
        assert answer.matches == []
        assert answer.following is not None
        assert shelf.read_bytes <= 1300
    assert found(shelf, Question(text="0999")) == [(0, 1000, 9990, "line 0999")]


def test_a_request_compares_a_bounded_number_of_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of empty lines has as many lines as bytes, and a request would take half a minute."""
    monkeypatch.setattr(log_search, "MAX_BYTES", 10_000)
    for log, question in (
        (b"\n" * 10_000, Question(text="hit", ignore_case=True)),
        (b"\r\n" * 5_000, Question(text="\r")),
    ):
        shelf = Shelf({("j-1.1", 0): log}, chunk=100)
        answer = last_of(search(shelf, "j-1", [(1, 0)], question, Position(attempt=1, rank=0), 5))
        assert answer.following is not None
        assert shelf.read_bytes <= 1_000
    shelf = Shelf({("j-1.1", 0): b"\n" * 3_000 + b"Hit\n"}, chunk=100)
    assert [line for _, line, _, _ in found(shelf, Question(text="hit", ignore_case=True))] == [3001]


def test_a_line_without_end_is_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_search, "MAX_BYTES", 1000)
    shelf = Shelf({("j-1.1", 0): b"x" * 5000 + b"\nhit\n"}, chunk=300)
    matches = found(shelf, Question(text="hit"))
    assert [(offset, text) for _, _, offset, text in matches] == [(5001, "hit")]


def test_a_long_line_is_shown_around_the_match() -> None:
    log = b"a" * 5000 + b"hit" + b"b" * 5000
    [(_, _, _, text)] = found(Shelf({("j-1.1", 0): log}), Question(text="hit"))
    assert len(text) == line_scan.MAX_SHOWN
    assert "hit" in text
    assert found(Shelf({("j-1.1", 0): b"a" * 70_000 + b"hit"}), Question(text="hit")) == [], "only its beginning"


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "*"])
def test_invalid_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(Invalid, match="is not a pattern") as refused:
        found(Shelf({("j-1.1", 0): b"x"}), Question(text=pattern, is_pattern=True))
    assert refused.value.field == "q"


def test_a_pattern_that_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as hurried:
        hurried.setattr(log_search, "_PATTERN_SECONDS", 0.1)
        with pytest.raises(Invalid, match="takes too long"):
            found(Shelf({("j-1.1", 0): b"a" * 60 + b"!\n"}), Question(text="(a+)+$", is_pattern=True))
    # The place is free again.
    assert found(Shelf({("j-1.1", 0): b"a"}), Question(text="a", is_pattern=True))


def test_passing_over_counts_every_line() -> None:
    log = b"\n".join(b"%d" % number for number in range(10_000))
    scan = text_scan("7777", ignore_case=False, offset=0, line=1, limit=10)
    scan.feed(log)
    slow = LineScan(lambda row: row.find("7777"), offset=0, line=1, limit=10)
    slow.feed(log)
    assert outcomes(scan) == outcomes(slow)
    assert [match.line for match in scan.matches] == [7778]
    assert re.search("7777", scan.matches[0].text)
