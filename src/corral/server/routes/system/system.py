"""The server itself: version, health and metrics."""

from __future__ import annotations

import asyncio
import platform

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from corral.control.live.worker import workers_alive
from corral.control.system import licence
from corral.server.auth.callers import AnyCaller, Context, Operator, identity_of
from corral.server.fleet.summary import counted
from corral.server.http.context import ServerContext
from corral.server.http.problems import Problem
from corral.server.http.strict_route import PREFIX, StrictRoute, problems
from corral.server.monitoring.exposition import MEDIA_TYPE, render
from corral.server.monitoring.fleet_metrics import Seen, families_of, read_fleet
from corral.server.schemas.base import rfc3339
from corral.server.schemas.system.system import (
    AboutView,
    HealthView,
    IsolationView,
    LicencePut,
    LicenceView,
    PartView,
    licence_view,
)
from corral.server.system.licences import current_licence, public_key_of

router = APIRouter(tags=["system"], route_class=StrictRoute)

#: A store that takes longer than this is not ready.
READY_SECONDS = 5.0


@router.get(f"{PREFIX}/about", operation_id="get_about", responses=problems())
async def get_about(caller: AnyCaller, context: Context) -> AboutView:
    """The server's version, the health of its parts, and the licensee."""
    return AboutView(
        version=context.version,
        build=f"Python {platform.python_version()} on {platform.system()} {platform.machine()}",
        started_at=rfc3339(context.started_at),
        uptime_seconds=context.clock.now() - context.started_at,
        store=dict(context.store.describe()),
        engines=sorted({cluster.engine for cluster in context.settings.cluster}),
        parts=[
            *await parts_of(context),
            _disk(context),
            *_exporters(context),
            *_workers(is_operator=caller.is_operator),
        ],
        isolation=IsolationView(separation=context.separated.separation, detail=context.separated.detail),
        licence=licence_view(await current_licence(context)),
    )


@router.put(f"{PREFIX}/about/licence", operation_id="set_licence", responses=problems(403))
async def set_licence(body: LicencePut, caller: Operator, context: Context) -> LicenceView:
    """Store a licence token, if its signature is valid and it has not expired. No function depends on it."""
    return licence_view(await context.execute(licence.put, caller, body.token, public_key_of(context)))


@router.delete(f"{PREFIX}/about/licence", status_code=204, operation_id="remove_licence", responses=problems(403, 404))
async def remove_licence(caller: Operator, context: Context) -> Response:
    await context.execute(licence.remove, caller)
    return Response(status_code=204)


@router.get(f"{PREFIX}/healthz", operation_id="healthz")
@router.get("/healthz", include_in_schema=False)
async def healthz() -> HealthView:
    """The process is alive."""
    return HealthView(status="ok")


@router.get(f"{PREFIX}/readyz", operation_id="readyz", responses={503: problems(503)[503]})
@router.get("/readyz", include_in_schema=False)
async def readyz(context: Context) -> HealthView:
    """The store and the home directory can be written, the controller works and every engine was observed."""
    missing = [part.detail for part in await parts_of(context) if not part.healthy]
    if missing:
        raise Problem(503, "Not ready", "Not ready: " + "; ".join(missing) + ".", slug="not-ready")
    return HealthView(status="ready")


@router.get(f"{PREFIX}/metrics", operation_id="get_metrics", response_class=PlainTextResponse, responses=problems())
@router.get("/metrics", include_in_schema=False)
async def get_metrics(request: Request, context: Context) -> Response:
    """Prometheus text. Needs signing in unless `server.metrics_open` is set."""
    if not context.settings.server.metrics_open:
        await identity_of(request, context)
    counts = await context.read(counted)
    now = context.clock.now()
    seen = Seen(
        now=now,
        fleet=await context.inspect(read_fleet, now),
        job_counts=counts.jobs,
        alerts=counts.alerts,
        measured=context.readings.all(now),
        hosts=context.readings.hosts(now),
        per_user=context.settings.server.metrics_per_user,
    )
    # On a thread: with many GPUs it takes long enough for other requests to notice.
    text = await asyncio.to_thread(_exposition, context, seen)
    return Response(text, media_type=MEDIA_TYPE)


def _exposition(context: ServerContext, seen: Seen) -> str:
    own = context.metrics.families(
        event_streams=context.feed.follower_count, encoded_events=context.event_texts.encoded
    )
    return render([*families_of(seen), *own])


async def parts_of(context: ServerContext) -> list[PartView]:
    """Every part that the server needs, with its problem."""
    fault = await _fault_of_store(context)
    parts = [PartView(name="store", healthy=not fault, detail=fault)]
    alive, outage = context.controller.is_alive, context.controller.outage
    detail = "the store cannot be used, and the controller waits for it" if outage else ""
    parts.append(
        PartView(
            name="controller",
            healthy=alive and not outage,
            detail=detail if alive else "the controller has stopped",
        )
    )
    for cluster in context.settings.cluster:
        health = context.controller.health.get(cluster.name)
        healthy = health is not None and health.healthy
        detail = "" if healthy else f"cluster {cluster.name} was not observed"
        if health is not None and health.detail:
            detail += f": {health.detail}"
        parts.append(PartView(name=f"cluster {cluster.name}", healthy=healthy, detail=detail))
    return parts


def _workers(*, is_operator: bool) -> list[PartView]:
    """The workers. The server is ready even if one fails; the errors are shown to operators."""
    failing = [worker.health for worker in workers_alive() if worker.health.failures]
    names = ", ".join(health.name for health in failing)
    parts = [PartView(name="workers", healthy=not failing, detail=f"these fail: {names}" if failing else "")]
    if is_operator:
        parts += [
            PartView(
                name=f"worker {health.name}",
                healthy=False,
                detail=f"{health.error} ({health.failures} times in a row)",
            )
            for health in failing
        ]
    return parts


def _disk(context: ServerContext) -> PartView:
    """A server whose disk is almost full launches no jobs, but is still ready."""
    problem = context.disk_guard.problem()
    return PartView(name="disk", healthy=not problem, detail=f"nothing is launched: {problem}" if problem else "")


def _exporters(context: ServerContext) -> list[PartView]:
    """Exporters of other nodes. If one is down, its GPUs have no readings; the server is still ready."""
    return [
        PartView(name=f"exporter {one.label}", healthy=not one.problem, detail=one.problem) for one in context.exporters
    ]


async def _fault_of_store(context: ServerContext) -> str:
    try:
        async with asyncio.timeout(READY_SECONDS):
            await context.read(lambda tables: tables.events.last_id())
    except TimeoutError:
        return "the store does not answer"
    except Exception:  # noqa: BLE001 - the answer is the same for every error of the store
        return "the store cannot be read"
    return await context.write_proof.problem(READY_SECONDS)
