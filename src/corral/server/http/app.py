"""The application: routes, problems and the envelope around every request, put together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI

from corral.server.http.console_files import ConsoleFiles
from corral.server.http.context import ServerContext
from corral.server.http.middleware import RequestEnvelope
from corral.server.http.problems import install_problem_handlers
from corral.server.monitoring.server_metrics import ServerMetrics
from corral.server.routes.route_table import FIRST, REST, RestOfRoutes, loaded
from corral.server.system.licences import watch_licence
from corral.server.wiring.forwarding import Forwarding, Peer
from corral.server.workbenches.workbench_site import WorkbenchSites

log = logging.getLogger("corral.server")

VERSION = version("corral")


def build_app(context: ServerContext, console: ConsoleFiles | None = None, *, peer: Peer | None = None) -> FastAPI:
    """The application for the parts in `context`. With `peer` it is one of several servers: `app.state.context` is
    replaced when this one becomes the leader."""
    app = _app(context.metrics, peer, context.settings.high_availability.ca)
    rest = RestOfRoutes(app)
    app.router.routes[:] = [WorkbenchSites(), *loaded(FIRST), rest]
    app.state.context = context
    app.state.console = console or ConsoleFiles()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        context.feed.attach(asyncio.get_running_loop())
        watch = asyncio.create_task(watch_licence(lambda: present_context(app)))
        loading = asyncio.create_task(_loaded(rest))
        yield
        watch.cancel()
        loading.cancel()
        for used in {id(each_context): each_context for each_context in (context, present_context(app))}.values():
            used.audit.close()
            await used.jupyter.close()
        context.feed.close()
        context.passwords.close()

    app.router.lifespan_context = lifespan
    return app


async def _loaded(rest: RestOfRoutes) -> None:
    try:
        await rest.replaced()
    except Exception:
        # The installation is damaged. Requests that need these routes try it again, and fail.
        log.critical("the routes cannot be loaded", exc_info=True)


def present_context(app: FastAPI) -> ServerContext:
    context = app.state.context
    assert isinstance(context, ServerContext)
    return context


def bare_app() -> FastAPI:
    """An application with routes only, for the OpenAPI description; it cannot answer requests."""
    app = _app(ServerMetrics(VERSION))
    app.router.routes[:] = [*loaded(FIRST), *loaded(REST)]
    return app


def _app(metrics: ServerMetrics, peer: Peer | None = None, ca: str | None = None) -> FastAPI:
    # The description is served by a route of our own, to signed-in users.
    app = FastAPI(title="corral", version=VERSION, openapi_url=None, docs_url=None, redoc_url=None)
    # An address with a trailing slash is wrong: a redirect would drop the body.
    app.router.redirect_slashes = False
    install_problem_handlers(app)
    if peer is not None:
        # A layer of its own, which a single server does not pay for.
        app.add_middleware(Forwarding, peer=peer, ca=ca)
    app.add_middleware(RequestEnvelope, observe=metrics.observe_request)
    return app
