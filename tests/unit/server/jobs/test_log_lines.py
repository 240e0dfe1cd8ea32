"""Following a log: from the queue, over a second attempt, to the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.control.ports import LogChunk
from corral.core.model import Job, JobState
from corral.server.jobs import log_lines
from corral.server.jobs.log_lines import LogFollower, LogPlace, place_after, text_pieces
from corral.stores.storage.fair_pool import Steps

T = TypeVar("T")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "_SHORTEST_PAUSE_SECONDS", 0.001)


class Logs:
    """Logs in memory, with `read` calls that a test can act upon."""

    def __init__(self, **texts: bytes) -> None:
        self.texts = {name.replace("_", "."): text for name, text in texts.items()}
        self.ended: set[str] = set()
        #: the largest read, and the first byte that was not rotated away
        self.largest = 0
        self.kept_from = 0

    def logs(self, attempt_id: str, rank: int, offset: int, limit: int) -> LogChunk:
        text = self.texts.get(attempt_id, b"")
        self.largest = max(self.largest, limit)
        start = max(self.kept_from, len(text) + offset if offset < 0 else offset)
        data = text[start : start + limit]
        end = start + len(data)
        return LogChunk(data=data, next_offset=end, at_end=attempt_id in self.ended and end == len(text))


def job(state: JobState, attempt: int, exit_code: int | None = None) -> Job:
    return Job(id="j1", name="a", user="u", state=state, attempt=attempt, exit_code=exit_code)


async def run(steps: Steps[T]) -> T:
    return result_of(steps)


def result_of(steps: Steps[T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found


def heard(
    logs: Logs, story: Sequence[Job | None], place: LogPlace, on_step: Callable[[int], None] = lambda n: None
) -> list[Any]:
    """The messages that a follower gets while the job goes through a story, one step per round; the last step stays."""
    steps = SimpleNamespace(count=0)

    async def job_now() -> Job | None:
        now = story[min(steps.count, len(story) - 1)]
        on_step(steps.count)
        steps.count += 1
        return now

    async def go() -> list[str]:
        follower = LogFollower(logs, place, job_now=job_now, is_closed=lambda: steps.count > 200, run=run)
        return [event async for event in follower.events()]

    events = asyncio.run(go())
    return [(e.split("event: ")[1].split("\n")[0], json.loads(e.split("data: ")[1])) for e in events]


def test_a_log_is_followed_over_a_second_attempt() -> None:
    logs = Logs(j1_1=b"one\n", j1_2=b"")

    def on_step(number: int) -> None:
        if number == 6:
            logs.texts["j1.2"] = b"two\n"

    story = [
        job(JobState.QUEUED, 0),
        job(JobState.RUNNING, 1),
        job(JobState.RUNNING, 1),
        job(JobState.QUEUED, 1),
        job(JobState.RUNNING, 2),
        job(JobState.RUNNING, 2),
        job(JobState.COMPLETED, 2, 0),
    ]
    assert heard(logs, story, LogPlace(job_id="j1"), on_step) == [
        ("log", {"text": "one\n"}),
        ("log", {"text": "two\n"}),
        ("end", {"state": "completed", "exit_code": 0}),
    ]


def test_lines_of_a_single_attempt_end_with_the_attempt() -> None:
    logs = Logs(j1_1=b"one\n", j1_2=b"two\n")
    events = heard(logs, [job(JobState.RUNNING, 2)], LogPlace(job_id="j1", attempt=1))
    assert [name for name, _ in events] == ["log", "end"]
    assert events[0][1] == {"text": "one\n"}


def test_a_late_listener_begins_with_the_latest_attempt() -> None:
    logs = Logs(j1_1=b"one\n", j1_2=b"a\nb\nc\n")
    events = heard(logs, [job(JobState.FAILED, 2, 1)], LogPlace(job_id="j1", tail=2))
    assert events == [("log", {"text": "b\nc\n"}), ("end", {"state": "failed", "exit_code": 1})]


def test_a_deleted_job_ends_the_log() -> None:
    assert heard(Logs(), [job(JobState.QUEUED, 0), None], LogPlace(job_id="j1"))[-1][1]["state"] == "deleted"


def test_text_that_is_cut_inside_a_letter_comes_out_whole() -> None:
    logs = Logs(j1_1="ä".encode()[:1])

    def on_step(number: int) -> None:
        if number == 2:
            logs.texts["j1.1"] = "ä\n".encode()

    running = job(JobState.RUNNING, 1)
    events = heard(logs, [running, running, running, job(JobState.COMPLETED, 1, 0)], LogPlace(job_id="j1"), on_step)
    assert "".join(data["text"] for name, data in events if name == "log") == "ä\n"


def test_the_last_lines_are_found_however_far_back_they_begin() -> None:
    line = b"x" * 999 + b"\n"
    logs = Logs(j1_1=line * 1000)

    def go(tail: int | None) -> bytes:
        return b"".join(text_pieces(logs, "j1.1", LogPlace(job_id="j1", tail=tail)))

    for lines in (0, 1, 65, 66, 300, 1000, 5000):
        assert go(lines) == line * min(lines, 1000)
    assert go(None) == line * 1000


@given(
    st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r", b"\r\n"])).map(b"".join), st.integers(0, 12), st.integers(0, 9)
)
def test_a_log_is_read_backwards_in_blocks(text: bytes, lines: int, kept_from: int) -> None:
    logs = Logs(j1_1=text)
    logs.kept_from = min(kept_from, len(text))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_lines, "CHUNK_BYTES", 3)
        start = result_of(log_lines.tail_start(logs, "j1.1", 0, lines))
    kept = text[logs.kept_from :].splitlines(keepends=True)
    assert text[start:] == b"".join(kept[-lines:] if lines else [])
    assert logs.largest == 3, "no read is longer than a block, however many lines are asked for"


def test_a_job_without_an_attempt_is_waited_for() -> None:
    waiting = job(JobState.QUEUED, 0)
    story = [waiting] * 3 + [replace(waiting, state=JobState.STOPPED)]
    assert heard(Logs(), story, LogPlace(job_id="j1")) == [("end", {"state": "stopped", "exit_code": None})]


def test_a_follower_that_was_cut_off_goes_on_behind_what_it_got() -> None:
    logs = Logs(j1_1=b"one\ntwo\n", j1_2=b"three\n")
    story = [job(JobState.COMPLETED, 2, 0)]
    events = heard(logs, story, LogPlace(job_id="j1", after=place_after("1:4")))
    assert "".join(data["text"] for name, data in events if name == "log") == "two\nthree\n"
    # also when it asked for the last lines only: those it has had
    events = heard(logs, story, LogPlace(job_id="j1", tail=1, after=place_after("2:6")))
    assert [name for name, _ in events] == ["end"]


def test_the_id_of_an_event_of_another_stream_is_no_place() -> None:
    assert [place_after(text) for text in ("", "17", "1:", ":4", "1:x", "1:-4")] == [None] * 6
