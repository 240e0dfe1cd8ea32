"""A client with the addresses of several servers: the next one answers when one does not."""

from __future__ import annotations

import socket

import pytest

from corral.client.client import Client
from corral.client.http.credentials import Credential, CredentialFile, default_path, default_token
from corral.client.http.errors import ApiProblem, ServerUnreachable
from corral.client.http.streams import LogEnd
from corral.client.http.transport import LEADER_DELAYS_SECONDS, server_address
from tests.unit.client.scripted_server import Answer, Seen, as_json, problem, scripted, stream


def nowhere() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def test_the_addresses_are_separated_by_commas() -> None:
    assert server_address(" one:8470, https://two/ ") == "http://one:8470,https://two"


def test_reads_and_changes_go_to_a_server_that_is_there() -> None:
    with (
        scripted(lambda seen, n: as_json({"id": "j-1"})) as server,
        Client(f"{nowhere()},{server.url},{nowhere()}") as client,
    ):
        assert client.jobs.get("j-1")["id"] == "j-1"
        assert client.jobs.stop("j-1")["id"] == "j-1"
    assert [seen.method for seen in server.requests] == ["GET", "POST"]


def test_a_stream_begins_at_a_server_that_is_there() -> None:
    end = 'event: end\ndata: {"state": "completed", "exit_code": 0}\n\n'
    with scripted(lambda seen, n: stream(end)) as server, Client(f"{nowhere()},{server.url}") as client:
        assert list(client.jobs.follow_log("j-1")) == [LogEnd(state="completed", exit_code=0)]


def test_a_read_that_one_server_cannot_answer_is_answered_by_the_next() -> None:
    naps: list[float] = []
    with (
        scripted(lambda seen, n: problem(503)) as one,
        scripted(lambda seen, n: as_json({"id": "j-1"})) as two,
        Client(f"{one.url},{two.url}", sleep=naps.append) as client,
    ):
        assert client.jobs.get("j-1")["id"] == "j-1"
    assert len(one.requests) == 1


def test_if_no_server_is_there_all_are_named() -> None:
    addresses = f"{nowhere()},{nowhere()}"
    with Client(addresses) as client, pytest.raises(ServerUnreachable) as caught:
        client.people.me()
    assert addresses in caught.value.message


def test_a_change_waits_for_a_leader_because_nothing_was_done() -> None:
    def answer(seen: Seen, before: int) -> Answer:
        return problem(503, type="/problems/no-leader") if before < 3 else as_json({"id": "j-1"})

    naps: list[float] = []
    with scripted(answer) as server, Client(server.url, sleep=naps.append) as client:
        assert client.jobs.stop("j-1")["id"] == "j-1"
    assert naps == list(LEADER_DELAYS_SECONDS[:3])


def test_a_change_with_another_answer_is_not_repeated() -> None:
    with (
        scripted(lambda seen, n: problem(503, type="/problems/store-unavailable")) as server,
        Client(f"{server.url},{nowhere()}") as client,
        pytest.raises(ApiProblem),
    ):
        client.jobs.stop("j-1")
    assert len(server.requests) == 1


def test_a_token_for_one_of_the_servers_is_used_for_all(tmp_path: object) -> None:
    env = {"CORRAL_HOME": str(tmp_path)}
    CredentialFile(default_path(env)).put("http://two:8470", Credential(user="ann", token="secret"))
    assert default_token(env, "http://one:8470,http://two:8470") == "secret"
    assert default_token(env, "http://one:8470") is None
