"""The application: routes, problems and the envelope around every request, put together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI

from corral.server.http.console_files import ConsoleFiles
from corral.server.http.context import ServerContext
from corral.server.http.middleware import RequestEnvelope
from corral.server.http.problems import install_problem_handlers
from corral.server.monitoring.server_metrics import ServerMetrics
from corral.server.routes.alerts import alerts, channels
from corral.server.routes.datasets import dataset_files, dataset_targets, datasets, operations
from corral.server.routes.fleet import catalog, nodes, panel, pools
from corral.server.routes.jobs import (
    arrays,
    checkpoints,
    files,
    images,
    job_moves,
    jobs,
    logs,
    preset_assets,
    presets,
    tasks,
)
from corral.server.routes.monitoring import health_checks, measurements
from corral.server.routes.people import (
    auth,
    budgets,
    events,
    groups,
    inbox,
    me,
    permission_groups,
    quotas,
    sign_in,
    sign_in_providers,
    ssh_keys,
    users,
)
from corral.server.routes.reports import analysis, reports
from corral.server.routes.scheduling import estimates, queues, receipts, reservations
from corral.server.routes.storage import object_stores, volume_files, volume_uploads, volumes
from corral.server.routes.system import home, options, pages, search, servers, settings, system
from corral.server.routes.whatif import shadow, simulations
from corral.server.routes.workbenches import jupyter, workbenches
from corral.server.system.licences import watch_licence
from corral.server.wiring.forwarding import Forwarding, Peer
from corral.server.workbenches.workbench_site import WorkbenchSites

VERSION = version("corral")

#: The busiest first: routes are tried in this order.
ROUTERS = (
    jobs.router,
    arrays.router,
    job_moves.router,
    logs.router,
    files.router,
    volume_files.router,
    volume_uploads.router,
    workbenches.router,
    jupyter.router,
    checkpoints.router,
    events.router,
    nodes.router,
    measurements.router,
    nodes.gpu_router,
    panel.router,
    queues.router,
    receipts.router,
    estimates.router,
    catalog.router,
    images.router,
    volumes.router,
    object_stores.router,
    quotas.router,
    budgets.router,
    preset_assets.router,
    presets.router,
    datasets.router,
    datasets.job_router,
    dataset_files.router,
    operations.router,
    operations.target_router,
    dataset_targets.router,
    pools.router,
    reservations.router,
    tasks.router,
    ssh_keys.router,
    inbox.router,
    health_checks.router,
    me.router,
    auth.router,
    sign_in_providers.router,
    sign_in.router,
    users.router,
    permission_groups.router,
    groups.router,
    alerts.router,
    channels.router,
    analysis.router,
    reports.router,
    simulations.router,
    shadow.router,
    search.router,
    options.router,
    settings.router,
    servers.router,
    system.router,
    pages.router,
    # last: its page answers at every other address
    home.router,
)


def build_app(context: ServerContext, console: ConsoleFiles | None = None, *, peer: Peer | None = None) -> FastAPI:
    """The application for the parts in `context`. With `peer` it is one of several servers: `app.state.context` is
    replaced when this one becomes the leader."""
    app = _app(context.metrics, peer)
    app.router.routes.insert(0, WorkbenchSites())
    app.state.context = context
    app.state.console = console or ConsoleFiles()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        context.feed.attach(asyncio.get_running_loop())
        watch = asyncio.create_task(watch_licence(lambda: present_context(app)))
        yield
        watch.cancel()
        for used in {id(one): one for one in (context, present_context(app))}.values():
            used.audit.close()
            await used.jupyter.close()
        context.feed.close()
        context.passwords.close()

    app.router.lifespan_context = lifespan
    return app


def present_context(app: FastAPI) -> ServerContext:
    context = app.state.context
    assert isinstance(context, ServerContext)
    return context


def bare_app() -> FastAPI:
    """Only the routes, for the OpenAPI description; it cannot answer requests."""
    return _app(ServerMetrics(VERSION))


def _app(metrics: ServerMetrics, peer: Peer | None = None) -> FastAPI:
    # The description is served by a route of our own, to signed-in users.
    app = FastAPI(title="corral", version=VERSION, openapi_url=None, docs_url=None, redoc_url=None)
    for router in ROUTERS:
        # Flat, not included: the prefix is complete already, and each level of nesting costs every request.
        app.router.routes.extend(router.routes)
    # An address with a trailing slash is wrong: a redirect would drop the body.
    app.router.redirect_slashes = False
    install_problem_handlers(app)
    if peer is not None:
        # A layer of its own, which a single server does not pay for.
        app.add_middleware(Forwarding, peer=peer)
    app.add_middleware(RequestEnvelope, observe=metrics.observe_request)
    return app
