"""Analysis: findings with proposals, and usage."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Query

from corral.control.reports.analysis import past_of, preview_defragmentation, run_analysis, snapshot_of
from corral.core.quantities import parse_duration
from corral.core.reports.analysis.model import AnalysisRules
from corral.server.auth.callers import Context, Operator
from corral.server.http.context import ServerContext
from corral.server.http.problems import invalid_field
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.reports.analysis import (
    AnalysisView,
    DefragmentationView,
    analysis_view,
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
    snapshot = await context.inspect(snapshot_of)
    past = await context.read(past_of, now - seconds, now)
    found = await asyncio.to_thread(
        run_analysis, snapshot, past, context.history, now - seconds, now, analysis_rules(context)
    )
    return analysis_view(found)


@router.get("/analysis/defragmentation", operation_id="get_defragmentation", responses=problems(403))
async def get_defragmentation(caller: Operator, context: Context) -> DefragmentationView:
    """Moves of running jobs that would free whole nodes. Only a preview: they are not carried out."""
    snapshot = await context.inspect(snapshot_of)
    now, rules = context.clock.now(), analysis_rules(context)
    return defragmentation_view(await asyncio.to_thread(preview_defragmentation, snapshot, now, rules))


def analysis_rules(context: ServerContext) -> AnalysisRules:
    settings = context.settings
    return AnalysisRules(
        hot_celsius=settings.monitoring.alert_thresholds.temperature,
        checkpoint_seconds=settings.fault_tolerance.checkpoint_interval_minutes * 60,
    )


def _seconds(period: str) -> float:
    try:
        seconds = parse_duration(period)
    except ValueError as error:
        raise invalid_field("period", str(error)) from None
    if not 60 <= seconds <= LONGEST_SECONDS:
        raise invalid_field("period", "must be between 1 minute and 400 days")
    return seconds
