"""Tasks: hold GPUs first, decide later what runs on them.

`allocate` submits a job that holds its GPUs and waits for a program; `planned_program`, `hand_program` and
`note_program` give it one; `release` ends it.
Without a number the allocation is automatic: as many GPUs as are free, within what automatic allocations of the user
may hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from corral.control.errors import InsufficientQuota, Invalid, NotFound, OverLimit, WrongState
from corral.control.jobs import jobs
from corral.control.jobs.admission import admit, settled
from corral.control.launch.orders import filled
from corral.control.live.unit_of_work import Caller, Work
from corral.control.people.permissions import require
from corral.control.ports import Workspace
from corral.control.records import Function, JobRecord, JobSpec
from corral.core.fleet.free_gpus import free_gpus
from corral.core.model import WHOLE, Job, JobKind, JobState, Request

PROGRAM_FILE = "program.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Allocated:
    record: JobRecord
    #: what the user should know, such as that fewer GPUs were given than could have been
    warning: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    #: None means the installation's template
    command: tuple[str, ...] | None = None
    #: None means the attempt's own directory
    workdir: str | None = None


def allocate(work: Work, caller: Caller, task: str, gpus: int | None, holder: tuple[str, ...]) -> Allocated:
    """Hold GPUs under a task's name. `holder` is the command that waits for the program."""
    require(caller, Function.TASKS)
    policy = work.state.policies.tasks
    mode = "manual" if gpus is not None else "auto"
    held = _held(work, caller, mode)
    limit = policy.max_manual_gpus if gpus is not None else policy.max_auto_gpus
    count, warning = _count(work, caller, gpus, held, limit)
    name = policy.prefix + task
    draft = jobs.JobDraft(
        name=name,
        kind=JobKind.WORKBENCH,
        request=Request(gpus=count),
        spec=JobSpec(command=holder, task=task, task_mode=mode),
    )
    existing = work.tx.jobs.find(caller.name, name)
    if existing and existing[0].job.state.is_ended:
        # A released task's name is free for the next allocation of it, once it is sure that there will be one.
        admit(work.state, [settled(work.state, jobs.make_job(work, caller, draft))])
        jobs.delete(work, caller, existing[0].job.id)
    (record,) = jobs.submit(work, caller, [draft])
    return Allocated(record=record, warning=warning)


def planned_program(work: Work, caller: Caller, task: str, program: Program) -> tuple[Job, Mapping[str, Any]]:
    """The task's job, and the content of the file that describes the program to it."""
    job = task_job(work, caller, task)
    if job.state not in (JobState.STARTING, JobState.RUNNING):
        raise WrongState(f"task {task!r} is {job.state}: its GPUs are not held yet", state=job.state)
    assert job.allocation is not None
    policy = work.state.policies.tasks
    nodes = work.state.snapshot.nodes
    indexes = [gpu.index for grant in job.allocation.grants for gpu in nodes[grant.node].gpus if gpu.id in grant.gpus]
    command = list(filled(program.command or policy.command, indexes))
    env = dict(zip(policy.env, filled([*policy.env.values()], indexes), strict=True))
    return job, {"attempt": job.attempt, "command": command, "env": env, "workdir": program.workdir}


def hand_program(job: Job, task: str, content: Mapping[str, Any], workspace: Workspace) -> None:
    """Leave the program where the task's job waits for it. Never in the controller's thread: the job can change that
    directory."""
    try:
        is_new = workspace.put_once(job.id, PROGRAM_FILE, content)
    except OSError as error:
        problem = f"task {task!r} cannot get its program: {error.strerror or error}"
        raise WrongState(problem, state=job.state) from error
    if not is_new:
        raise WrongState(f"task {task!r} has its program already; release it first", state=job.state)


def note_program(work: Work, caller: Caller, job: Job, task: str, content: Mapping[str, Any]) -> Job:
    """Record that a task's job has its program."""
    found = work.jobs.get(job.id)
    if found is None:
        raise NotFound(f"task {task!r} was deleted meanwhile", field="task")
    detail = {"task": task, "command": content["command"][0]}
    work.record(caller, "task.program-started", job.id, owner=job.user, detail=detail)
    return found


def release(work: Work, caller: Caller, task: str) -> Job:
    """Give the GPUs back."""
    job = task_job(work, caller, task)
    if job.state.is_ended:
        raise WrongState(f"task {task!r} holds nothing: it is {job.state}", state=job.state)
    return jobs.stop(work, caller, job.id)


def task_job(work: Work, caller: Caller, task: str) -> Job:
    found = work.tx.jobs.find(caller.name, work.state.policies.tasks.prefix + task)
    job = work.jobs.get(found[0].job.id) if found else None
    if job is None:
        raise NotFound(f"there is no task {task!r}", field="task")
    return job


def _pool_of_tasks(work: Work, caller: Caller) -> str:
    """Where the caller's tasks go by themselves: GPUs of other pools are not free for them."""
    smallest = jobs.JobDraft(kind=JobKind.WORKBENCH, request=Request(gpus=1), spec=JobSpec(command=("task",)))
    queue = settled(work.state, jobs.make_job(work, caller, smallest)).queue
    return work.state.snapshot.queues[queue].pool


def _count(work: Work, caller: Caller, gpus: int | None, held: int, limit: int | None) -> tuple[int, str | None]:
    """How many GPUs the task gets, and a warning if that is fewer than the user may think."""
    if gpus is not None:
        if gpus < 1:
            raise Invalid("ask for at least 1 GPU", field="gpus", asked=gpus)
        if limit is not None and held + gpus > limit:
            raise OverLimit(
                f"explicit allocations may hold {limit} GPUs: asked {gpus}, held {held}",
                field="gpus",
                asked=gpus,
                held=held,
                limit=limit,
            )
        return gpus, None
    left = None if limit is None else limit - held
    if left is not None and left < 1:
        raise InsufficientQuota(
            f"automatic allocations may hold {limit} GPUs, and {held} are held: name a number with --gpus",
            field="gpus",
            asked=1,
            held=held,
            limit=limit,
        )
    pool = _pool_of_tasks(work, caller)
    free = frozenset(free_gpus(work.state.snapshot, work.now, caller.name).free)
    largest = max(
        (
            len(free.intersection(slot.whole_gpus(domain)))
            for slot in work.state.snapshot.fleet.slots
            for domain in slot.domains
            if domain[0] == pool and domain[1]
        ),
        default=0,
    )
    count = max(1, largest if left is None else min(left, largest))
    warning = None
    if largest == 0:
        warning = "no GPU is free now: the task waits for one"
    elif left is not None and count < left:
        warning = f"{count} of {left} possible GPUs are free on one node"
    return count, warning


def _held(work: Work, caller: Caller, mode: str) -> int:
    """GPUs that the user's unfinished tasks of this mode hold or ask for."""
    prefix = work.state.policies.tasks.prefix
    return sum(
        job.request.total_gpu_milli // WHOLE
        for job in work.state.snapshot.jobs.values()
        if job.user == caller.name and job.name.startswith(prefix) and work.jobs.spec(job.id).task_mode == mode
    )
