"""Retries of failed programs: which failures, how often, where and when; and crash loops."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.core.jobs.lifecycle import Ended, Planned, StartRequested, Up, advance
from corral.core.jobs.retries import CRASH_SECONDS, CRASHES, WORDS, is_retried, read_retry_on
from corral.core.model import Allocation, EndReason, Grant, Job, JobState, Request


def job(**values: object) -> Job:
    base = Job(id="j-1", name="train", user="ann", request=Request(gpus=1), retry_on=("any",))
    return replace(base, **values)  # type: ignore[arg-type]


def attempt(one: Job, at: float, seconds: float, *, node: str = "n1", **end: object) -> Job:
    """The job after another attempt that ran for so long."""
    if one.state is not JobState.QUEUED:
        one = advance(one, StartRequested(at=at)).job
    allocation = Allocation(grants=(Grant(node=node, gpus=(f"{node}/0",)),), model="A10")
    one = advance(one, Planned(at=at, allocation=allocation)).job
    one = advance(one, Up(at=at)).job
    ended = {"reason": EndReason.EXIT_CODE, "exit_code": 1, **end}
    return advance(one, Ended(at=at + seconds, **ended)).job  # type: ignore[arg-type]


#: what the job asks for, the end, and whether it is tried again
CASES: list[tuple[tuple[str, ...], EndReason, int | None, bool]] = [
    ((), EndReason.EXIT_CODE, 1, False),
    (("exit",), EndReason.EXIT_CODE, 1, True),
    (("exit",), EndReason.OOM_KILLED, 137, False),
    (("oom",), EndReason.OOM_KILLED, 137, True),
    (("oom",), EndReason.EXIT_CODE, 1, False),
    (("75", "oom"), EndReason.EXIT_CODE, 75, True),
    (("75",), EndReason.EXIT_CODE, 7, False),
    (("node", "gpu"), EndReason.EXIT_CODE, 1, False),
    (("any",), EndReason.EXIT_CODE, 3, True),
    (("any",), EndReason.OOM_KILLED, 137, True),
    (("any",), EndReason.IMAGE_PULL_ERROR, None, True),
    (("any",), EndReason.LAUNCH_ERROR, None, False),
    (("any",), EndReason.TIMED_OUT, None, False),
]


@pytest.mark.parametrize(("retry_on", "reason", "code", "expected"), CASES)
def test_selected_failures_lead_to_another_attempt(
    retry_on: tuple[str, ...], reason: EndReason, code: int | None, expected: bool
) -> None:
    assert is_retried(job(retry_on=retry_on), reason, code) is expected
    after = attempt(job(retry_on=retry_on), 0, 100, reason=reason, exit_code=code)
    assert (after.state is JobState.QUEUED) is expected
    assert after.retries == expected


def test_each_retry_waits_longer_and_avoids_the_node() -> None:
    one, at = job(max_retries=3), 0.0
    for retry, pause in ((1, 5), (2, 10), (3, 20)):
        one = attempt(one, at, 100, node=f"n{retry}")
        assert (one.state, one.retries, one.not_before) == (JobState.QUEUED, retry, at + 100 + pause)
        assert one.avoid_nodes == tuple(f"n{number}" for number in range(1, retry + 1))
        assert f"retry {retry} of 3" in one.message
        at = one.not_before
    one = attempt(one, at, 100, node="n4")
    assert (one.state, one.exit_code) == (JobState.FAILED, 1)
    assert one.message.endswith("all 3 retries were used")


def test_a_crash_loop_ends_early_and_says_so() -> None:
    one, at = job(max_retries=20), 0.0
    for _ in range(CRASHES - 1):
        one = attempt(one, at, 2)
        assert one.state is JobState.QUEUED
        at = one.not_before
    one = attempt(one, at, 2)
    assert one.state is JobState.FAILED
    assert "a crash loop: it failed 3 times within seconds of its start" in one.message
    assert "the other 18 retries are not used" in one.message


@pytest.mark.parametrize(
    ("most", "seconds", "words"),
    [(1, 100, "; its only retry was used"), (CRASHES, 2, "so the last retry is not used")],
)
def test_a_single_retry_is_named_as_one(most: int, seconds: float, words: str) -> None:
    one, at = job(max_retries=most), 0.0
    while one.state is not JobState.FAILED:
        one = attempt(one, at, seconds)
        at = one.not_before
    assert one.message.endswith(words)


def test_work_that_was_saved_is_no_crash_loop() -> None:
    one, at = job(max_retries=20), 0.0
    for _ in range(CRASHES + 2):
        one = attempt(replace(one, checkpointed_at=at + 1), at, 2)
        assert one.state is JobState.QUEUED
        at = one.not_before


def test_no_retries_means_none() -> None:
    assert attempt(job(max_retries=0), 0, 100).state is JobState.FAILED


def test_a_new_start_has_all_its_retries() -> None:
    one = attempt(job(max_retries=1), 0, 100)
    one = attempt(one, 200, 100)
    assert one.state is JobState.FAILED
    again = attempt(one, 400, 100)
    assert (again.state, again.retries) == (JobState.QUEUED, 1)


@given(st.lists(st.floats(0.1, 200), min_size=1, max_size=12), st.integers(0, 8))
def test_a_job_ends_after_its_retries_at_the_latest(seconds: list[float], most: int) -> None:
    one, at, attempts = job(max_retries=most), 0.0, 0
    for ran in seconds:
        one = attempt(one, at, ran)
        attempts += 1
        at += ran + 1000
        assert one.retries <= most
        if one.state is JobState.FAILED:
            break
    assert attempts <= most + 1
    if one.state is JobState.FAILED and attempts <= most:
        assert sum(seconds[:attempts]) < CRASH_SECONDS * attempts


def test_words_and_codes_are_read_once_and_in_order() -> None:
    assert read_retry_on(["75", " OOM", "exit", "oom", "3"]) == ("exit", "oom", "3", "75")
    assert read_retry_on(list(WORDS)) == WORDS
    for wrong in ("0", "256", "never", "-1"):
        with pytest.raises(ValueError, match="is not one of exit, oom, node, gpu, any"):
            read_retry_on([wrong])
