"""The requests that a standby forwards to the leader, and those that it answers itself. The leader is a real server on
a socket.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import Scope
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from corral.server.wiring import forwarding
from corral.server.wiring.forwarding import ANSWERED_BY, MARK, Forwarding
from tests.servers.kubernetes.certificates import Authority


class Peer:
    store_answers = True
    is_ending = False

    def __init__(self, name: str, *, leader: str | None = None, is_leading: bool = False) -> None:
        self.name = name
        self.key = f"key-of-{name}"
        self.is_leading = is_leading
        self.leader = leader
        self.followed = 0

    def leader_url(self) -> str | None:
        return self.leader

    def is_page(self, scope: Scope) -> bool:
        return dict(scope["headers"]).get(b"host", b"").startswith(b"j-1.")

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
            "has_key": "key-of" in str(request.headers),
        },
        status_code=int(request.query_params.get("status", "200")),
        headers={"X-Own": "kept"},
    )


async def pieces(_: Request) -> StreamingResponse:
    async def parts() -> AsyncIterator[bytes]:
        for number in range(3):
            yield b"%d" % number

    return StreamingResponse(parts())


async def shell(websocket: WebSocket) -> None:
    """Refuses a caller without a token, reports who has called, and echoes."""
    if "authorization" not in websocket.headers:
        await websocket.send_denial_response(JSONResponse({"title": "Not signed in"}, status_code=401))
        return
    await websocket.accept(subprotocol=websocket.scope["subprotocols"][0])
    client = websocket.client.host if websocket.client else ""
    place, headers = websocket.app.state.place, websocket.headers
    await websocket.send_json([place, client, headers["host"], headers["authorization"], websocket.url.query])
    try:
        await websocket.send_bytes(await websocket.receive_bytes() * 2)
        await websocket.close(4001, "done")
    except WebSocketDisconnect:
        return


def application(place: str, peer: Peer, ca: str | None = None) -> Any:
    every = ["GET", "POST", "PUT", "DELETE"]
    app = Starlette(
        routes=[
            Route("/api/v1/pieces", pieces, methods=every),
            WebSocketRoute("/api/v1/jobs/{job}/shell", shell),
            Route("/{path:path}", echo, methods=every),
        ]
    )
    app.state.place = place
    return Forwarding(app, peer=peer, ca=ca)


@pytest.fixture
def leader() -> Iterator[str]:
    """The address of the leader."""
    with served("leader", Peer("one", is_leading=True)) as url:
        yield url


@contextmanager
def served(place: str, peer: Peer, *, ca: str | None = None, **tls: str) -> Iterator[str]:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    # A request that comes before the server's thread waits; without this line it is refused.
    listener.listen()
    app = application(place, peer, ca)
    config = uvicorn.Config(app, log_config=None, lifespan="off", ws="websockets-sansio", **tls)  # type: ignore[arg-type]
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{listener.getsockname()[1]}"
    finally:
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
        "has_key": False,
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


def test_routes_get_no_key_of_a_server(leader: str) -> None:
    """Requests go on to programs of jobs, with their headers."""
    for answer in (
        ask(Peer("one", is_leading=True), "GET", "/apps/j-2/", headers={MARK: "three key-of-three 10.9.9.9"}),
        ask(Peer("two"), "GET", "/api/v1/jobs", headers={MARK: "three key-of-three 10.9.9.9"}),
        ask(Peer("two", leader=leader), "GET", "/apps/j-2/"),
        ask(Peer("two", leader=leader), "POST", "/api/v1/jobs"),
    ):
        assert answer.status_code == 200
        assert answer.json()["has_key"] is False


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("/workbenches/j-1/jupyter/lab", "corral.example.org"),
        ("/apps/j-2/board/", "corral.example.org"),
        ("/anything", "j-1.localhost:8470"),
    ],
)
def test_pages_of_workbenches_and_apps_come_from_the_leader(leader: str, path: str, host: str) -> None:
    """It has the tickets that it has issued, and the ways into jobs."""
    answer = ask(Peer("two", leader=leader), "GET", path, headers={"Host": host}).json()
    assert (answer["place"], answer["host"], answer["client"]) == ("leader", host, "10.1.2.3")
    assert ask(Peer("two"), "GET", path, headers={"Host": host}).status_code == 503


def test_a_shell_is_opened_by_the_leader_in_the_name_of_the_caller(leader: str) -> None:
    with served("standby", Peer("two", leader=leader)) as standby:
        address = f"{standby.replace('http', 'ws')}/api/v1/jobs/j-1/shell?tty=true"
        headers = {"Authorization": "Bearer mine"}
        with connect(address, additional_headers=headers, subprotocols=["one", "two"], proxy=None) as shell:  # type: ignore[list-item]
            assert shell.subprotocol == "one"
            host = standby.removeprefix("http://")
            assert json.loads(shell.recv()) == ["leader", "127.0.0.1", host, "Bearer mine", "tty=true"]
            shell.send(b"ab")
            assert shell.recv() == b"abab"
            with pytest.raises(Exception, match="done"):
                shell.recv()


def test_a_refusal_of_a_shell_is_passed_on(leader: str) -> None:
    with served("standby", Peer("two", leader=leader)) as standby:
        address = f"{standby.replace('http', 'ws')}/api/v1/jobs/j-1/shell"
        with pytest.raises(InvalidStatus) as refused:
            connect(address, proxy=None)
    assert refused.value.response.status_code == 401
    assert json.loads(refused.value.response.body or b"") == {"title": "Not signed in"}


@pytest.mark.parametrize("leader_url", [None, "http://127.0.0.1:1"])
def test_without_a_leader_a_shell_is_refused_and_may_be_tried_again(leader_url: str | None) -> None:
    with served("standby", Peer("two", leader=leader_url)) as standby, pytest.raises(InvalidStatus) as refused:
        connect(f"{standby.replace('http', 'ws')}/api/v1/jobs/j-1/shell", proxy=None)
    assert refused.value.response.status_code == 503
    assert refused.value.response.headers["Retry-After"] == "1"


def test_a_shell_ends_when_another_server_leads(leader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that is frozen does not close it."""
    monkeypatch.setattr(forwarding, "SOCKET_LOOK_SECONDS", 0.01)
    peer = Peer("two", leader=leader)
    with served("standby", peer) as standby:
        address = f"{standby.replace('http', 'ws')}/api/v1/jobs/j-1/shell"
        headers = {"Authorization": "Bearer mine"}
        with connect(address, additional_headers=headers, subprotocols=["one"], proxy=None) as shell:  # type: ignore[list-item]
            shell.recv()
            peer.leader = "http://127.0.0.1:1"
            with pytest.raises(Exception, match="another server leads"):
                shell.recv()


def test_a_leader_with_a_certificate_is_reached_by_https(tmp_path: Path) -> None:
    """A server whose authority is not among those of the machine."""
    authority = Authority()
    certificate, key = authority.issue("leader", addresses=(IPv4Address("127.0.0.1"),)).write(tmp_path, "leader")
    ca = tmp_path / "ca.pem"
    ca.write_bytes(authority.certificate)
    files = {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}
    headers = {"Authorization": "Bearer mine"}
    with (
        served("leader", Peer("one", is_leading=True), **files) as url,
        served("standby", Peer("two", leader=url), ca=str(ca)) as standby,
        served("doubter", Peer("two", leader=url)) as doubter,
    ):
        assert httpx.post(f"{standby}/api/v1/jobs", trust_env=False).json()["place"] == "leader"
        address = f"{standby.replace('http', 'ws')}/api/v1/jobs/j-1/shell"
        with connect(address, additional_headers=headers, subprotocols=["one"], proxy=None) as shell:  # type: ignore[list-item]
            assert json.loads(shell.recv())[0] == "leader"
        assert httpx.post(f"{doubter}/api/v1/jobs", trust_env=False).status_code == 503
