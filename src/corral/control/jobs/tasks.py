"""Tasks: hold GPUs first, decide later what runs on them.

`allocate` submits a job that holds its GPUs and waits for a program; `planned_program`, `hand_program` and
`note_program` give it one; `release` ends it.
Without a number the allocation is automatic: it begins with the minimum of elastic jobs, within the limit on the
user's automatic allocations, and grows and shrinks like an elastic job. A task with more GPUs than a node has is a
gang, with one program on each node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from corral.control.errors import InsufficientQuota, Invalid, NotFound, OverLimit, WrongState
from corral.control.jobs import jobs
from corral.control.jobs.admission import admit, settled
from corral.control.live.unit_of_work import Caller, Work
from corral.control.people.permissions import require
from corral.control.ports import Workspace
from corral.control.records import Function, JobRecord, JobSpec
from corral.core.counts import counted
from corral.core.fleet.resources import at_least
from corral.core.model import WHOLE, Job, JobKind, JobState, Request
from corral.core.names import JOB_NAME
from corral.core.scheduling.elastic.resize import scalable_jobs
from corral.core.scheduling.limits.hold_rules import Reason, queue_limit, total_limit, user_limit
from corral.core.scheduling.placement.search import could_ever_fit, find_place

PROGRAM_FILE = "program.json"
#: Limits on GPUs that are held now. Other jobs wait for room under them; a task is refused unless it may wait.
_ALLOWANCES = (user_limit, total_limit, queue_limit)


@dataclass(frozen=True, kw_only=True, slots=True)
class Allocated:
    record: JobRecord
    #: why the task waits, if its GPUs cannot be held now
    warning: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    #: None means the installation's template
    command: tuple[str, ...] | None = None
    #: None means the attempt's own directory
    workdir: str | None = None


def allocate(
    work: Work, caller: Caller, task: str, gpus: int | None, holder: tuple[str, ...], *, wait: bool = False
) -> Allocated:
    """Hold GPUs under a task's name. `holder` is the command that waits for the program.

    A task that exceeds an allowance now is refused, unless it may `wait`.
    """
    require(caller, Function.TASKS)
    policy = work.state.policies.tasks
    mode = "manual" if gpus is not None else "auto"
    name = _name(work, caller, task)
    count = _count(work, gpus, _held(work, caller, mode))
    draft = _draft(work, caller, name, count, JobSpec(command=holder, task=task, task_mode=mode))
    if gpus is None and work.state.policies.scaling.rules.enabled and not draft.request.is_gang:
        draft = replace(draft, min_gpus=count, restart_unsaved=policy.restart_unsaved)
    job = settled(work.state, jobs.make_job(work, caller, draft))
    over = _exceeded(work, job)
    if over is not None and not wait:
        raise OverLimit(f"{over.detail}; to queue the task instead, say --wait", field="gpus", **over.numbers)
    existing = work.tx.jobs.find(caller.name, name)
    if existing and existing[0].job.state.is_ended:
        # A released task's name is free for the next allocation of it, once it is sure that there will be one.
        admit(work.state, [job])
        jobs.delete(work, caller, existing[0].job.id)
    (record,) = jobs.submit(work, caller, [draft])
    return Allocated(record=record, warning=_warning(work, job, over))


def planned_program(work: Work, caller: Caller, task: str, program: Program) -> tuple[Job, Mapping[str, Any]]:
    """The task's job, and the content of the file that describes the program to it."""
    job = task_job(work, caller, task)
    if job.state not in (JobState.STARTING, JobState.RUNNING):
        raise WrongState(f"task {task!r} is {job.state}: its GPUs are not held yet", state=job.state)
    policy = work.state.policies.tasks
    # Each node fills in its own GPUs when the program starts.
    command, env = [*(program.command or policy.command)], dict(policy.env)
    return job, {"command": command, "env": env, "workdir": program.workdir, "notify": policy.notify}


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
    found = work.tx.jobs.find_task(caller.name, task)
    job = work.jobs.get(found.job.id) if found else None
    if job is None:
        raise NotFound(f"there is no task {task!r}", field="task")
    return job


def _name(work: Work, caller: Caller, task: str) -> str:
    """The name of the task's job. Refuses a task that is not released, in the words of tasks."""
    prefix = work.state.policies.tasks.prefix
    if not JOB_NAME.fullmatch(prefix + task):
        detail = f"the task name {task!r} is not allowed: letters, digits, - and _"
        raise Invalid(f"{detail}, 4 to 63 of them with the prefix {prefix!r}", field="task")
    found = work.tx.jobs.find_task(caller.name, task)
    job = work.jobs.get(found.job.id) if found else None
    if job is not None and not job.state.is_ended:
        detail = f"task {task!r} is {job.state} with {counted(job.request.total_gpu_milli // WHOLE, 'GPU')}"
        raise WrongState(f"{detail}: start its program, or release it first", field="task", state=job.state)
    return prefix + task


def _draft(work: Work, caller: Caller, name: str, gpus: int, spec: JobSpec) -> jobs.JobDraft:
    """The task's job, on the fewest nodes with equally many GPUs each that could hold it."""

    def divided(count: int) -> jobs.JobDraft | None:
        for nodes in (number for number in range(1, count + 1) if count % number == 0):
            draft = _draft_on(nodes, name, count, spec)
            job = settled(work.state, jobs.make_job(work, caller, draft))
            if could_ever_fit(work.state.snapshot.fleet, job, work.state.snapshot.queues[job.queue].pool):
                return draft
        return None

    found = divided(gpus)
    if found is None:
        near = [count for count in (gpus - 1, gpus + 1) if count and divided(count) is not None]
        if any(count > gpus for count in near):
            possible = " or ".join(map(str, near))
            detail = f"no nodes have {counted(gpus, 'GPU')} in equal parts: ask for {possible}"
            raise Invalid(detail, field="gpus", asked=gpus)
    return found or _draft_on(1, name, gpus, spec)


def _draft_on(nodes: int, name: str, gpus: int, spec: JobSpec) -> jobs.JobDraft:
    return jobs.JobDraft(
        name=name,
        kind=JobKind.WORKBENCH if nodes == 1 else JobKind.DISTRIBUTED,
        request=Request(nodes=nodes, gpus=gpus // nodes),
        # A task holds its GPUs until it is released, on one node as on several.
        preemptible=False,
        spec=spec,
    )


def _exceeded(work: Work, job: Job) -> Reason | None:
    """The first allowance without room for the job, even if elastic jobs released what they can."""
    snapshot = work.state.snapshot
    with snapshot.trial() as trial:
        if snapshot.scaling.enabled:
            for item in scalable_jobs(snapshot):
                trial.resize(item.job, item.at_its_least())
        found = (rule(snapshot, job, work.now) for rule in _ALLOWANCES)
        return next((reason for reason in found if reason is not None), None)


def _warning(work: Work, job: Job, over: Reason | None) -> str | None:
    if over is not None:
        return f"{over.detail}: the task waits"
    queue = work.state.snapshot.queues[job.queue]
    if find_place(work.state.snapshot.fleet, job, queue.pool, queue.placement) is not None:
        return None
    gpus = job.request.total_gpu_milli // WHOLE
    if gpus == 1:
        return "no GPU is free now: the task waits for one"
    where = "" if job.request.is_gang else " on one node"
    return f"{counted(gpus, 'GPU is', 'GPUs are')} not free now{where}: the task waits for them"


def _count(work: Work, gpus: int | None, held: int) -> int:
    """How many GPUs the task asks for."""
    policies = work.state.policies
    if gpus is not None:
        limit = policies.tasks.max_manual_gpus
        if gpus < 1:
            raise Invalid("ask for at least 1 GPU", field="gpus", asked=gpus)
        if limit is not None and held + gpus > limit:
            raise OverLimit(
                f"explicit allocations may hold {counted(limit, 'GPU')}: asked {gpus}, held {held}",
                field="gpus",
                asked=gpus,
                held=held,
                limit=limit,
            )
        return gpus
    least, limit = policies.scaling.min_gpus, policies.tasks.max_auto_gpus
    if limit is not None and held + least > limit:
        raise InsufficientQuota(
            f"automatic allocations may hold {counted(limit, 'GPU')}: "
            f"asked {least}, held {held}; name a number with --gpus",
            field="gpus",
            asked=least,
            held=held,
            limit=limit,
        )
    return least


def _held(work: Work, caller: Caller, mode: str) -> int:
    """GPUs that the user's unfinished tasks of this mode ask for; what they hold beyond that is on loan."""
    prefix = work.state.policies.tasks.prefix
    return sum(
        at_least(job).request.total_gpu_milli // WHOLE
        for job in work.state.snapshot.jobs.values()
        if job.user == caller.name and job.name.startswith(prefix) and work.jobs.spec(job.id).task_mode == mode
    )
