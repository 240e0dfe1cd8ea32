"""Clusters, nodes and GPUs: their state, and the actions of operators."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Query, Response

from corral.control.errors import NotFound, WrongState
from corral.control.fleet import node_actions as fleet_use_cases
from corral.control.fleet.cluster_health import ClusterHealth
from corral.control.fleet.drain_preview import drain_preview
from corral.control.live.unit_of_work import Caller
from corral.control.monitoring import gpu_health
from corral.control.scheduling import views
from corral.core.model import WHOLE, GpuHealth, NodeState
from corral.server.auth.callers import AnyCaller, Context, Operator
from corral.server.fleet.gpu_map import fleet_now, map_of
from corral.server.fleet.summary import Sight, counted, overview_of
from corral.server.http.cluster_choice import check_cluster
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.query_times import time_of
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView, number, rfc3339
from corral.server.schemas.fleet.drain_preview import DrainPreviewView, drain_preview_view
from corral.server.schemas.fleet.gpu_map import GpuMapView
from corral.server.schemas.fleet.nodes import (
    ClusterView,
    GpuMark,
    GpuView,
    Measured,
    NodeView,
    OverviewView,
    gpu_view,
    node_view,
)

router = resource_router("", "fleet")
#: Tried after all others: the id of a GPU may have slashes, so this route takes every path below /gpus.
gpu_router = resource_router("", "fleet")


@router.get("/clusters", operation_id="list_clusters", responses=problems())
async def list_clusters(
    caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[ClusterView]:
    nodes = await context.inspect(views.node_views, context.clock.now())
    left_out = await context.inspect(views.left_out)
    items = []
    for cluster in context.settings.cluster:
        seen = context.controller.health.get(cluster.name)
        mine = [view for view in nodes if view.node.cluster == cluster.name]
        items.append(
            ClusterView(
                name=cluster.name,
                engine=cluster.engine,
                healthy=seen is not None and seen.healthy,
                detail=_detail(seen, left_out.get(cluster.name, frozenset())),
                observed_at=rfc3339(seen.at) if seen is not None else None,
                since=rfc3339(seen.since) if seen is not None else None,
                nodes=len(mine),
                nodes_ready=sum(view.node.state is NodeState.READY for view in mine),
                gpus=sum(len(view.gpus) for view in mine),
                gpus_free=sum(view.free_gpus for view in mine),
                gpus_allocated=number(sum(gpu.held_milli for view in mine for gpu in view.gpus) / WHOLE),
                gpus_taken=sum(len(view.node.taken.gpus) for view in mine),
                gpu_types=cluster.slurm.models if cluster.engine == "slurm" else {},
            )
        )
    return page_of(items, key=lambda view: (view.name,), limit=limit, cursor=cursor)


@router.get("/nodes", operation_id="list_nodes", responses=problems())
async def list_nodes(
    caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[NodeView]:
    found = await context.inspect(views.node_views, context.clock.now())
    page = page_of(found, key=lambda view: (view.node.id,), limit=limit, cursor=cursor)
    measured, hosts = measured_now(context), context.readings.hosts(context.clock.now())
    items = [node_view(view, measured, caller, hosts) for view in page.items]
    return ListView(items=items, next_cursor=page.next_cursor)


@router.get("/nodes/{node}", operation_id="get_node", responses=problems(404))
async def get_node(node: str, caller: AnyCaller, context: Context) -> NodeView:
    return await _node(context, node, caller)


@router.post("/nodes/{node}/cordon", operation_id="cordon_node", responses=problems(403, 404, 409))
async def cordon_node(node: str, caller: Operator, context: Context) -> NodeView:
    """Cordon the node: it gets no new jobs; running jobs continue."""
    await context.execute(fleet_use_cases.cordon, caller, node)
    return await _node(context, node, caller)


@router.post("/nodes/{node}/uncordon", operation_id="uncordon_node", responses=problems(403, 404, 409))
async def uncordon_node(node: str, caller: Operator, context: Context) -> NodeView:
    await context.execute(fleet_use_cases.uncordon, caller, node)
    return await _node(context, node, caller)


@router.post("/nodes/{node}/drain", operation_id="drain_node", responses=problems(403, 404, 409))
async def drain_node(node: str, caller: Operator, context: Context) -> NodeView:
    """Drain the node: it gets no new jobs, and becomes empty as its jobs end."""
    await context.execute(fleet_use_cases.drain, caller, node)
    return await _node(context, node, caller)


@router.get("/nodes/{node}/drain-preview", operation_id="preview_drain", responses=problems(403, 404))
async def preview_drain(
    node: str,
    caller: Operator,
    context: Context,
    at: Annotated[
        str | None, Query(max_length=100, description="Time of the drain; left out, or in the past: now.")
    ] = None,
) -> DrainPreviewView:
    """The jobs that a drain of the node at that time would displace; nothing is changed."""
    found = await context.inspect(drain_preview, node, time_of("at", at), context.clock.now())
    return drain_preview_view(found)


@router.delete("/nodes/{node}", status_code=204, operation_id="remove_node", responses=problems(403, 404, 409))
async def remove_node(node: str, caller: Operator, context: Context) -> Response:
    """Remove a node that no longer exists. Refused if its engine still reports the node, or if it has jobs."""
    await context.execute(fleet_use_cases.remove, caller, node)
    return Response(status_code=204)


@router.get("/gpus", operation_id="list_gpus", responses=problems())
async def list_gpus(caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None) -> ListView[GpuView]:
    found = [gpu for view in await context.inspect(views.node_views, context.clock.now()) for gpu in view.gpus]
    page = page_of(found, key=lambda view: (view.node, view.gpu.index, view.gpu.id), limit=limit, cursor=cursor)
    measured = measured_now(context)
    return ListView(items=[gpu_view(view, measured, caller) for view in page.items], next_cursor=page.next_cursor)


@router.get("/gpus/map", operation_id="get_gpu_map", response_model=GpuMapView, responses=problems())
async def get_gpu_map(caller: AnyCaller, context: Context) -> Response:
    """All GPUs in columns, small enough to be fetched every few seconds."""
    now = context.clock.now()
    fleet = await context.inspect(fleet_now, now)
    return Response(map_of(fleet, measured_now(context), caller, now), media_type="application/json")


@router.post("/gpus/{gpu:path}/reset-health", operation_id="reset_gpu_health", responses=problems(403, 404))
async def reset_gpu_health(gpu: str, caller: Operator, context: Context) -> GpuView:
    """Declare a GPU healthy: it can be used again."""
    await context.execute(gpu_health.reset, caller, gpu)
    return await _gpu(context, gpu, caller)


@router.post("/gpus/{gpu:path}/mark", operation_id="mark_gpu", responses=problems(403, 404, 409))
async def mark_gpu(gpu: str, body: GpuMark, caller: Operator, context: Context) -> GpuView:
    """Declare a GPU suspect (it gets no new jobs) or failed (its jobs are moved, too)."""
    await context.execute(gpu_health.mark, caller, gpu, GpuHealth(body.health), body.reason)
    return await _gpu(context, gpu, caller)


@router.post("/gpus/{gpu:path}/self-test", operation_id="self_test_gpu", responses=problems(403, 404, 409))
async def self_test_gpu(gpu: str, caller: Operator, context: Context) -> GpuView:
    """Run the self-test on a free GPU, which can take a minute. Afterwards the GPU is healthy, or failed."""
    await _gpu(context, gpu, caller)
    if context.self_test is None:
        raise WrongState("GPUs of this installation cannot be tested from here", state="no self-test")
    await context.execute(gpu_health.begin_self_test, caller, gpu)
    try:
        problem = await asyncio.to_thread(context.self_test.run, gpu)
    except BaseException:
        await context.execute(gpu_health.abandon_self_test, caller, gpu)
        raise
    await context.execute(gpu_health.end_self_test, caller, gpu, problem)
    return await _gpu(context, gpu, caller)


@gpu_router.get("/gpus/{gpu:path}", operation_id="get_gpu", responses=problems(404))
async def get_gpu(gpu: str, caller: AnyCaller, context: Context) -> GpuView:
    return await _gpu(context, gpu, caller)


@router.get("/overview", operation_id="get_overview", responses=problems())
async def get_overview(
    caller: AnyCaller,
    context: Context,
    cluster: Annotated[
        str | None, Query(max_length=253, description="Only this cluster; alerts are counted for all clusters.")
    ] = None,
) -> OverviewView:
    check_cluster(context, cluster)
    now = context.clock.now()
    stored = await context.read(counted)
    sight = Sight(
        gpus=measured_now(context),
        hosts=context.readings.hosts(now),
        idle_below=context.settings.idle_rules.utilization,
    )
    return await context.inspect(overview_of, now, stored, sight, cluster)


def measured_now(context: ServerContext) -> Measured:
    return context.readings.all(context.clock.now())


def _detail(seen: ClusterHealth | None, left_out: frozenset[str]) -> str:
    if seen is None:
        return "not observed yet"
    if seen.healthy and left_out:
        return f"left out, as another cluster has nodes of these names: {', '.join(sorted(left_out))}"
    return seen.detail


async def _node(context: ServerContext, node_id: str, caller: Caller) -> NodeView:
    for view in await context.inspect(views.node_views, context.clock.now()):
        if view.node.id == node_id:
            return node_view(view, measured_now(context), caller, context.readings.hosts(context.clock.now()))
    raise NotFound(f"there is no node {node_id!r}", field="node")


async def _gpu(context: ServerContext, gpu_id: str, caller: Caller) -> GpuView:
    for view in await context.inspect(views.node_views, context.clock.now()):
        for device in view.gpus:
            if device.gpu.id == gpu_id:
                return gpu_view(device, measured_now(context), caller)
    raise NotFound(f"there is no GPU {gpu_id!r}", field="gpu")
