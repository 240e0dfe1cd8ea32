"""Creating requests under a key: carried out once, answered alike, also over a crash of the server."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import zstandard

from tests.servers.corral_server import CorralServer

JOB = {"command": ["true"], "gpus": 1}
#: One request of each way in which routes make their answers.
CREATING: list[tuple[str, dict[str, Any]]] = [
    ("/jobs", JOB),
    ("/jobs:batch", {"jobs": [JOB, JOB]}),
    ("/jobs:array", {**JOB, "name": "sweep", "array": "1-3"}),
    ("/workbenches", {"name": "bench"}),
    ("/tasks", {"task": "hold", "gpus": 1}),
    ("/users", {"name": "zoe", "password": "a-password-of-zoe"}),
    ("/groups", {"name": "vision"}),
    ("/me/tokens", {"name": "ci"}),
    ("/queues", {"name": "night"}),
    ("/flavors", {"name": "big", "models": ["A100-80G"]}),
    ("/volumes", {"name": "data", "type": "filesystem", "size": "1GiB"}),
    ("/silences", {"duration": "1h"}),
    ("/reports", {"period": "1d"}),
    ("/datasets", {"name": "images"}),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CorralServer]:
    started = CorralServer(tmp_path_factory.mktemp("home"), "--virtual-gpus=8xA100-80G")
    started.start()
    yield started
    started.kill()


@pytest.fixture
def http(server: CorralServer) -> Iterator[httpx.Client]:
    with server.http() as client:
        yield client


def post(http: httpx.Client, path: str, body: Any, key: str) -> httpx.Response:
    return http.post(path, json=body, headers={"Idempotency-Key": key})


def forget_answers(home: Path) -> None:
    """Imitates a server that died between the commit and the answer."""
    with closing(sqlite3.connect(home / "corral.db", timeout=30)) as store, store:
        store.execute("UPDATE request_keys SET answer = NULL, status = NULL")


@pytest.mark.parametrize(("path", "body"), CREATING, ids=[path for path, _ in CREATING])
def test_the_same_request_is_answered_alike(http: httpx.Client, path: str, body: dict[str, Any]) -> None:
    key = f"key-of-{path}"
    first = post(http, path, body, key)
    assert first.status_code in (201, 202), first.text
    second = post(http, path, body, key)
    assert second.status_code == first.status_code, second.text
    if second.headers.get("Idempotency-Replayed"):
        assert second.content == first.content
    else:
        # Made again from the stored result, before the answer was stored.
        assert _identity(second.json()) == _identity(first.json())
    again = post(http, path, body, key)
    assert _identity(again.json()) == _identity(first.json())


def _identity(answer: dict[str, Any]) -> list[Any]:
    things = answer.get("items", [answer])
    return [thing.get("token") or thing.get("id") or thing.get("name") or thing["job"]["id"] for thing in things]


def test_another_request_under_the_key_is_refused(http: httpx.Client) -> None:
    made = post(http, "/jobs", JOB, "mine").json()
    refused = post(http, "/jobs", {**JOB, "gpus": 2}, "mine")
    assert refused.status_code == 422
    assert refused.json()["type"] == "/problems/idempotency-key-reused"
    assert post(http, "/jobs", JOB, "mine").json()["id"] == made["id"]
    other = post(http, "/jobs", JOB, "x" * 201)
    assert other.status_code == 422
    assert "200 visible ASCII" in other.json()["detail"]


def test_keys_of_other_users_are_other_keys(server: CorralServer, http: httpx.Client) -> None:
    server.add_user("lin")
    mine = post(http, "/jobs", JOB, "shared").json()
    with server.http("lin") as hers:
        assert post(hers, "/jobs", JOB, "shared").json()["id"] != mine["id"]


def test_a_refused_request_leaves_its_key_free(http: httpx.Client) -> None:
    body = {**JOB, "queue": "later"}
    assert post(http, "/jobs", body, "retry").status_code in (404, 409, 422)
    http.post("/queues", json={"name": "later"}).raise_for_status()
    assert post(http, "/jobs", body, "retry").status_code == 201


def test_concurrent_requests_make_one_job(server: CorralServer, http: httpx.Client) -> None:
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: post(http, "/jobs", {**JOB, "name": "once"}, "many"), range(12)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["id"] for answer in answers}) == 1


def test_a_lost_answer_is_made_again_after_a_crash(tmp_path: Path) -> None:
    server = CorralServer(tmp_path / "home", "--virtual-gpus=8xA100-80G")
    try:
        server.start()
        bodies = [
            ("/jobs", JOB, "a"),
            ("/jobs:array", {**JOB, "name": "sweep", "array": "1-3"}, "b"),
            ("/queues", {"name": "q"}, "c"),
        ]
        with server.http() as http:
            first = [post(http, *one) for one in bodies]
            token = post(http, "/me/tokens", {"name": "ci"}, "d")
            assert token.status_code == 201
        server.kill()
        forget_answers(server.home)
        server.start()
        with server.http() as http:
            second = [post(http, *one) for one in bodies]
            assert [_identity(each.json()) for each in second] == [_identity(each.json()) for each in first]
            assert len(http.get("/jobs").json()["items"]) == 4
            lost = post(http, "/me/tokens", {"name": "ci"}, "d")
        assert lost.status_code == 409, "a secret cannot be made again"
        assert lost.json()["type"] == "/problems/answer-lost"
    finally:
        server.kill()


def test_stored_answers_hold_no_secret(server: CorralServer, http: httpx.Client) -> None:
    token = post(http, "/me/tokens", {"name": "secret"}, "hidden").json()["token"]
    assert post(http, "/me/tokens", {"name": "secret"}, "hidden").json()["token"] == token
    job = post(http, "/jobs", {**JOB, "port": 0}, "app").json()["id"]
    share = f"/apps/{job}/shares"
    address = post(http, share, {"lasts": "1h"}, "link").json()["address"]
    assert post(http, share, {"lasts": "1h"}, "link").json()["address"] == address
    secret = address.partition("corral_link=")[2]
    assert secret
    with closing(sqlite3.connect(server.home / "corral.db", timeout=30)) as store:
        answers = [unpacked(answer) for (answer,) in store.execute("SELECT answer FROM request_keys") if answer]
    for value in (token.encode(), secret.encode()):
        assert not [answer for answer in answers if value in answer]
        for path in server.home.glob("corral.db*"):
            assert value not in path.read_bytes()


def unpacked(answer: bytes) -> bytes:
    """A stored answer without its compression."""
    is_compressed = answer.startswith(b"\x28\xb5\x2f\xfd")
    return zstandard.ZstdDecompressor().decompress(answer) if is_compressed else answer
