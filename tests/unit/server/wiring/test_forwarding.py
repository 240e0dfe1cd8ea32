"""What a standby passes on to the leader, and what it answers itself. The leader is a real server on a socket."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from corral.server.wiring.forwarding import ANSWERED_BY, MARK, Forwarding


class Peer:
    def __init__(self, name: str, *, leader: str | None = None, is_leading: bool = False) -> None:
        self.name = name
        self.key = f"key-of-{name}"
        self.is_leading = is_leading
        self.leader = leader
        self.followed = 0

    def leader_url(self) -> str | None:
        return self.leader

    def is_server(self, name: str, key: str) -> bool:
        return key == f"key-of-{name}"

    async def caught_up(self) -> None:
        self.followed += 1


async def echo(request: Request) -> JSONResponse:
    body = await request.body()
    return JSONResponse(
        {
            "place": request.app.state.place,
            "path": request.url.path,
            "query": request.url.query,
            "body": body.decode(),
            "authorization": request.headers.get("authorization"),
            "host": request.headers.get("host"),
            "client": request.client.host if request.client else "",
        },
        status_code=int(request.query_params.get("status", "200")),
        headers={"X-Own": "kept"},
    )


async def pieces(_: Request) -> StreamingResponse:
    async def parts() -> AsyncIterator[bytes]:
        for number in range(3):
            yield b"%d" % number

    return StreamingResponse(parts())


def application(place: str, peer: Peer) -> Any:
    every = ["GET", "POST", "PUT", "DELETE"]
    app = Starlette(routes=[Route("/api/v1/pieces", pieces, methods=every), Route("/{path:path}", echo, methods=every)])
    app.state.place = place
    return Forwarding(app, peer=peer)


@pytest.fixture
def leader() -> Iterator[str]:
    """Its address."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    # A request that comes before the server's thread waits; without this line it is refused.
    listener.listen()
    config = uvicorn.Config(
        application("leader", Peer("one", is_leading=True)), log_config=None, lifespan="off", ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(30)


def ask(peer: Peer, method: str, path: str, **options: Any) -> httpx.Response:
    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(application("standby", peer), client=("10.1.2.3", 4711))
        async with httpx.AsyncClient(transport=transport, base_url="http://corral.example.org") as client:
            return await client.request(method, path, **options)

    return asyncio.run(asked())


def test_a_change_is_made_by_the_leader_with_the_credentials_and_address_of_the_caller(leader: str) -> None:
    peer = Peer("two", leader=leader)
    answer = ask(
        peer, "POST", "/api/v1/jobs?dry=1", content=b'{"a": 1}', headers={"Authorization": "Bearer of the caller"}
    )
    assert answer.json() == {
        "place": "leader",
        "path": "/api/v1/jobs",
        "query": "dry=1",
        "body": '{"a": 1}',
        "authorization": "Bearer of the caller",
        "host": "corral.example.org",
        "client": "10.1.2.3",
    }
    assert answer.headers["X-Own"] == "kept"
    assert answer.headers[ANSWERED_BY] == "two"
    # The caller reads its own write at this server.
    assert peer.followed == 1


def test_refusals_and_streams_are_passed_on(leader: str) -> None:
    assert ask(Peer("two", leader=leader), "DELETE", "/api/v1/jobs/j-1?status=409").status_code == 409
    assert ask(Peer("two", leader=leader), "POST", "/api/v1/pieces").content == b"012"


def test_reads_are_answered_here_and_measurements_by_the_leader(leader: str) -> None:
    assert ask(Peer("two", leader=leader), "GET", "/api/v1/queues").json()["place"] == "standby"
    assert ask(Peer("two", leader=leader), "GET", "/api/v1/nodes").json()["place"] == "leader"


def test_without_an_answer_of_the_leader_measurements_are_answered_here(leader: str) -> None:
    assert ask(Peer("two", leader="http://127.0.0.1:1"), "GET", "/api/v1/nodes").json()["place"] == "standby"
    assert ask(Peer("two", leader=leader), "GET", "/api/v1/nodes?status=503").json()["place"] == "standby"
    assert ask(Peer("two"), "GET", "/api/v1/nodes").json()["place"] == "standby"


@pytest.mark.parametrize("leader_url", [None, "http://127.0.0.1:1"])
def test_without_a_leader_changes_are_refused_and_may_be_repeated(leader_url: str | None) -> None:
    answer = ask(Peer("two", leader=leader_url), "POST", "/api/v1/jobs", content=b"{}")
    assert (answer.status_code, answer.json()["type"]) == (503, "/problems/no-leader")
    assert answer.headers["Retry-After"] == "1"


def test_a_forwarded_change_is_never_forwarded_again(leader: str) -> None:
    answer = ask(Peer("two", leader=leader), "POST", "/api/v1/jobs", headers={MARK: "three key-of-three 10.0.0.1"})
    assert (answer.status_code, answer.json()["type"]) == (503, "/problems/no-leader")


def test_only_servers_of_the_store_may_name_the_address_of_a_caller() -> None:
    leading = Peer("one", is_leading=True)
    forged = ask(leading, "POST", "/api/v1/jobs", headers={MARK: "three guessed 10.9.9.9"})
    assert forged.json()["client"] == "10.1.2.3"
    true = ask(leading, "POST", "/api/v1/jobs", headers={MARK: "three key-of-three 10.9.9.9"})
    assert true.json()["client"] == "10.9.9.9"
