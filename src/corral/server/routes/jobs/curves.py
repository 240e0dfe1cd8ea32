"""Curves of a job: numbers that its program reports per step."""

from __future__ import annotations

from corral.server.auth.callers import AnyCaller, Context
from corral.server.http.problems import Problem
from corral.server.http.strict_route import problems, resource_router
from corral.server.routes.jobs.jobs import own_record
from corral.server.schemas.jobs.curves import CurvesView, curves_view

router = resource_router("/jobs", "jobs")


@router.get("/{job}/curves", operation_id="get_job_curves", responses=problems(404, 503))
async def get_job_curves(job: str, caller: AnyCaller, context: Context) -> CurvesView:
    """Numbers per step, such as the loss: those that the program reports with `corral.checkpoint.log`, and the scalars
    of TensorBoard event files in the job's output directory."""
    found = (await context.read(own_record, caller, job)).job
    context.audit.read(caller, "files.read", found.id, owner=found.user, item="curves")
    try:
        curves = await context.readers.call(caller.name, lambda: context.curves.read(found.id))
    except OSError as error:
        reason = error.strerror or str(error)
        raise Problem(503, "Unavailable", f"The curves of {found.id} cannot be read: {reason}") from error
    return curves_view(curves)
