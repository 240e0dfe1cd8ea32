"""Tasks: hold GPUs first, start a program on them later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from corral.control.jobs import tasks
from corral.control.live.unit_of_work import Caller, Work
from corral.control.ports import Transaction
from corral.control.records import JobRecord
from corral.core.model import Job
from corral.server.auth.callers import AnyCaller, Context
from corral.server.http.paging import Cursor, Limit, page_of
from corral.server.http.strict_route import problems, resource_router
from corral.server.schemas.base import Body, Label, ListView, View
from corral.server.schemas.jobs.job_bodies import Directory, ProcessText
from corral.server.schemas.jobs.jobs import JobView, job_view

router = resource_router("/tasks", "tasks")


class TaskCreate(Body):
    task: Label
    gpus: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, description="null: an automatic allocation, which begins with scaling.min_gpus."
    )
    wait: bool = Field(
        default=False, description="Queue the task if a limit on held GPUs leaves no room now, in place of a refusal."
    )


class ProgramCreate(Body):
    """The program; the installation's template if it is left out."""

    command: Annotated[list[ProcessText], Field(min_length=1, max_length=1024)] | None = None
    workdir: Directory | None = Field(default=None, description="Working directory; default: the attempt's own.")


class TaskView(View):
    task: str
    job: JobView
    warning: str | None = None


@router.post("", status_code=201, operation_id="allocate_task", responses=problems(409))
async def allocate_task(body: TaskCreate, caller: AnyCaller, context: Context) -> TaskView:
    """Hold GPUs under a task's name: a given number, or automatically the minimum."""
    given = await context.execute(tasks.allocate, caller, body.task, body.gpus, context.task_holder, wait=body.wait)
    return TaskView(task=body.task, job=job_view(given.record, caller), warning=given.warning)


@router.get("", operation_id="list_tasks", responses=problems())
async def list_tasks(
    caller: AnyCaller, context: Context, limit: Limit = 50, cursor: Cursor = None
) -> ListView[TaskView]:
    """The caller's unfinished tasks; for operators, those of all users."""
    records = await context.read(_tasks, None if caller.is_operator else caller.name)
    page = page_of(records, key=lambda record: (record.job.user, record.job.name), limit=limit, cursor=cursor)
    shown = [TaskView(task=record.spec.task or "", job=job_view(record, caller)) for record in page.items]
    return ListView(items=shown, next_cursor=page.next_cursor)


@router.post("/{task}/program", operation_id="start_program", responses=problems(404, 409))
async def start_program(task: str, body: ProgramCreate, caller: AnyCaller, context: Context) -> JobView:
    """Start the task's program; possible once."""
    program = tasks.Program(command=tuple(body.command) if body.command is not None else None, workdir=body.workdir)
    job, content = await context.execute(tasks.planned_program, caller, task, program)
    await context.steps.do(caller.name, tasks.hand_program, job, task, content, context.workspace)
    return job_view(await context.execute(_noted, caller, job, task, content), caller)


@router.delete("/{task}", operation_id="release_task", responses=problems(404, 409))
async def release_task(task: str, caller: AnyCaller, context: Context) -> JobView:
    """End the task and free its GPUs."""
    return job_view(await context.execute(_release, caller, task), caller)


def _tasks(tables: Transaction, user: str | None) -> list[JobRecord]:
    ids = [job.id for job in tables.jobs.live() if user is None or job.user == user]
    records = [tables.jobs.get(job_id) for job_id in ids]
    return [record for record in records if record is not None and record.spec.task is not None]


def _noted(work: Work, caller: Caller, started: Job, task: str, content: Mapping[str, Any]) -> JobRecord:
    job = tasks.note_program(work, caller, started, task, content)
    return JobRecord(job=job, spec=work.jobs.spec(job.id))


def _release(work: Work, caller: Caller, task: str) -> JobRecord:
    job = tasks.release(work, caller, task)
    return JobRecord(job=job, spec=work.jobs.spec(job.id))
