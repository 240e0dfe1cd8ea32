"""Accuracy of estimated starts."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from corral.control.records import Function
from corral.control.scheduling.estimates import summary
from corral.server.auth.callers import AnyCaller, Context
from corral.server.http.query_times import time_of
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.scheduling.estimates import EstimateAccuracyView, accuracy_view

router = resource_router("/estimates", "estimates")


@router.get("/accuracy", operation_id="estimate_accuracy", responses=problems())
async def estimate_accuracy(
    caller: AnyCaller,
    context: Context,
    since: Annotated[str | None, Query(min_length=1, max_length=253, description="Made at this time or later.")] = None,
) -> EstimateAccuracyView:
    """Accuracy of past estimates: how many jobs started by their estimated p50 and p90."""
    begin = time_of("since", since) or 0.0
    whose = None if caller.may(Function.SEE_OTHERS_JOBS) else caller.name
    return accuracy_view(await context.read(summary, begin, context.clock.now(), whose))
