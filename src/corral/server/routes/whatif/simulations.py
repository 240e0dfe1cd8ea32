"""Simulations of what-if questions. For operators."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from fastapi import Response

from corral.control.errors import NotFound
from corral.control.live.state import State
from corral.control.records import SimulationRecord, SimulationSource
from corral.control.reports.report_data import Span
from corral.control.whatif import simulations
from corral.control.whatif.simulations import SHORTEST_SECONDS
from corral.core.counts import counted
from corral.core.whatif.past_jobs import PastJob
from corral.server.auth.callers import Context, Operator
from corral.server.http.context import ServerContext
from corral.server.http.paging import Cursor, Limit
from corral.server.http.problems import invalid_field
from corral.server.http.query_times import time_of
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import ListView
from corral.server.schemas.whatif.simulations import (
    SimulationCreate,
    SimulationView,
    TraceJobBody,
    past_job,
    plain_of,
    simulation_view,
)

router = resource_router("/simulations", "simulations")


@router.get("", operation_id="list_simulations", responses=problems(403))
async def list_simulations(
    caller: Operator, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[SimulationView]:
    """Simulations without their results, the newest first."""
    try:
        page = await context.read(lambda tables: tables.simulations.page(cursor=cursor, limit=limit))
    except ValueError as error:
        raise invalid_field("cursor", str(error)) from None
    views = [simulation_view(record, context.simulation_runner.progress(record.id)) for record in page.items]
    return ListView(items=views, next_cursor=page.next_cursor)


@router.post("", status_code=201, operation_id="create_simulation", responses=problems(403, 409))
async def create_simulation(body: SimulationCreate, caller: Operator, context: Context) -> SimulationView:
    """Replay past jobs with changes. The simulation is `waiting`, then `working`, until it is `ready`."""
    jobs = None if body.jobs is None else await _traced(context, body.jobs)
    if jobs is None:
        span = simulations.span_asked(
            context.clock.now(),
            days=body.days,
            since=time_of("since", body.since),
            until=time_of("until", body.until),
        )
    else:
        if body.days is not None or body.since is not None or body.until is not None:
            raise invalid_field("jobs", "a trace has its own times: leave out days, since and until")
        begin, end = jobs[0].job.created_at, jobs[-1].job.created_at
        span = Span(since=begin, until=max(end, begin + SHORTEST_SECONDS))
    record = await context.execute(
        simulations.request,
        caller,
        name=body.name,
        span=span,
        base=plain_of(body.base),
        candidate=plain_of(body.candidate),
        source=SimulationSource.HISTORY if jobs is None else SimulationSource.TRACE,
    )
    if jobs is not None:
        await asyncio.to_thread(context.simulation_runner.keep_trace, record.id, jobs)
    context.simulation_runner.wake()
    return simulation_view(record)


@router.get("/{id}", operation_id="get_simulation", responses=problems(403, 404))
async def get_simulation(id: str, caller: Operator, context: Context) -> SimulationView:
    """One what-if question with its state and, when it is done, its answer."""
    return await _shown(context, id)


@router.delete("/{id}", status_code=204, operation_id="delete_simulation", responses=problems(403, 404))
async def delete_simulation(id: str, caller: Operator, context: Context) -> Response:
    """Delete a simulation; one that is not over is cancelled."""
    await context.execute(simulations.delete, caller, id)
    context.simulation_runner.drop(id, remove=True)
    return Response(status_code=204)


@router.post("/{id}/cancel", operation_id="cancel_simulation", responses=problems(403, 404, 409))
async def cancel_simulation(id: str, caller: Operator, context: Context) -> SimulationView:
    """Cancel a simulation that waits or runs."""
    record = await context.execute(simulations.cancel, caller, id)
    context.simulation_runner.drop(id)
    return simulation_view(record)


@router.post("/{id}/again", status_code=201, operation_id="repeat_simulation", responses=problems(403, 404, 409))
async def repeat_simulation(id: str, caller: Operator, context: Context) -> SimulationView:
    """Run the same simulation again as a new one, with the present cluster."""
    before = await context.read(simulations.existing, id)
    record: SimulationRecord = await context.execute(
        simulations.request,
        caller,
        name=before.name,
        span=Span(since=before.since, until=before.until),
        base=before.base,
        candidate=before.candidate,
        source=before.source,
    )
    if before.source is SimulationSource.TRACE and not context.simulation_runner.copy_trace(before.id, record.id):
        await context.execute(simulations.delete, caller, record.id)
        raise NotFound(f"the trace of simulation {id} does not exist any more", field="simulation")
    context.simulation_runner.wake()
    return simulation_view(record)


async def _shown(context: ServerContext, simulation_id: str) -> SimulationView:
    record, result = await context.read(simulations.with_result, simulation_id)
    return simulation_view(record, context.simulation_runner.progress(simulation_id), result)


async def _traced(context: ServerContext, bodies: Sequence[TraceJobBody]) -> list[PastJob]:
    """The jobs in the order of their arrival. A job for a queue that does not exist is refused."""
    queues = await context.inspect(_queue_names)
    unknown = Counter(body.queue for body in bodies if body.queue not in queues)
    for queue, count in unknown.items():
        raise invalid_field("jobs", f"{counted(count, 'job is', 'jobs are')} for queue {queue!r}, which does not exist")
    return await asyncio.to_thread(_past_jobs, bodies)


def _past_jobs(bodies: Sequence[TraceJobBody]) -> list[PastJob]:
    found = []
    for number, body in enumerate(sorted(bodies, key=lambda body: body.submitted_at), start=1):
        try:
            found.append(past_job(body, number))
        except ValueError as error:
            raise invalid_field("jobs", f"{body.name!r}: {error}") from error
    return found


def _queue_names(state: State) -> frozenset[str]:
    return frozenset(state.snapshot.queues)
