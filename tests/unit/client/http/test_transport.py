"""The results of a request: an answer, a retry, or an error with a hint."""

from __future__ import annotations

import json
import socket
from dataclasses import replace

import pytest

from corral.client.client import Client
from corral.client.http.errors import (
    ApiProblem,
    ClientError,
    Forbidden,
    NotFound,
    NotSignedIn,
    ServerUnreachable,
    UnexpectedAnswer,
)
from corral.client.http.transport import segment, server_address
from tests.unit.client.scripted_server import Answer, Seen, as_json, problem, scripted


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_server_that_is_not_there_is_named_with_the_command_that_starts_one() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    naps: list[float] = []
    with Client(url, sleep=naps.append) as client, pytest.raises(ServerUnreachable) as caught:
        client.people.me()
    assert caught.value.message == f"cannot reach {url}: is the server running?"
    assert "corral up" in caught.value.hint
    assert naps == []


def test_the_token_goes_with_every_request_and_never_without_one() -> None:
    with (
        scripted(lambda seen, n: as_json({"name": "maria"})) as server,
        Client(server.url, "secret") as client,
    ):
        client.people.me()
        with Client(server.url) as client:
            client.people.me()
    assert [seen.headers.get("Authorization") for seen in server.requests] == ["Bearer secret", None]
    assert server.requests[0].path == "/api/v1/me"


@pytest.mark.parametrize(
    ("status", "error", "hint"),
    [
        (401, NotSignedIn, "corral login"),
        (403, Forbidden, "corral whoami"),
        (404, NotFound, ""),
        (409, ApiProblem, ""),
        (429, ApiProblem, "Wait"),
    ],
)
def test_a_problem_becomes_the_error_of_its_status(status: int, error: type[ApiProblem], hint: str) -> None:
    answer = problem(status, type="/problems/some-slug", detail="2 of 1 GPUs", asked=2, limit=1)
    with (
        scripted(lambda seen, n: answer) as server,
        Client(server.url) as client,
        pytest.raises(error) as caught,
    ):
        client.jobs.stop("j-1")
    assert type(caught.value) is error
    assert caught.value.message == "2 of 1 GPUs"
    assert caught.value.slug == "some-slug"
    assert caught.value.problem["asked"] == 2
    assert hint in caught.value.hint
    assert len(server.requests) == 1


def test_field_errors_are_kept_and_malformed_ones_are_left_out() -> None:
    answer = problem(422, detail="bad", errors=[{"field": "gpus", "message": "too many"}, "nonsense"])
    with (
        scripted(lambda seen, n: answer) as server,
        Client(server.url) as client,
        pytest.raises(ApiProblem) as caught,
    ):
        client.jobs.submit({"command": ["true"]})
    assert caught.value.field_errors == [("gpus", "too many")]


@pytest.mark.parametrize(
    "answer",
    [
        Answer(body=b"<html>router</html>", content_type="text/html"),
        Answer(status=404, body=b"<html>router</html>", content_type="text/html"),
        Answer(status=500, body=b"[1]"),
    ],
)
def test_something_that_is_not_corral_is_recognised(answer: Answer) -> None:
    with (
        scripted(lambda seen, n: answer) as server,
        Client(server.url) as client,
        pytest.raises(UnexpectedAnswer, match="did not answer like a corral server"),
    ):
        client.people.me()


@pytest.mark.parametrize("first", [problem(503, detail="starting"), Answer(body=b"{", is_cut=True)])
def test_reading_is_tried_again_after_a_busy_server_and_a_dropped_connection(first: Answer) -> None:
    naps: list[float] = []

    def answer(seen: Seen, before: int) -> Answer:
        return first if before == 0 else as_json({"name": "maria"})

    with scripted(answer) as server, Client(server.url, sleep=naps.append) as client:
        assert client.people.me()["name"] == "maria"
    assert len(server.requests) == 2
    assert len(naps) == 1


def test_reading_gives_up_after_a_few_tries() -> None:
    with (
        scripted(lambda seen, n: problem(503, detail="starting")) as server,
        Client(server.url, sleep=lambda seconds: None) as client,
        pytest.raises(ApiProblem, match="starting"),
    ):
        client.people.me()
    assert len(server.requests) == 3


@pytest.mark.parametrize("answer", [problem(503, detail="starting"), Answer(body=b"{", is_cut=True)])
def test_a_change_is_never_sent_twice(answer: Answer) -> None:
    with (
        scripted(lambda seen, n: answer) as server,
        Client(server.url) as client,
        pytest.raises(ClientError),
    ):
        client.jobs.stop("j-1")
    assert len(server.requests) == 1


@pytest.mark.parametrize("first", [problem(503, detail="starting"), Answer(body=b"{", is_cut=True)])
def test_a_request_that_creates_something_is_sent_again_under_its_key(first: Answer) -> None:
    with (
        scripted(lambda seen, n: first if n == 0 else as_json({"id": "j-1"}, 201)) as server,
        Client(server.url, sleep=lambda seconds: None) as client,
    ):
        assert client.jobs.submit({"command": ["true"]})["id"] == "j-1"
        client.jobs.submit({"command": ["true"]})
    keys = [seen.headers["Idempotency-Key"] for seen in server.requests]
    assert keys[0] == keys[1]
    assert keys[2] != keys[0], "another submission is another request"


def test_pages_are_asked_for_as_they_are_needed() -> None:
    def answer(seen: Seen, before: int) -> Answer:
        return as_json({"items": [{"id": f"j-{before * 2 + i}"} for i in (1, 2)], "next_cursor": f"c{before + 1}"})

    with scripted(answer) as server, Client(server.url) as client:
        found = [job["id"] for job in client.jobs.list(states=("queued", "running"), user="maria & co", limit=5)]
    assert found[:5] == ["j-1", "j-2", "j-3", "j-4", "j-5"]
    assert [seen.path.partition("?")[2] for seen in server.requests] == [
        "state=queued&state=running&user=maria+%26+co&limit=5",
        "state=queued&state=running&user=maria+%26+co&limit=3&cursor=c1",
        "state=queued&state=running&user=maria+%26+co&limit=1&cursor=c2",
    ]


def test_names_with_odd_characters_stay_one_part_of_the_path() -> None:
    with scripted(lambda seen, n: as_json({})) as server, Client(server.url) as client:
        client.jobs.get("a/b?c#d é")
        client.fleet.change_node("gpu/1", "drain")
    assert server.requests[0].path == "/api/v1/jobs/a%2Fb%3Fc%23d%20%C3%A9"
    assert server.requests[1].path == "/api/v1/nodes/gpu%2F1/drain"


def test_bodies_are_json_whatever_text_is_in_them() -> None:
    with scripted(lambda seen, n: as_json({}, status=201)) as server, Client(server.url) as client:
        client.jobs.submit({"command": ["echo", "é\udc80"]})
        with pytest.raises(ClientError, match="cannot be sent as JSON"):
            client.jobs.submit({"command": ["true"], "gpus": float("nan")})
    assert server.requests[0].headers["Content-Type"] == "application/json"
    assert json.loads(server.requests[0].body) == {"command": ["echo", "é\udc80"]}
    assert len(server.requests) == 1


def test_edits_are_conditional_where_the_caller_wants_it() -> None:
    """An ETag is sent back for objects that were read or edited in the block, and for no others."""
    tags = iter(("one", "two", "three", "four", "five", "six", "seven"))

    def answer(seen: Seen, before: int) -> Answer:
        return replace(as_json({"name": "night"}), headers={"ETag": f'"{next(tags)}"'})

    with scripted(answer) as server, Client(server.url) as client:
        client.queues.get("night")
        with client.if_unchanged() as same:
            same.queues.edit("night", {"weight": 1})
            same.queues.edit("night", {"weight": 2})
            same.queues.get("night")
            same.queues.edit("day", {"weight": 2})
            same.queues.edit("night", {"weight": 3})
        client.queues.edit("night", {"weight": 4})
    sent = [seen.headers.get("If-Match") for seen in server.requests if seen.method == "PATCH"]
    assert sent == [None, '"two"', None, '"four"', None]


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("http://127.0.0.1:8470/", "http://127.0.0.1:8470"),
        ("gpu-head:8470", "http://gpu-head:8470"),
        (" https://corral.example/team/ ", "https://corral.example/team"),
        ("http://[::1]:8470", "http://[::1]:8470"),
    ],
)
def test_an_address_has_one_spelling(given: str, address: str) -> None:
    assert server_address(given) == address


@pytest.mark.parametrize("given", ["", "ftp://x", "http://", "http://a:99999", "http://a:b", "http://a?x=1"])
def test_invalid_address_is_reported(given: str) -> None:
    with pytest.raises(ClientError, match="not the address of a server") as caught:
        server_address(given)
    assert "http://127.0.0.1:8470" in caught.value.hint


def test_an_empty_name_is_refused_before_it_names_a_list() -> None:
    with pytest.raises(ClientError, match="the name or id is empty"):
        segment("")
