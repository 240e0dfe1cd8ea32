"""The inbox of the controller: which requests share a turn."""

from __future__ import annotations

import threading

import pytest

from corral.control.live import inbox as inbox_module
from corral.control.live.inbox import Inbox
from corral.control.live.turn import Request
from tests.unit.control.world import StillClock


def request(*, is_patient: bool = False) -> Request:
    return Request(run=lambda work: None, is_patient=is_patient)


@pytest.fixture(autouse=True)
def _long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that no test passes because a pause has ended."""
    monkeypatch.setattr(inbox_module, "GATHER_SECONDS", 600.0)
    monkeypatch.setattr(inbox_module, "FLURRY_SECONDS", 600.0)


def many_reports(inbox: Inbox) -> None:
    for _ in range(inbox_module.FLURRY_REPORTS):
        inbox.put(request(is_patient=True))
    inbox.take(lambda: 600.0)


def test_reports_of_single_jobs_are_taken_at_once() -> None:
    inbox = Inbox(StillClock())
    for _ in range(inbox_module.FLURRY_REPORTS):
        report = request(is_patient=True)
        inbox.put(report)
        assert inbox.take(lambda: 600.0) == ([report], [])


def test_a_report_that_follows_on_many_is_taken_at_once_when_they_are_long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_module, "FLURRY_SECONDS", 0.0)
    inbox, report = Inbox(StillClock()), request(is_patient=True)
    many_reports(inbox)
    inbox.put(report)
    assert inbox.take(lambda: 600.0) == ([report], [])


def test_a_report_that_follows_on_many_waits_for_a_request_and_shares_its_turn() -> None:
    inbox, asked = Inbox(StillClock()), request()
    reports = [request(is_patient=True) for _ in range(2)]
    many_reports(inbox)
    inbox.put(reports[0])
    taken: list[Request] = []
    taker = threading.Thread(target=lambda: taken.extend(inbox.take(lambda: 600.0)[0]))
    taker.start()
    inbox.put(reports[1])
    inbox.put(asked)
    taker.join(60)
    assert taken == [*reports, asked]


def test_requests_of_callers_never_wait() -> None:
    inbox, asked = Inbox(StillClock()), request()
    many_reports(inbox)
    inbox.put(asked)
    assert inbox.take(lambda: 600.0) == ([asked], [])


def test_a_closed_inbox_takes_no_request() -> None:
    inbox = Inbox(StillClock())
    inbox.close(lambda: RuntimeError("closed"))
    late = request()
    inbox.put(late)
    assert isinstance(late.answer.exception(), RuntimeError)
    assert inbox.take(lambda: 600.0) == ([], [])
