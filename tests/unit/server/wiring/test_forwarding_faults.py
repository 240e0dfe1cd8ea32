"""A leader that is lost at any moment of a forwarded request: the caller gets a whole answer, or 503 with Retry-After.

The leader is a socket that follows the protocol up to a point, and fails there.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Scope

from corral.control.live.controller import ControllerStopped
from corral.control.live.worker import WorkerStopped
from corral.control.ports import StoreUnavailable
from corral.server.http.middleware import RequestEnvelope
from corral.server.wiring import forwarding
from corral.server.wiring.forwarding import Forwarding

BODY = b'{"id": "j-1"}'
HEAD = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY)
REQUEST = b'{"command": ["true"]}'

#: What the leader sends after it has read the whole request, before it is lost.
SENT = {
    "nothing": b"",
    "half a status line": b"HTTP/1.1 20",
    "a status line": b"HTTP/1.1 201 Created\r\n",
    "half of the headers": HEAD[:40],
    "all headers": HEAD,
    "half of the body": HEAD + BODY[:5],
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00 what is this\r\n\r\n",
}


def _read_request(connection: socket.socket) -> None:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(4096)
    head, _, rest = data.partition(b"\r\n\r\n")
    named = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    left = int(named[0].split(b":")[1]) - len(rest) if named else 0
    while left > 0:
        left -= len(connection.recv(4096))


@contextmanager
def leader(fate: Callable[[socket.socket], None], *, with_reset: bool = False) -> Iterator[str]:
    """The address of the leader. `fate` is called with each connection, which is then closed, or reset."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                if with_reset:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                fate(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(30)


async def _nothing() -> None:
    pass


class Peer:
    name = "two"
    key = "key-of-two"
    is_leading = False
    store_answers = True
    is_ending = False

    def __init__(self, leader: str, caught_up: Callable[[], Awaitable[None]] = _nothing) -> None:
        self.leader: str | None = leader
        self._caught_up = caught_up

    def leader_url(self) -> str | None:
        return self.leader

    def is_page(self, scope: Scope) -> bool:
        return False

    def is_server(self, name: str, key: str) -> bool:
        return False

    async def caught_up(self) -> None:
        await self._caught_up()


async def _here(request: Request) -> JSONResponse:
    return JSONResponse({"place": "standby"})


def ask(peer: Peer, method: str = "POST", path: str = "/api/v1/jobs", **options: Any) -> httpx.Response:
    """Through all layers that an answer passes."""

    async def asked() -> httpx.Response:
        inner = Starlette(routes=[Route("/{path:path}", _here, methods=["GET", "POST", "PUT", "DELETE"])])
        app = RequestEnvelope(Forwarding(inner, peer=peer), observe=lambda *_: None, max_body_bytes=1000)
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://corral.example.org") as client:
            return await client.request(method, path, **options)

    return asyncio.run(asked())


def refused(answer: httpx.Response) -> None:
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["Retry-After"]) >= 1
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["status"] == 503


@pytest.mark.parametrize("with_reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("method", ["POST", "DELETE"])
@pytest.mark.parametrize("sent", SENT)
def test_a_leader_that_is_lost_in_its_answer_leaves_503(sent: str, method: str, with_reset: bool) -> None:
    def fate(connection: socket.socket) -> None:
        _read_request(connection)
        connection.sendall(SENT[sent])

    content = REQUEST if method == "POST" else None
    with leader(fate, with_reset=with_reset) as url:
        refused(ask(Peer(url), method, content=content))


@pytest.mark.parametrize("with_reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("read", [0, 1])
def test_a_leader_that_is_lost_in_the_request_leaves_503(read: int, with_reset: bool) -> None:
    def fate(connection: socket.socket) -> None:
        connection.recv(read)

    with leader(fate, with_reset=with_reset) as url:
        refused(ask(Peer(url), content=REQUEST))


def test_a_leader_that_was_replaced_while_it_did_not_answer_leaves_503() -> None:
    ended = threading.Event()

    def fate(connection: socket.socket) -> None:
        _read_request(connection)
        peer.leader = "http://127.0.0.1:1"
        ended.wait(30)

    with leader(fate) as url:
        peer = Peer(url)
        try:
            answer = ask(peer, content=REQUEST)
        finally:
            ended.set()
    refused(answer)
    assert "before you try again" in answer.json()["detail"], "the former leader may have made the change"


@pytest.mark.parametrize(
    "error",
    [
        ControllerStopped("this server has become the leader"),
        WorkerStopped(),
        StoreUnavailable("it restarts"),
        RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed"),
        TimeoutError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_answer_is_passed_on_even_if_this_server_can_no_longer_follow(error: Exception) -> None:
    """Such as in the moment in which it becomes the leader itself."""

    async def fails() -> None:
        raise error

    def fate(connection: socket.socket) -> None:
        _read_request(connection)
        connection.sendall(HEAD + BODY)

    with leader(fate) as url:
        answer = ask(Peer(url, fails), content=REQUEST)
    assert (answer.status_code, answer.content) == (201, BODY)


@pytest.mark.parametrize("error", [RuntimeError("the handler is closed"), OSError(9, "bad file descriptor")])
def test_errors_of_the_event_loop_are_those_of_a_lost_leader(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    async def send(*_: object, **__: object) -> httpx.Response:
        raise error

    monkeypatch.setattr(httpx.AsyncClient, "send", send)
    request = {"type": "http", "method": "POST", "path": "/api/v1/jobs", "headers": [], "query_string": b""}

    async def asked() -> list[Any]:
        sent: list[Any] = []

        async def note(message: Any) -> None:
            sent.append(message)

        layer = Forwarding(_never, peer=Peer("http://127.0.0.1:1"))
        await layer({**request, "scheme": "http"}, _no_body, note)
        return sent

    start, body = asyncio.run(asked())
    assert start["status"] == 503
    assert b"retry-after" in dict(start["headers"])
    assert json.loads(body["body"])["status"] == 503


async def _never(*_: object) -> None:
    raise AssertionError("it is not answered here")


async def _no_body() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


@pytest.mark.parametrize("sent", SENT)
def test_a_read_is_answered_here_if_the_leader_is_lost_in_its_answer(sent: str) -> None:
    def fate(connection: socket.socket) -> None:
        _read_request(connection)
        connection.sendall(SENT[sent])

    with leader(fate) as url:
        answer = ask(Peer(url), "GET", "/api/v1/nodes")
    assert (answer.status_code, answer.json()) == (200, {"place": "standby"})


def test_a_long_answer_is_passed_on_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "WHOLE_BYTES", 4)

    def fate(connection: socket.socket) -> None:
        _read_request(connection)
        connection.sendall(HEAD + BODY)

    with leader(fate) as url:
        answer = ask(Peer(url), content=REQUEST)
    assert (answer.status_code, answer.content) == (201, BODY)


def test_a_body_of_unknown_length_that_is_too_large_is_refused_as_by_the_leader() -> None:
    async def endless() -> Any:
        for _ in range(100):
            yield b"x" * 100

    with leader(_read_until_closed) as url:
        answer = ask(Peer(url), content=endless())
    assert answer.status_code == 413
    assert "1000 bytes" in answer.json()["detail"]


def _read_until_closed(connection: socket.socket) -> None:
    connection.settimeout(30)
    try:
        while connection.recv(4096):
            pass
    except OSError:
        pass
