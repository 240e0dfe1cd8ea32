"""Checkpoints of a job, and the request to save one now."""

from __future__ import annotations

from corral.control.jobs import checkpoints
from corral.control.live.unit_of_work import Caller, Work
from corral.control.records import JobRecord
from corral.core.model import Job
from corral.server.auth.callers import AnyCaller, Context
from corral.server.http.problems import Problem
from corral.server.http.strict_route import problems, resource_router
from corral.server.routes.jobs.jobs import find_job
from corral.server.schemas.base import ListView
from corral.server.schemas.jobs.checkpoints import CheckpointView, checkpoint_view
from corral.server.schemas.jobs.jobs import JobView, job_view

router = resource_router("/jobs", "jobs")


@router.get("/{job}/checkpoints", operation_id="list_checkpoints", responses=problems(404, 503))
async def list_checkpoints(job: str, caller: AnyCaller, context: Context) -> ListView[CheckpointView]:
    """Checkpoints that the job's program has saved with the checkpoint helper, the newest first."""
    found = (await context.read(find_job, caller, job)).job
    try:
        saved = await context.readers.call(caller.name, lambda: context.checkpoints.list(found.id))
    except OSError as error:
        reason = error.strerror or str(error)
        raise Problem(503, "Unavailable", f"The checkpoints of {found.id} cannot be read: {reason}") from error
    may_see_path = caller.is_operator or caller.name == found.user
    return ListView(items=[checkpoint_view(item, may_see_path=may_see_path) for item in saved])


@router.post("/{job}/checkpoint", status_code=202, operation_id="request_checkpoint", responses=problems(404, 409))
async def request_checkpoint(job: str, caller: AnyCaller, context: Context) -> JobView:
    """Ask a running job's program to save now: it does so after its present step, if it uses the checkpoint helper."""
    running = await context.execute(checkpoints.job_to_save, caller, job)
    await context.steps.do(caller.name, checkpoints.ask_to_save, running, context.checkpoints)
    return job_view(await context.execute(_asked, caller, running), caller)


def _asked(work: Work, caller: Caller, asked: Job) -> JobRecord:
    job = checkpoints.note_request(work, caller, asked)
    return JobRecord(job=job, spec=work.jobs.spec(job.id))
