"""Running jobs get other GPUs by request: resizes and moves, each with a preview."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corral.control.live.unit_of_work import Caller, Work
from corral.control.scheduling import elastic_jobs
from corral.control.scheduling.moves import migration
from corral.control.scheduling.moves.preview import preview
from corral.core.model import Job
from corral.server.auth.callers import AnyCaller, Context
from corral.server.events.visibility import JobIdFilter
from corral.server.http.strict_route import problems, resource_router
from corral.server.routes.jobs.jobs import changed
from corral.server.schemas.jobs.job_bodies import JobMigrate, JobResize
from corral.server.schemas.jobs.job_moves import ChangePreviewView, change_preview_view
from corral.server.schemas.jobs.jobs import JobView, job_view

router = resource_router("", "jobs")


@router.post("/jobs/{job}/resize", operation_id="resize_job", responses=problems(404, 409))
async def resize_job(job: str, body: JobResize, caller: AnyCaller, context: Context) -> JobView:
    """Resize a running elastic job to more or fewer GPUs of its node. The job is warned, saves, and starts again."""
    return job_view(await context.execute(changed, elastic_jobs.resize, caller, job, gpus=body.gpus), caller)


@router.post("/jobs/{job}/resize:plan", operation_id="plan_resize", responses=problems(404, 409))
async def plan_resize(job: str, body: JobResize, caller: AnyCaller, context: Context) -> ChangePreviewView:
    """Dry run of a resize: the GPUs before and after it, the work at risk, and the effect on waiting jobs."""
    return await context.execute(_previewed, elastic_jobs.resized, caller, job, gpus=body.gpus)


@router.post("/jobs/{job}/migrate", operation_id="migrate_job", responses=problems(404, 409))
async def migrate_job(job: str, body: JobMigrate, caller: AnyCaller, context: Context) -> JobView:
    """Move a running job to another node. The job is warned, saves, and starts again there; the move has a receipt."""
    return job_view(await context.execute(changed, migration.migrate, caller, job, to=body.to), caller)


@router.post("/jobs/{job}/migrate:plan", operation_id="plan_migration", responses=problems(404, 409))
async def plan_migration(job: str, body: JobMigrate, caller: AnyCaller, context: Context) -> ChangePreviewView:
    """Dry run of a move: the GPUs before and after it, the work at risk, and the effect on waiting jobs."""
    return await context.execute(_previewed, migration.migrated, caller, job, to=body.to)


def _previewed(
    work: Work, /, use_case: Callable[..., Job], caller: Caller, ref: str, **options: Any
) -> ChangePreviewView:
    found = preview(work.state, work.now, use_case(work, caller, ref, **options))
    return change_preview_view(found, work.now, JobIdFilter(caller=caller, jobs=work.state.snapshot.jobs))
