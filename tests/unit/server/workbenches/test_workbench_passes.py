"""Tickets and cookies of workbenches: what they are good for, how often, and for how long."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.server.auth.secret_box import SecretBox
from corral.server.workbenches.workbench_passes import COOKIE_SECONDS, TICKET_SECONDS, Entry, Pass, WorkbenchPasses

GRANTED = Pass(job_id="j-1", session_hash="hash", console="http://127.0.0.1:8470")
ENTRY = Entry(granted=GRANTED, path="/workbenches/j-1/jupyter/lab")


class Time:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def passes(tmp_path: Path, time: Time) -> WorkbenchPasses:
    return WorkbenchPasses(SecretBox(tmp_path), now=time, monotonic=time)


def test_a_ticket_is_good_once(passes: WorkbenchPasses) -> None:
    ticket = passes.issue(ENTRY)
    assert passes.redeem(ticket, "j-1") == ENTRY
    assert passes.redeem(ticket, "j-1") is None


def test_a_ticket_is_good_for_one_workbench_and_is_used_by_a_wrong_one(passes: WorkbenchPasses) -> None:
    ticket = passes.issue(ENTRY)
    assert passes.redeem(ticket, "j-2") is None
    assert passes.redeem(ticket, "j-1") is None
    assert passes.redeem("", "j-1") is None


def test_a_ticket_is_good_for_seconds(passes: WorkbenchPasses, time: Time) -> None:
    first = passes.issue(ENTRY)
    time.now += TICKET_SECONDS
    assert passes.redeem(first, "j-1") is None
    second = passes.issue(ENTRY)
    time.now += TICKET_SECONDS - 1
    assert passes.redeem(second, "j-1") == ENTRY


def test_unused_tickets_are_not_kept(passes: WorkbenchPasses, time: Time) -> None:
    for _ in range(12_000):
        passes.issue(ENTRY)
    assert len(passes._tickets) == 10_000
    time.now += TICKET_SECONDS
    passes.issue(ENTRY)
    assert len(passes._tickets) == 1


def test_a_cookie_is_read_with_its_age_by_the_next_server_too(
    passes: WorkbenchPasses, time: Time, tmp_path: Path
) -> None:
    cookie = passes.sealed(GRANTED)
    time.now += 60
    assert passes.opened(cookie, "j-1") == (GRANTED, 60.0)
    time.now += COOKIE_SECONDS
    again = WorkbenchPasses(SecretBox(tmp_path), now=time, monotonic=time)
    assert again.opened(cookie, "j-1") == (GRANTED, 60.0 + COOKIE_SECONDS), "old, but it says where the console is"


@pytest.mark.parametrize("change", ["", "x", "é", "gAAAA", "=", "\x00"])
def test_foreign_pass_opens_nothing(passes: WorkbenchPasses, change: str) -> None:
    cookie = passes.sealed(GRANTED)
    assert passes.opened(cookie, "j-2") is None
    assert passes.opened(change, "j-1") is None
    assert passes.opened(cookie[:-4] + change, "j-1") is None


def test_a_secret_of_the_store_is_no_cookie(passes: WorkbenchPasses, tmp_path: Path) -> None:
    """The key is one of its own: what is encrypted for another purpose is not accepted here."""
    assert passes.opened(SecretBox(tmp_path).encrypt('{"job_id": "j-1"}'), "j-1") is None
