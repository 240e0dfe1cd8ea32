"""Clusters, nodes and GPUs: their state, and the actions of operators."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Annotated

from fastapi import Query, Response

from corral.control.errors import NotFound, WrongState
from corral.control.fleet import node_actions as fleet_use_cases
from corral.control.fleet.cluster_health import ClusterHealth
from corral.control.fleet.draining import drains
from corral.control.fleet.draining.drain_preview import drain_preview
from corral.control.fleet.live_fleet import GpuCounts
from corral.control.fleet.node_views import GpuView as FleetGpu
from corral.control.fleet.node_views import NodePage, node_page
from corral.control.fleet.node_views import NodeView as FleetNode
from corral.control.live.state import State
from corral.control.live.unit_of_work import Caller
from corral.control.monitoring import gpu_checks, gpu_health
from corral.core.model import VIRTUAL, WHOLE, GpuHealth, NodeState
from corral.server.auth.callers import AnyCaller, Context, Operator
from corral.server.fleet.gpu_map import MAX_GPUS, map_of, map_page
from corral.server.fleet.summary import counted_jobs, firing_alerts, installation_now, overview_of
from corral.server.http.cluster_choice import check_cluster
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Limit, cursor_of, page_from, page_of, write_cursor
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
    NodeDrain,
    NodeView,
    OverviewView,
    gpu_view,
    node_view,
)

router = resource_router("", "fleet")
#: GPUs of the nodes on a page of nodes, which is then smaller than a megabyte, and made in less than 50 ms.
LISTED_GPUS = 1000
#: Nodes of one preview.
MOST_PREVIEWED = 1000
#: Tried after all others: the id of a GPU may have slashes, so this route takes every path below /gpus.
gpu_router = resource_router("", "fleet")


@router.get("/clusters", operation_id="list_clusters", responses=problems())
async def list_clusters(
    caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[ClusterView]:
    """The clusters of the installation, with engine, health and capacity."""
    found = await context.inspect(_clusters, [each.name for each in context.settings.cluster], context.clock.now())
    items = []
    for cluster in context.settings.cluster:
        seen = context.controller.health.get(cluster.name)
        counts = found[cluster.name]
        items.append(
            ClusterView(
                name=cluster.name,
                engine=cluster.engine,
                simulated=counts.is_simulated,
                healthy=seen is not None and seen.healthy,
                detail=_detail(seen, counts.left_out),
                observed_at=rfc3339(seen.at) if seen is not None else None,
                since=rfc3339(seen.since) if seen is not None else None,
                nodes=counts.nodes,
                nodes_ready=counts.nodes_ready,
                gpus=counts.gpus.gpus,
                gpus_free=counts.gpus.free,
                gpus_allocated=number(counts.gpus.held_milli / WHOLE),
                gpus_taken=counts.gpus.taken,
                gpu_types=cluster.slurm.models if cluster.engine == "slurm" else {},
            )
        )
    return page_of(items, key=lambda view: (view.name,), limit=limit, cursor=cursor)


@router.get("/nodes", operation_id="list_nodes", responses=problems())
async def list_nodes(
    caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[NodeView]:
    """Nodes with state, capacity, free resources and labels. A page ends early if its nodes have many GPUs."""
    place = cursor_of(cursor, str)
    now = context.clock.now()
    page = await context.inspect(nodes_after, place[0] if place is not None else None, limit, now)
    measured, hosts = measured_now(context), context.readings.hosts(now)
    return ListView(
        items=[node_view(view, measured, caller, hosts) for view in page.nodes],
        next_cursor=None if page.is_last else write_cursor((page.nodes[-1].node.id,)),
    )


@router.get("/nodes/{node}", operation_id="get_node", responses=problems(404))
async def get_node(node: str, caller: AnyCaller, context: Context) -> NodeView:
    """One node with its GPUs, jobs and state."""
    return await _node(context, node, caller)


@router.post("/nodes/{node}/cordon", operation_id="cordon_node", responses=problems(403, 404, 409))
async def cordon_node(node: str, caller: Operator, context: Context) -> NodeView:
    """Cordon the node: it gets no new jobs; running jobs continue."""
    await context.execute(fleet_use_cases.cordon, caller, node)
    return await _node(context, node, caller)


@router.post("/nodes/{node}/uncordon", operation_id="uncordon_node", responses=problems(403, 404, 409))
async def uncordon_node(node: str, caller: Operator, context: Context) -> NodeView:
    """Let a node take new jobs again; ends a cordon or drain."""
    await context.execute(fleet_use_cases.uncordon, caller, node)
    return await _node(context, node, caller)


@router.post("/nodes/{node}/drain", operation_id="drain_node", responses=problems(403, 404, 409))
async def drain_node(node: str, caller: Operator, context: Context, body: NodeDrain | None = None) -> NodeView:
    """Drain the node: it gets no new jobs, and becomes empty as its jobs end. With `empty_by`, jobs that are left at
    that time are asked to save, and continue on other nodes or are queued again."""
    await context.execute(drains.drain, caller, node, None if body is None else body.empty_by)
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
    found = await context.inspect(drain_preview, [node], time_of("at", at), context.clock.now())
    return drain_preview_view(found)


@router.get("/drain-preview", operation_id="preview_drains", responses=problems(403, 404))
async def preview_drains(
    caller: Operator,
    context: Context,
    node: Annotated[
        list[str], Query(min_length=1, max_length=MOST_PREVIEWED, description="A node; repeated for several.")
    ],
    at: Annotated[
        str | None, Query(max_length=100, description="Time of the drain; left out, or in the past: now.")
    ] = None,
) -> DrainPreviewView:
    """The jobs that draining these nodes together would displace: no job moves from one of them to another."""
    found = await context.inspect(drain_preview, node, time_of("at", at), context.clock.now())
    return drain_preview_view(found)


@router.delete("/nodes/{node}", status_code=204, operation_id="delete_node", responses=problems(403, 404, 409))
async def remove_node(node: str, caller: Operator, context: Context) -> Response:
    """Remove a node that no longer exists. Refused if its engine still reports the node, or if it has jobs."""
    await context.execute(fleet_use_cases.remove, caller, node)
    return Response(status_code=204)


@router.get("/gpus", operation_id="list_gpus", responses=problems())
async def list_gpus(
    caller: AnyCaller,
    context: Context,
    pool: Annotated[str | None, Query(max_length=253, description="Only the GPUs of this pool.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListView[GpuView]:
    """GPUs with health, jobs and latest readings."""
    place = cursor_of(cursor, str, int, str)
    found = await context.inspect(gpus_after, place, limit + 1, context.clock.now(), pool)
    page = page_from(found, key=_gpu_key, limit=limit)
    measured = measured_now(context)
    return ListView(items=[gpu_view(view, measured, caller) for view in page.items], next_cursor=page.next_cursor)


@router.get("/gpus/map", operation_id="get_gpu_map", response_model=GpuMapView, responses=problems())
async def get_gpu_map(
    caller: AnyCaller,
    context: Context,
    limit: Annotated[int, Query(ge=1, le=MAX_GPUS, description="GPUs on a page; a node is never divided.")] = MAX_GPUS,
    cursor: Cursor = None,
) -> Response:
    """All GPUs in columns, small enough to be fetched every few seconds; of a large fleet in pages."""
    now = context.clock.now()
    place = cursor_of(cursor, str)
    page = await context.inspect(map_page, now, None if place is None else place[0], limit)
    shown = map_of(page, context.map_columns, context.readings.all(now), caller, now)
    return Response(shown, media_type="application/json")


@router.post("/gpus/{gpu:path}/reset-health", operation_id="reset_gpu_health", responses=problems(403, 404, 409))
async def reset_gpu_health(gpu: str, caller: Operator, context: Context) -> GpuView:
    """Declare a GPU healthy: it can be used again. If the configuration says so, a suspect or failed GPU is checked
    first, and returns if it passes."""
    found = await _gpu(context, gpu, caller)
    if context.settings.monitoring.checks.before_return and found.health is not GpuHealth.HEALTHY:
        await context.execute(gpu_checks.request, caller, gpu, (), context.settings.check_rules)
    else:
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
    """One GPU with its health, the evidence behind it, its jobs and its latest readings."""
    return await _gpu(context, gpu, caller)


@router.get("/overview", operation_id="get_overview", responses=problems())
async def get_overview(
    caller: AnyCaller,
    context: Context,
    cluster: Annotated[
        str | None, Query(max_length=253, description="Only this cluster; alerts are counted for all clusters.")
    ] = None,
) -> OverviewView:
    """Numbers of the whole installation: nodes, GPUs, jobs by state, usage."""
    check_cluster(context, cluster)
    now = context.clock.now()
    seen = await context.inspect(installation_now, now, cluster)
    jobs = seen.jobs if seen.jobs is not None else await context.read(counted_jobs)
    read = context.readings.sums(seen.held, now, idle_below=context.settings.idle_rules.utilization, cluster=cluster)
    alerts = await context.read(firing_alerts)
    return overview_of(seen, jobs, alerts, read, context.readings.host_sums(now, seen.names))


def measured_now(context: ServerContext) -> Measured:
    return context.readings.all(context.clock.now())


def _detail(seen: ClusterHealth | None, left_out: frozenset[str]) -> str:
    if seen is None:
        return "not observed yet"
    if seen.healthy and left_out:
        return f"left out, as another cluster has nodes of these names: {', '.join(sorted(left_out))}"
    return seen.detail


@dataclass(frozen=True, kw_only=True, slots=True)
class _Cluster:
    #: whether it has virtual nodes
    is_simulated: bool
    nodes: int
    nodes_ready: int
    gpus: GpuCounts
    #: nodes that are not used, because another cluster has one of that name
    left_out: frozenset[str]


def _clusters(state: State, names: Sequence[str], now: float) -> dict[str, _Cluster]:
    fleet = state.fleet(now)
    simulated = {node.cluster for node in state.snapshot.nodes.values() if VIRTUAL in node.labels}
    return {
        name: _Cluster(
            is_simulated=name in simulated,
            nodes=sum(count for (cluster, _), count in fleet.nodes.items() if cluster == name),
            nodes_ready=fleet.nodes[name, NodeState.READY],
            gpus=fleet.total(name),
            left_out=state.left_out.get(name, frozenset()),
        )
        for name in names
    }


def nodes_after(state: State, name: str | None, limit: int, now: float) -> NodePage:
    """A page of the list of nodes, behind a name."""
    views = (_with_drain(state, view) for view in state.fleet(now).after(name))
    return node_page(views, gpus=LISTED_GPUS, nodes=limit)


def _with_drain(state: State, view: FleetNode) -> FleetNode:
    drain = state.drains.get(view.node.id)
    return view if drain is None else replace(view, drain=drain)


def _node_now(state: State, node_id: str, now: float) -> FleetNode | None:
    view = state.fleet(now).view(node_id)
    return None if view is None else _with_drain(state, view)


def gpus_after(
    state: State, place: tuple[str, int, str] | None, count: int, now: float, pool: str | None = None
) -> list[FleetGpu]:
    """The GPUs behind a place, by node, index and id; with a pool only its own."""
    fleet = state.fleet(now)
    rest = [] if place is None else [fleet.view(place[0])]
    behind = chain((view for view in rest if view is not None), fleet.after(place[0] if place is not None else None))
    shown = ([gpu for gpu in view.gpus if pool is None or gpu.gpu.pool == pool] for view in behind)
    ordered = (gpu for gpus in shown for gpu in sorted(gpus, key=_gpu_key))
    return list(islice((gpu for gpu in ordered if place is None or _gpu_key(gpu) > place), count))


def _gpu_key(view: FleetGpu) -> tuple[str, int, str]:
    return view.node, view.gpu.index, view.gpu.id


async def _node(context: ServerContext, node_id: str, caller: Caller) -> NodeView:
    now = context.clock.now()
    view = await context.inspect(_node_now, node_id, now)
    if view is None:
        raise NotFound(f"there is no node {node_id!r}", field="node")
    return node_view(view, measured_now(context), caller, context.readings.hosts(now))


async def _gpu(context: ServerContext, gpu_id: str, caller: Caller) -> GpuView:
    now = context.clock.now()
    view = await context.inspect(lambda state: state.fleet(now).gpu(gpu_id))
    if view is None:
        raise NotFound(f"there is no GPU {gpu_id!r}", field="gpu")
    return gpu_view(view, measured_now(context), caller)
