"""The middleware of every request, without a server."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Query
from starlette.requests import Request
from starlette.responses import StreamingResponse

from corral.control.errors import InsufficientQuota
from corral.control.ports import EngineUnavailable, NameTaken, StoreConflict
from corral.server.http import middleware
from corral.server.http.middleware import RequestEnvelope
from corral.server.http.paging import page_of
from corral.server.http.problems import Problem, install_problem_handlers
from corral.server.http.strict_route import StrictRoute
from corral.server.wiring.server_log import JsonFormatter, add_log_file, configure_logging, request_id

observed: list[tuple[str, str, int, float]] = []


class Clock:
    """Stands still, but while a stream flows."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


clock = Clock()


def small_app() -> FastAPI:
    router = APIRouter(route_class=StrictRoute)

    @router.get("/fails/{kind}")
    async def fails(kind: str) -> None:
        raise {
            "bug": ZeroDivisionError("the secret inside"),
            "quota": InsufficientQuota("too much", field="gpus", asked=3, held=1, limit=2),
            "taken": NameTaken("job", "abcd"),
            "conflict": StoreConflict(),
            "engine": EngineUnavailable("no answer"),
        }[kind]

    @router.post("/echo")
    async def echo(body: dict[str, Any], times: Annotated[int, Query(ge=1)] = 1) -> dict[str, Any]:
        return body

    @router.get("/endless")
    async def endless() -> StreamingResponse:
        async def lines() -> Any:
            yield "data: 1\n\n"
            clock.now += 100.0
            yield "data: 2\n\n"

        return StreamingResponse(lines(), media_type="text/event-stream")

    app = FastAPI()
    app.router.routes.extend(router.routes)
    install_problem_handlers(app)
    app.add_middleware(RequestEnvelope, observe=lambda *seen: observed.append(seen), max_body_bytes=1000)
    return app


def ask(method: str, path: str, **options: Any) -> httpx.Response:
    async def go() -> httpx.Response:
        transport = httpx.ASGITransport(app=small_app())
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.request(method, path, **options)

    return asyncio.run(go())


def test_a_bug_is_logged_in_full_and_answered_in_short(caplog: pytest.LogCaptureFixture) -> None:
    answer = ask("GET", "/fails/bug")
    assert (answer.status_code, answer.json()["type"]) == (500, "/problems/internal-error")
    assert "secret" not in answer.text
    assert "the secret inside" in caplog.text
    assert answer.headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize(
    ("kind", "status", "slug"),
    [
        ("quota", 409, "insufficient-quota"),
        ("taken", 409, "name-taken"),
        ("conflict", 409, "conflict"),
        ("engine", 503, "engine-unavailable"),
    ],
)
def test_known_errors_become_their_problems(kind: str, status: int, slug: str) -> None:
    answer = ask("GET", f"/fails/{kind}")
    assert (answer.status_code, answer.json()["type"]) == (status, f"/problems/{slug}")


def test_a_refusal_carries_its_numbers_and_its_field() -> None:
    body = ask("GET", "/fails/quota").json()
    assert (body["asked"], body["held"], body["limit"]) == (3, 1, 2)
    assert body["errors"] == [{"field": "gpus", "message": "too much"}]


def test_numbers_never_overwrite_what_a_problem_must_say() -> None:
    problem = Problem(409, "Title", "Detail", slug="s", numbers={"status": "running", "state": "x"})
    body = json.loads(bytes(problem.response().body))
    assert (body["status"], body["state"]) == (409, "x")


def test_unknown_query_parameters_and_large_bodies_are_refused() -> None:
    assert ask("POST", "/echo", params={"time": 1}, json={}).json()["errors"][0]["field"] == "time"
    assert ask("POST", "/echo", json={"x": "y" * 2000}).status_code == 413
    assert ask("POST", "/echo", json={"x": "y"}, params={"times": 2}).json() == {"x": "y"}


def test_requests_are_measured_by_route_and_streams_until_they_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "time", clock)
    observed.clear()
    ask("GET", "/fails/taken")
    ask("GET", "/nowhere/at/all")
    ask("GET", "/endless")
    assert [seen[:3] for seen in observed] == [
        ("GET", "/fails/{kind}", 409),
        ("GET", "other", 404),
        ("GET", "/endless", 200),
    ]
    assert observed[-1][3] == 0.0


def test_the_log_file_is_private_and_rotated(tmp_path: Path) -> None:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    path = tmp_path / "corral.log"
    try:
        configure_logging(log_format="plain", level="info")
        close = add_log_file(path, max_bytes=4096, count=2)
        for number in range(200):
            logging.getLogger("corral.test").info("line %s %s", number, "x" * 80)
        close()
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["corral.log", "corral.log.1", "corral.log.2"]
    assert all(file.stat().st_size <= 4096 and file.stat().st_mode & 0o077 == 0 for file in files)
    assert "INFO corral.test [-] line 199" in path.read_text().splitlines()[-1]


def test_log_lines_carry_the_request(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        configure_logging(log_format="plain", level="info")
        token = request_id.set("r-7")
        logging.getLogger("corral.test").warning("something odd")
        request_id.reset(token)
        assert "WARNING corral.test [r-7] something odd" in capsys.readouterr().err
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    record = logging.LogRecord("corral.test", logging.INFO, "", 0, "said %s", ("hello",), None)
    line = json.loads(JsonFormatter().format(record))
    assert (line["level"], line["message"]) == ("info", "said hello")
    assert line["at"].endswith("Z")


def key(item: str) -> tuple[str]:
    return (item,)


def test_pages_of_a_list_in_memory() -> None:
    letters = list("dbca")
    first = page_of(letters, key=key, limit=3, cursor=None)
    assert first.items == ["a", "b", "c"]
    # What comes and goes in between shifts nothing.
    letters.remove("a")
    assert page_of(letters, key=key, limit=3, cursor=first.next_cursor).items == ["d"]
    assert page_of([], key=key, limit=3, cursor=None).next_cursor is None


@pytest.mark.parametrize("cursor", ["", "%%%", "WzFd", "e30", "bnVsbA"])
def test_a_strange_cursor_is_refused(cursor: str) -> None:
    refused: Callable[[], Any] = lambda: page_of(["a", "b"], key=key, limit=1, cursor=cursor)  # noqa: E731
    with pytest.raises(Problem, match="cursor"):
        refused()


def test_a_client_that_leaves_before_its_request_is_complete_is_no_error_of_the_server() -> None:
    seen: list[tuple[str, int]] = []

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        raise AssertionError(message)

    async def reads(scope: Any, receive: Any, send: Any) -> None:
        await Request(scope, receive).body()

    envelope = RequestEnvelope(reads, observe=lambda method, _, status, __: seen.append((method, status)))
    asyncio.run(envelope({"type": "http", "method": "PUT", "path": "/parts/1", "headers": []}, receive, send))
    assert seen == [("PUT", 499)]
