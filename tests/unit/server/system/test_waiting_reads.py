"""Reads at one of several servers while its store is away, or does not answer: a caller that repeats a read once, after
the time that the answer names, gets its answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Scope

from corral.server.http.problems import Problem, stopping, store_unavailable
from corral.server.system import waiting_reads
from corral.server.wiring.forwarding import MARK, Forwarding

Answer = Callable[[Request], Awaitable[Response]]


class Peer:
    """One that stands by, while no server leads."""

    name = "two"
    key = "key-of-two"
    is_leading = False
    store_answers = True
    is_ending = False
    leader: str | None = None

    def leader_url(self) -> str | None:
        return self.leader

    def is_page(self, scope: Scope) -> bool:
        return False

    def is_server(self, name: str, key: str) -> bool:
        return False

    async def caught_up(self) -> None: ...


class Server:
    """Answers as each of `states` says, one after the other, and then as the last one does."""

    def __init__(self, *states: Answer, peer: Peer | None = None) -> None:
        self.peer = peer or Peer()
        self.asked = 0
        self._states = states
        app = FastAPI()
        app.add_api_route("/{path:path}", self._answer, methods=["GET", "POST"])
        app.add_exception_handler(Problem, _of_problem)
        self._app = Forwarding(app, peer=self.peer)

    async def _answer(self, request: Request, path: str) -> Response:
        state = self._states[min(self.asked, len(self._states) - 1)]
        self.asked += 1
        return await state(request)

    def ask(self, method: str = "GET", path: str = "/api/v1/events", **options: Any) -> httpx.Response:
        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://corral.example.org") as client:
                return await client.request(method, path, **options)

        return asyncio.run(asyncio.wait_for(asked(), 60))


async def _of_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return error.response()


async def good(request: Request) -> Response:
    return JSONResponse({"said": (await request.body()).decode(), "path": request.path_params["path"]})


async def away(request: Request) -> Response:
    await request.body()
    raise store_unavailable()


async def ends(_: Request) -> Response:
    raise stopping()


async def hangs(_: Request) -> Response:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"PAUSE_SECONDS": 0.001, "SILENT_SECONDS": 0.02, "LOOK_SECONDS": 0.01}.items():
        monkeypatch.setattr(waiting_reads, name, seconds)


def refused(answer: httpx.Response, slug: str = "store-unavailable") -> None:
    assert answer.status_code == 503
    assert answer.json()["type"] == f"/problems/{slug}"
    assert int(answer.headers["Retry-After"]) >= 1


@pytest.mark.parametrize("is_leading", [False, True])
def test_a_read_waits_for_a_store_that_restarts(is_leading: bool) -> None:
    server = Server(away, away, away, good)
    server.peer.is_leading = is_leading
    answer = server.ask(content=b"what was asked")
    assert answer.json() == {"said": "what was asked", "path": "api/v1/events"}
    assert server.asked == 4


def test_a_store_that_stays_away_is_said_with_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_reads, "WAIT_SECONDS", 0.05)
    server = Server(away)
    refused(server.ask())
    assert server.asked > 1


def test_nothing_waits_at_a_server_that_ends() -> None:
    server = Server(away, good)
    server.peer.is_ending = True
    refused(server.ask())
    stopped = Server(ends, good)
    stopped.peer.is_ending = True
    answer = stopped.ask()
    refused(answer, "unavailable")
    assert answer.headers.get_list("Retry-After") == ["1"], "another server answers meanwhile"
    assert (server.asked, stopped.asked) == (1, 1)


@pytest.mark.parametrize("is_leading", [False, True])
def test_a_read_that_waits_for_a_store_that_does_not_answer_is_refused(is_leading: bool) -> None:
    """Such as behind a network that loses every packet."""
    server = Server(hangs, good)
    server.peer.is_leading, server.peer.store_answers = is_leading, False
    refused(server.ask())
    server.peer.store_answers = True
    assert server.ask().is_success


def test_a_long_read_is_waited_for_while_the_store_answers() -> None:
    async def slow(request: Request) -> Response:
        await asyncio.sleep(5 * waiting_reads.SILENT_SECONDS)
        return await good(request)

    assert Server(slow).ask().is_success


def test_an_answer_that_has_begun_goes_on_without_the_store() -> None:
    async def streamed(_: Request) -> Response:
        async def pieces() -> Any:
            yield b"one "
            await asyncio.sleep(5 * waiting_reads.SILENT_SECONDS)
            yield b"two"

        return StreamingResponse(pieces())

    server = Server(streamed)
    server.peer.store_answers = False
    assert server.ask().content == b"one two"


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("POST", "/api/v1/jobs", {}),
        # The one that has forwarded it answers in this one's place.
        ("GET", "/api/v1/jobs", {MARK: "one key 10.0.0.1"}),
        # The end of a sign-in cannot be repeated.
        ("GET", "/api/v1/auth/oidc/callback", {}),
        ("GET", "/readyz", {}),
    ],
)
def test_requests_that_cannot_be_repeated_are_asked_once(method: str, path: str, headers: dict[str, str]) -> None:
    peer = Peer()
    peer.is_leading = True
    server = Server(away, good, peer=peer)
    refused(server.ask(method, path, headers=headers))
    assert server.asked == 1


def test_other_refusals_are_passed_on_at_once() -> None:
    async def busy(_: Request) -> Response:
        return JSONResponse({"type": "/problems/busy"}, status_code=503, media_type="application/problem+json")

    async def plain(_: Request) -> Response:
        return Response("later", status_code=503)

    for state in (busy, plain):
        server = Server(state, good)
        assert server.ask().status_code == 503
        assert server.asked == 1


def test_an_error_of_a_route_is_that_of_the_read() -> None:
    async def broken(_: Request) -> Response:
        raise LookupError("in a route")

    with pytest.raises(LookupError, match="in a route"):
        Server(broken).ask()


def test_a_read_that_waits_is_passed_on_to_a_leader_that_is_found_meanwhile() -> None:
    """It is looked at anew with each try: this server may lead by then."""
    peer = Peer()

    async def becomes_leader(request: Request) -> Response:
        peer.is_leading = True
        return await away(request)

    server = Server(becomes_leader, good, peer=peer)
    assert server.ask(path="/api/v1/overview").is_success
