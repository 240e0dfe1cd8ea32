"""The server itself: version, health and metrics."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Sequence

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from corral.control.errors import NotFound
from corral.control.system import licence
from corral.server.auth.callers import AnyCaller, Context, Operator, identity_of
from corral.server.fleet.summary import counted_jobs, firing_alerts
from corral.server.http.context import ServerContext
from corral.server.http.problems import Problem
from corral.server.http.strict_route import PREFIX, StrictRoute, problems
from corral.server.monitoring.exposition import MEDIA_TYPE, render
from corral.server.monitoring.fleet_metrics import Seen, families_of, read_fleet
from corral.server.schemas.base import ListView, rfc3339
from corral.server.schemas.system.system import (
    AboutView,
    GpuSharesView,
    HealthView,
    IsolationView,
    LicencePut,
    LicenceView,
    PartStatusView,
    PartView,
    licence_view,
    part_status_view,
)
from corral.server.system.licences import current_licence, public_key_of
from corral.server.system.parts import Part, PartKind

router = APIRouter(tags=["system"], route_class=StrictRoute)

#: A store that takes longer than this is not ready.
READY_SECONDS = 5.0
#: Parts that `about` lists one by one.
_OF_ABOUT = frozenset({PartKind.STORE, PartKind.CONTROLLER, PartKind.ENGINE, PartKind.DISK, PartKind.EXPORTER})


@router.get(f"{PREFIX}/about", operation_id="get_about", responses=problems())
async def get_about(caller: AnyCaller, context: Context) -> AboutView:
    """The server's version, the health of its parts, and the licensee."""
    shares = await context.steps.do(caller.name, context.gpu_shares)
    return AboutView(
        version=context.version,
        build=f"Python {platform.python_version()} on {platform.system()} {platform.machine()}",
        started_at=rfc3339(context.started_at),
        uptime_seconds=context.clock.now() - context.started_at,
        store=dict(context.store.describe()),
        engines=sorted({cluster.engine for cluster in context.settings.cluster}),
        parts=_shown(await parts_of(context), is_operator=caller.is_operator),
        isolation=IsolationView(separation=context.separated.separation, detail=context.separated.detail),
        gpu_shares=GpuSharesView(enforced=shares.enforced, detail=shares.detail),
        licence=licence_view(await current_licence(context)),
    )


@router.put(f"{PREFIX}/about/licence", operation_id="set_licence", responses=problems(403))
async def set_licence(body: LicencePut, caller: Operator, context: Context) -> LicenceView:
    """Store a licence token, if its signature is valid and it has not expired. No function depends on it."""
    return licence_view(await context.execute(licence.put, caller, body.token, public_key_of(context)))


@router.delete(f"{PREFIX}/about/licence", status_code=204, operation_id="delete_licence", responses=problems(403, 404))
async def remove_licence(caller: Operator, context: Context) -> Response:
    """Remove the stored licence token."""
    await context.execute(licence.remove, caller)
    return Response(status_code=204)


@router.get(f"{PREFIX}/healthz", operation_id="healthz")
@router.get("/healthz", include_in_schema=False)
async def healthz() -> HealthView:
    """Report that the process is alive."""
    return HealthView(status="ok")


@router.get(f"{PREFIX}/readyz", operation_id="readyz", responses={503: problems(503)[503]})
@router.get("/readyz", include_in_schema=False)
async def readyz(context: Context) -> HealthView:
    """Report whether the store and the home directory can be written, the controller works and every cluster was
    asked. A cluster that does not answer is no reason: it is in the list of parts."""
    missing = [part.detail for part in await parts_of(context) if part.is_needed and not part.healthy]
    if missing:
        raise Problem(503, "Not ready", "Not ready: " + "; ".join(missing) + ".", slug="not-ready")
    return HealthView(status="ready")


@router.get(f"{PREFIX}/parts", operation_id="list_parts", responses=problems(403))
async def list_parts(caller: Operator, context: Context) -> ListView[PartStatusView]:
    """Each part of the platform: the server, its store and workers, and the daemons of each cluster, with its state,
    since when, restarts and last error."""
    return ListView(items=[part_status_view(part) for part in await parts_of(context)])


@router.get(
    f"{PREFIX}/parts/{{part}}/log",
    operation_id="get_part_log",
    response_class=PlainTextResponse,
    responses=problems(403, 404),
)
async def get_part_log(part: str, caller: Operator, context: Context) -> Response:
    """The last lines that the part has logged since the server was started."""
    for found in await parts_of(context):
        if found.name == part:
            lines = await asyncio.to_thread(context.parts.log_of, found)
            return PlainTextResponse("".join(f"{line}\n" for line in lines))
    raise NotFound(f"there is no part {part!r}", field="part")


@router.get(f"{PREFIX}/metrics", operation_id="get_metrics", response_class=PlainTextResponse, responses=problems())
@router.get("/metrics", include_in_schema=False)
async def get_metrics(request: Request, context: Context) -> Response:
    """Prometheus text. Needs signing in unless `server.metrics_open` is set."""
    if not context.settings.server.metrics_open:
        await identity_of(request, context)
    now = context.clock.now()
    fleet = await context.inspect(read_fleet, now)
    jobs = fleet.jobs if fleet.jobs is not None else await context.read(counted_jobs)
    seen = Seen(
        now=now,
        fleet=fleet,
        job_counts=jobs,
        alerts=await context.read(firing_alerts),
        measured=context.readings.all(now),
        hosts=context.readings.hosts(now),
        read=context.readings.sums(fleet.held, now, idle_below=0.0),
        per_user=context.settings.server.metrics_per_user,
        per_gpu=context.settings.server.metrics_per_gpu,
    )
    # On a thread: with many GPUs it takes long enough for other requests to notice.
    text = await asyncio.to_thread(_exposition, context, seen)
    return Response(text, media_type=MEDIA_TYPE)


def _exposition(context: ServerContext, seen: Seen) -> str:
    own = context.metrics.families(
        event_streams=context.feed.follower_count, encoded_events=context.event_texts.encoded
    )
    return render([*families_of(seen), *own])


async def parts_of(context: ServerContext) -> list[Part]:
    """Every part of the platform, with the store tested now."""
    fault = await _fault_of_store(context)
    return await asyncio.to_thread(context.parts.parts, fault)


def _shown(parts: Sequence[Part], *, is_operator: bool) -> list[PartView]:
    """The parts of `about`: workers as one part, and the daemons of clusters only if they fail. The errors of workers
    and daemons are shown to operators."""
    failing = [part for part in parts if part.kind is PartKind.WORKER and not part.healthy]
    names = ", ".join(part.name.removeprefix("worker ") for part in failing)
    shown = [
        PartView(name=part.name, healthy=part.healthy, detail="" if part.healthy else part.detail)
        for part in parts
        if part.kind in _OF_ABOUT
    ]
    shown.append(PartView(name="workers", healthy=not failing, detail=f"these fail: {names}" if failing else ""))
    if is_operator:
        shown += [
            PartView(name=part.name, healthy=False, detail=part.detail)
            for part in parts
            if not part.healthy and part.kind not in _OF_ABOUT
        ]
    return shown


async def _fault_of_store(context: ServerContext) -> str:
    try:
        async with asyncio.timeout(READY_SECONDS):
            await context.read(lambda tables: tables.events.last_id())
    except TimeoutError:
        return "the store does not answer"
    except Exception:  # noqa: BLE001 - the answer is the same for every error of the store
        return "the store cannot be read"
    return await context.write_proof.problem(READY_SECONDS)
