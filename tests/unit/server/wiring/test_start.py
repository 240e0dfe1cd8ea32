"""The work of a server's start before it is ready, counted and not timed."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Route

from corral.server.routes import route_table
from corral.server.routes.route_table import FIRST, REST, RestOfRoutes, loaded

#: Loads what a server loads before it is ready, and names the modules.
_READY = """
import json, sys
import corral.server.wiring.run
from corral.server.routes.route_table import FIRST, loaded
loaded(FIRST)
print(json.dumps(sorted(sys.modules)))
"""
#: Each costs a start tens of milliseconds, and is for one kind of request, or for one start after an upgrade.
_LATER = ("alembic", "joserfc.jwk", "pyarrow", "weasyprint", "boto3", "s3fs", "gcsfs", "kubernetes", "matplotlib")


@pytest.fixture(scope="module")
def modules() -> set[str]:
    found = subprocess.run([sys.executable, "-c", _READY], check=True, capture_output=True, text=True)
    return set(json.loads(found.stdout))


def test_a_start_loads_no_library_that_it_does_not_need(modules: set[str]) -> None:
    assert [name for name in _LATER if name in modules] == []


def test_a_start_loads_few_routes(modules: set[str]) -> None:
    routes = {name for name in modules if name.startswith("corral.server.routes.") and name.count(".") == 4}
    rest = {f"corral.server.routes.{module}" for module, _ in REST}
    # Pages of workbenches are recognised before all routes, and jobs show their logs.
    assert len(routes & rest) <= 4, sorted(routes & rest)


def test_every_route_is_in_the_table_once() -> None:
    routers = [(module, name) for module, names in (*FIRST, *REST) for name in names]
    assert len(routers) == len(set(routers))
    assert routers[-1] == ("system.home", "router"), "it answers at every other address"
    assert all(loaded(((module, names),)) for module, names in (*FIRST, *REST))


# ---------------------------------------------------------------- routes that are loaded later


def _app(monkeypatch: pytest.MonkeyPatch, load: Any) -> FastAPI:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.router.routes[:] = [_route("/first"), RestOfRoutes(app)]
    monkeypatch.setattr(route_table, "loaded", load)
    return app


def _route(path: str) -> Route:
    async def answer(request: Request) -> PlainTextResponse:
        return PlainTextResponse(path)

    return Route(path, answer)


def _ask(app: FastAPI, *paths: str, method: str = "GET") -> list[httpx.Response | Exception]:
    async def go() -> list[Any]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://test") as client:
            return await asyncio.gather(*(client.request(method, path) for path in paths), return_exceptions=True)

    return asyncio.run(go())


def test_a_request_waits_for_routes_that_are_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []

    def load(table: object) -> list[BaseRoute]:
        calls.append(table)
        return [_route("/second"), _route("/third")]

    app = _app(monkeypatch, load)
    assert [answer.text for answer in _ask(app, "/first") if isinstance(answer, httpx.Response)] == ["/first"]
    assert calls == [], "no other routes were needed"
    answers = _ask(app, "/third", "/second", "/first", "/nowhere")
    assert [getattr(answer, "status_code", answer) for answer in answers] == [200, 200, 200, 404]
    assert calls == [REST], "all requests wait for the same loading"
    assert not any(isinstance(route, RestOfRoutes) for route in app.router.routes)
    (wrong,) = _ask(app, "/second", method="DELETE")
    assert getattr(wrong, "status_code", wrong) == 405


def test_routes_that_cannot_be_loaded_are_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [ImportError("a file is missing")]

    def load(table: object) -> list[BaseRoute]:
        if failures:
            raise failures.pop()
        return [_route("/second")]

    app = _app(monkeypatch, load)
    (failed,) = _ask(app, "/second")
    assert isinstance(failed, ImportError)
    (answer,) = _ask(app, "/second")
    assert isinstance(answer, httpx.Response)
    assert answer.text == "/second"


def test_routes_cached_at_the_start_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    app = _app(monkeypatch, lambda table: [_route("/second")])
    app.state.routes_by_path = {("/first", "GET"): "a route"}
    _ask(app, "/second")
    assert app.state.routes_by_path is None
