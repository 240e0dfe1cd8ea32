"""Analysis: findings with proposals, and usage."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Query

from corral.control.errors import NotFound
from corral.control.reports.analysis import past_of, preview_defragmentation, run_analysis, snapshot_of
from corral.control.scheduling.moves import defragmentation
from corral.core.quantities import parse_duration
from corral.core.reports.analysis.model import DefragmentationPlan
from corral.server.auth.callers import Context, Operator
from corral.server.http.context import ServerContext
from corral.server.http.problems import invalid_field
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.reports.analysis import (
    AnalysisView,
    DefragmentationRunView,
    DefragmentationStart,
    DefragmentationView,
    analysis_view,
    defragmentation_run_view,
    defragmentation_view,
)

router = resource_router("", "analysis")

#: Usage is stored for little more than a year.
LONGEST_SECONDS = 400 * 86_400.0

Period = Annotated[
    str, Query(max_length=32, description="Length of the period until now: 24h, 7d, 30d.", examples=["7d", "24h"])
]


@router.get("/analysis", operation_id="get_analysis", responses=problems(403))
async def get_analysis(caller: Operator, context: Context, period: Period = "7d") -> AnalysisView:
    """Findings with evidence and a proposal, and GPU-hours and energy by user, group, queue and GPU model."""
    seconds = _seconds(period)
    now = context.clock.now()
    snapshot = await context.inspect(snapshot_of, now)
    past = await context.read(past_of, now - seconds, now)
    found = await asyncio.to_thread(
        run_analysis, snapshot, past, context.history, now - seconds, now, context.settings.analysis_rules
    )
    return analysis_view(found)


@router.get("/analysis/defragmentation", operation_id="get_defragmentation", responses=problems(403))
async def get_defragmentation(caller: Operator, context: Context) -> DefragmentationView:
    """Moves of running jobs that would free whole nodes. A preview: POST carries them out."""
    return defragmentation_view(await _plan(context))


@router.post(
    "/analysis/defragmentation",
    status_code=201,
    operation_id="start_defragmentation",
    responses=problems(403, 409),
)
async def start_defragmentation(
    body: DefragmentationStart, caller: Operator, context: Context
) -> DefragmentationRunView:
    """Approve the previewed moves, or those of some jobs. Two jobs are moved at a time; each move has a receipt."""
    plan = await _plan(context)
    run = await context.execute(
        defragmentation.start, caller, plan, jobs=body.jobs, include_unsaved=body.include_unsaved
    )
    return defragmentation_run_view(run)


@router.get("/analysis/defragmentation/run", operation_id="get_defragmentation_run", responses=problems(403, 404))
async def get_defragmentation_run(caller: Operator, context: Context) -> DefragmentationRunView:
    """The latest defragmentation, with what became of each move."""
    run = await context.read(defragmentation.latest)
    if run is None:
        raise NotFound("no defragmentation was started yet", field="defragmentation")
    return defragmentation_run_view(run)


@router.post(
    "/analysis/defragmentation/run/cancel", operation_id="cancel_defragmentation", responses=problems(403, 404, 409)
)
async def cancel_defragmentation(caller: Operator, context: Context) -> DefragmentationRunView:
    """Cancel the moves that have not begun. Moves under way are completed."""
    return defragmentation_run_view(await context.execute(defragmentation.cancel, caller))


async def _plan(context: ServerContext) -> DefragmentationPlan:
    now, rules = context.clock.now(), context.settings.analysis_rules
    snapshot = await context.inspect(snapshot_of, now)
    return await asyncio.to_thread(preview_defragmentation, snapshot, now, rules)


def _seconds(period: str) -> float:
    try:
        seconds = parse_duration(period)
    except ValueError as error:
        raise invalid_field("period", str(error)) from None
    if not 60 <= seconds <= LONGEST_SECONDS:
        raise invalid_field("period", "must be between 1 minute and 400 days")
    return seconds
