"""All routes in the order in which they are tried, in two parts: the first at once, the rest when the server listens.

To load the rest takes as long as everything else that a start does, and most requests of the first second need none of
it. A request that does waits until it is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from importlib import import_module
from typing import Any, NoReturn

from fastapi import FastAPI
from starlette.routing import BaseRoute, Match, NoMatchFound
from starlette.types import Receive, Scope, Send

#: Module under `corral.server.routes`, and the names of its routers. The busiest first: routes are tried in this order.
Table = tuple[tuple[str, tuple[str, ...]], ...]
_ONE = ("router",)

#: What makes a server ready: health, the server itself, and jobs.
FIRST: Table = (
    ("jobs.jobs", _ONE),
    ("jobs.arrays", _ONE),
    ("system.system", _ONE),
)
REST: Table = (
    ("jobs.job_moves", _ONE),
    ("jobs.shells", _ONE),
    ("jobs.logs", _ONE),
    ("jobs.files", _ONE),
    ("storage.volume_files", _ONE),
    ("storage.volume_uploads", _ONE),
    ("workbenches.workbenches", _ONE),
    ("workbenches.jupyter", _ONE),
    ("workbenches.app_pages", _ONE),
    ("workbenches.apps", _ONE),
    ("workbenches.tunnels", _ONE),
    ("jobs.checkpoints", _ONE),
    ("jobs.curves", _ONE),
    ("people.events", _ONE),
    ("fleet.nodes", _ONE),
    # before the GPUs, whose ids may have slashes
    ("monitoring.measurements", _ONE),
    ("fleet.nodes", ("gpu_router",)),
    ("fleet.panel", _ONE),
    ("scheduling.queues", _ONE),
    ("scheduling.receipts", _ONE),
    ("scheduling.estimates", _ONE),
    ("fleet.catalog", _ONE),
    ("jobs.images", _ONE),
    ("storage.volumes", _ONE),
    ("storage.object_stores", _ONE),
    ("people.quotas", _ONE),
    ("people.budgets", _ONE),
    ("jobs.preset_assets", _ONE),
    ("jobs.presets", _ONE),
    ("datasets.datasets", ("router", "job_router")),
    ("datasets.dataset_files", _ONE),
    ("datasets.operations", ("router", "target_router")),
    ("datasets.dataset_targets", _ONE),
    ("fleet.pools", _ONE),
    ("scheduling.reservations", _ONE),
    ("fleet.maintenance", _ONE),
    ("jobs.tasks", _ONE),
    ("people.ssh_keys", _ONE),
    ("people.job_secrets", _ONE),
    ("people.inbox", _ONE),
    ("people.first_steps", _ONE),
    ("monitoring.health_checks", _ONE),
    ("people.me", _ONE),
    ("people.auth", _ONE),
    ("people.sign_in_providers", _ONE),
    ("people.sign_in", _ONE),
    ("people.users", _ONE),
    ("people.permission_groups", _ONE),
    ("people.groups", _ONE),
    ("alerts.alerts", _ONE),
    ("alerts.channels", _ONE),
    ("reports.analysis", _ONE),
    ("reports.reports", _ONE),
    ("whatif.simulations", _ONE),
    ("whatif.shadow", _ONE),
    ("system.search", _ONE),
    ("system.options", _ONE),
    ("system.settings", _ONE),
    ("system.servers", _ONE),
    ("system.pages", _ONE),
    # last: its page answers at every other address
    ("system.home", _ONE),
)


def loaded(table: Table) -> list[BaseRoute]:
    """Flat, not included: the prefixes are complete already, and each level of nesting costs every request."""
    return [route for module, names in table for name in names for route in _routes_of(module, name)]


def _routes_of(module: str, name: str) -> Iterable[BaseRoute]:
    router: Any = getattr(import_module(f"corral.server.routes.{module}"), name)
    return list(router.routes)


class RestOfRoutes(BaseRoute):
    """A placeholder for the routes that are not loaded yet: every request that no earlier route answers
    waits for them.
    """

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._loading: asyncio.Task[None] | None = None

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return (Match.FULL if scope["type"] in ("http", "websocket") else Match.NONE), {}

    def url_path_for(self, name: str, /, **path_params: Any) -> NoReturn:
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.replaced()
        await self._app.router(scope, receive, send)

    async def replaced(self) -> None:
        """Load the routes on a thread, once, and put them in this one's place. A failure is raised to every caller, and
        the next one tries again."""
        if self._loading is None or (self._loading.done() and self._loading.exception() is not None):
            self._loading = asyncio.create_task(self._replace())
        # A caller who leaves does not end it for the others.
        await asyncio.shield(self._loading)

    async def _replace(self) -> None:
        rest = await asyncio.to_thread(loaded, REST)
        routes = self._app.router.routes
        if self in routes:
            place = routes.index(self)
            routes[place : place + 1] = rest
            # What was remembered about the routes so far.
            self._app.state.routes_by_path = None
