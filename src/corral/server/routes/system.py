"""The server itself: what it is, whether it lives, what it measures."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from corral.server.auth.callers import AnyCaller, Context, identity_of
from corral.server.context import ServerContext
from corral.server.metrics import MEDIA_TYPE, render
from corral.server.problems import Problem
from corral.server.routing import PREFIX, StrictRoute, problems
from corral.server.schemas.base import View, rfc3339
from corral.server.schemas.fleet import AboutView
from corral.server.summary import families_of

router = APIRouter(tags=["system"], route_class=StrictRoute)

#: A store that takes longer than this is not ready, whatever it answers.
READY_SECONDS = 5.0


class HealthView(View):
    status: str


@router.get(f"{PREFIX}/about", operation_id="get_about", responses=problems())
async def get_about(caller: AnyCaller, context: Context) -> AboutView:
    return AboutView(
        version=context.version,
        started_at=rfc3339(context.started_at),
        uptime_seconds=context.clock.now() - context.started_at,
        store=dict(context.store.describe()),
        engines=sorted({cluster.engine for cluster in context.settings.cluster}),
    )


@router.get(f"{PREFIX}/healthz", operation_id="healthz")
@router.get("/healthz", include_in_schema=False)
async def healthz() -> HealthView:
    """The process lives."""
    return HealthView(status="ok")


@router.get(f"{PREFIX}/readyz", operation_id="readyz", responses={503: problems(503)[503]})
@router.get("/readyz", include_in_schema=False)
async def readyz(context: Context) -> HealthView:
    """The store answers, the controller works and every engine was observed."""
    missing = await _missing(context)
    if missing:
        raise Problem(503, "Not ready", "Not ready: " + "; ".join(missing) + ".", slug="not-ready")
    return HealthView(status="ready")


@router.get(f"{PREFIX}/metrics", operation_id="get_metrics", response_class=PlainTextResponse, responses=problems())
@router.get("/metrics", include_in_schema=False)
async def get_metrics(request: Request, context: Context) -> Response:
    """Prometheus text. Needs signing in unless `server.metrics_open` is set."""
    if not context.settings.server.metrics_open:
        await identity_of(request, context)
    counts = await context.read(lambda tables: tables.jobs.counts())
    families = await context.inspect(families_of, counts)
    return Response(render([*families, *context.metrics.families()]), media_type=MEDIA_TYPE)


async def _missing(context: ServerContext) -> list[str]:
    missing = []
    try:
        async with asyncio.timeout(READY_SECONDS):
            await context.read(lambda tables: tables.events.last_id())
    except TimeoutError:
        missing.append("the store does not answer")
    except Exception:  # noqa: BLE001 - whatever ails the store, the answer is the same
        missing.append("the store cannot be read")
    if not context.controller.is_alive:
        missing.append("the controller has stopped")
    for cluster in context.settings.cluster:
        health = context.controller.health.get(cluster.name)
        if health is None or not health.healthy:
            missing.append(f"cluster {cluster.name} was not observed")
    return missing
