"""Arrays of jobs: submitted in one request, stopped in one."""

from __future__ import annotations

from corral.control.jobs import arrays
from corral.core.jobs.arrays import parse_array, parse_packed
from corral.server.auth.callers import AnyCaller, Context
from corral.server.http.strict_route import problems, resource_router
from corral.server.jobs.drafts import draft_of
from corral.server.jobs.preset_files import filled
from corral.server.schemas.base import ListView
from corral.server.schemas.jobs.job_bodies import ArrayStop, JobArray
from corral.server.schemas.jobs.jobs import JobView, job_view

router = resource_router("", "jobs")


@router.post("/jobs:array", status_code=201, operation_id="submit_array", responses=problems(403, 409))
async def submit_array(body: JobArray, caller: AnyCaller, context: Context) -> ListView[JobView]:
    """Create one job for every index of an array, or for a packed array a few jobs that run its items one after
    another: all of them or none."""
    [whole] = await filled(context, [body])
    [draft] = await context.git_sources.with_commits(caller, [draft_of(whole)])
    if body.pack:
        records = await context.execute(arrays.submit_packed, caller, draft, parse_packed(body.array))
    else:
        records = await context.execute(arrays.submit_array, caller, draft, parse_array(body.array))
    return ListView(items=[job_view(record, caller) for record in records])


@router.post("/jobs:stop", operation_id="stop_array", responses=problems(404, 409))
async def stop_array(body: ArrayStop, caller: AnyCaller, context: Context) -> ListView[JobView]:
    """Stop all jobs of an array that have not ended, at once."""
    records = await context.execute(arrays.stop_array, caller, body.array, body.user)
    return ListView(items=[job_view(record, caller) for record in records])
