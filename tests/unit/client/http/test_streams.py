"""Followers continue where they were, wait for a server that restarts, and give up in the end."""

from __future__ import annotations

import json

import pytest

from corral.client.client import Client
from corral.client.http.errors import ClientError, NotFound, ServerUnreachable
from corral.client.http.streams import PATIENCE_SECONDS, LogEnd, LogText, Patience
from corral.client.jobs.jobs import exit_status
from tests.unit.client.scripted_server import Answer, Seen, as_json, problem, scripted, stream


def log_event(text: str, place: str) -> str:
    return f"id: {place}\nevent: log\ndata: {json.dumps({'text': text})}\n\n"


def end_event(state: str, exit_code: int | None) -> str:
    return f"event: end\ndata: {json.dumps({'state': state, 'exit_code': exit_code})}\n\n"


def quick(seconds: float = PATIENCE_SECONDS) -> Patience:
    return Patience(sleep=lambda _: None, seconds=seconds)


def test_a_log_continues_behind_the_last_piece_after_a_broken_connection() -> None:
    def answer(seen: Seen, before: int) -> Answer:
        if before == 0:
            return stream(log_event("one\n", "1:4") + log_event("lost", "1:8")[:-1], is_cut=True)
        return stream(": ping\n\n" + log_event("two\n", "1:8") + end_event("failed", 3))

    with scripted(answer) as server, Client(server.url) as client:
        pieces = list(client.jobs.follow_log("j-1", rank=2, tail=10, patience=quick()))
    assert pieces == [LogText(text="one\n"), LogText(text="two\n"), LogEnd(state="failed", exit_code=3)]
    assert server.requests[0].path == "/api/v1/jobs/j-1/logs?rank=2&tail=10&follow=true"
    assert [seen.headers.get("Last-Event-ID") for seen in server.requests] == [None, "1:4"]
    assert server.requests[0].headers["Accept"] == "text/event-stream"


def test_a_stream_that_the_server_closes_in_good_order_is_opened_again() -> None:
    def answer(seen: Seen, before: int) -> Answer:
        return stream("" if before == 0 else end_event("completed", 0))

    with scripted(answer) as server, Client(server.url) as client:
        assert list(client.jobs.follow_log("j-1", patience=quick())) == [LogEnd(state="completed", exit_code=0)]
    assert len(server.requests) == 2


def test_an_unknown_job_is_an_error_and_not_a_reason_to_try_again() -> None:
    with (
        scripted(lambda seen, n: problem(404, detail="no job j-9")) as server,
        Client(server.url) as client,
        pytest.raises(NotFound, match="no job j-9"),
    ):
        list(client.jobs.follow_log("j-9", patience=quick()))
    assert len(server.requests) == 1


def test_a_server_that_does_not_come_back_is_given_up_after_a_while() -> None:
    now = 0.0
    lost: list[ClientError] = []

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    patience = Patience(seconds=60, sleep=sleep, clock=lambda: now, on_lost=lost.append)
    with scripted(lambda seen, n: stream(log_event("one\n", "1"), is_cut=True)) as server:
        client = Client(server.url)
        pieces = client.jobs.follow_log("j-1", patience=patience)
        assert next(pieces) == LogText(text="one\n")
    with client, pytest.raises(ServerUnreachable):
        list(pieces)
    assert 60 <= now < 70
    assert len(lost) == 1


def test_a_server_that_was_never_reached_is_an_error_at_once() -> None:
    with scripted(lambda seen, n: as_json({})) as server:
        url = server.url
    with Client(url) as client, pytest.raises(ServerUnreachable):
        list(client.jobs.follow_log("j-1", patience=quick()))


def test_waiting_hears_of_every_change_and_survives_a_restart() -> None:
    states = [("queued", 0), ("queued", 0), ("running", 1), ("queued", 1), ("running", 2), ("completed", 2)]

    def answer(seen: Seen, before: int) -> Answer:
        state, attempt = states[min(before, len(states) - 1)]
        return as_json({"id": "j-1", "state": state, "attempt": attempt})

    heard: list[tuple[str, int]] = []
    with scripted(answer) as server, Client(server.url) as client:
        ended = client.jobs.wait(
            "j-1", patience=quick(), on_change=lambda view: heard.append((view["state"], view["attempt"]))
        )
    assert ended["state"] == "completed"
    assert heard == [("queued", 0), ("running", 1), ("queued", 1), ("running", 2), ("completed", 2)]


def test_servers_that_answer_with_503_for_a_while_are_waited_for() -> None:
    """Imitates a change of the leader or a restart of the database."""

    def log(seen: Seen, before: int) -> Answer:
        answers = (stream(log_event("one\n", "1:4")), problem(503), problem(503), stream(end_event("completed", 0)))
        return answers[min(before, 3)]

    def job(seen: Seen, before: int) -> Answer:
        if 0 < before < 8:
            return problem(503)
        return as_json({"id": "j-1", "state": "running" if before == 0 else "completed", "attempt": 1})

    with scripted(log) as server, Client(server.url) as client:
        pieces = list(client.jobs.follow_log("j-1", patience=quick()))
    assert pieces == [LogText(text="one\n"), LogEnd(state="completed", exit_code=0)]
    with scripted(job) as server, Client(server.url, sleep=lambda _: None) as client:
        assert client.jobs.wait("j-1", patience=quick())["state"] == "completed"


def test_the_time_limit_counts_from_the_last_answer() -> None:
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    def answer(seen: Seen, before: int) -> Answer:
        # Out of reach for a moment at the begin and, with the same state all the time, long after the limit.
        if before in range(1, 4) or before in range(40, 43):
            return problem(503)
        return as_json({"id": "j-1", "state": "running" if before < 50 else "completed", "attempt": 1})

    patience = Patience(seconds=20, sleep=sleep, clock=lambda: now)
    with scripted(answer) as server, Client(server.url, sleep=lambda _: None) as client:
        assert client.jobs.wait("j-1", patience=patience)["state"] == "completed"
    assert now > 60


def test_events_resume_after_the_last_id() -> None:
    def event(number: int) -> str:
        return f"id: {number}\nevent: job.submitted\ndata: {json.dumps({'id': number, 'action': 'job.submitted'})}\n\n"

    def answer(seen: Seen, before: int) -> Answer:
        return stream(event(41) + event(42) if before == 0 else event(43))

    with scripted(answer) as server, Client(server.url) as client:
        followed = client.events.follow(after=40, patience=quick())
        assert [next(followed)["id"] for _ in range(3)] == [41, 42, 43]
    assert [seen.headers["Last-Event-ID"] for seen in server.requests[:2]] == ["40", "42"]


@pytest.mark.parametrize(
    ("state", "exit_code", "status"),
    [
        ("completed", 0, 0),
        ("failed", 3, 3),
        ("failed", None, 1),
        ("failed", 0, 1),
        ("stopped", None, 1),
        ("stopped", 143, 143),
        ("failed", -9, 137),
        ("failed", 256, 255),
    ],
)
def test_the_exit_status_is_the_jobs_own(state: str, exit_code: int | None, status: int) -> None:
    assert exit_status(state, exit_code) == status
