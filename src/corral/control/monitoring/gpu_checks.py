"""Active checks of GPUs: jobs of the platform's own, and what follows from their results.

A check is a job on exactly one GPU, with the lowest priority and without any limit or charge; its GPU may be suspect or
failed. Its result becomes evidence: a GPU that computes or stores something wrong is failed, one that is below the
limits of its model or slower than its peers is suspect until a check passes or an operator resets it. A check that was
requested for a GPU in quarantine returns it if everything passes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from corral.control.errors import InUse, Invalid, NotFound, WrongState
from corral.control.live.state import State
from corral.control.live.unit_of_work import SYSTEM, Caller, Work
from corral.control.monitoring import gpu_health
from corral.control.people.operators import require_operator
from corral.control.records import CheckCause, CheckRecord, CheckState, JobRecord, JobSpec, Role
from corral.core.jobs.lifecycle import StartRequested
from corral.core.model import DEFAULT_QUEUE, Gpu, GpuHealth, Job, Node, NodeState, Request
from corral.core.monitoring.checks import (
    USUAL,
    Check,
    Measurement,
    Problem,
    below_limits,
    slower_than_peers,
)
from corral.core.monitoring.health.model import Evidence, Sign

#: A GPU in quarantine returns if at least these have passed.
NEEDED_TO_RETURN = (Check.COMPUTE, Check.MEMORY)
#: The lowest priority.
PRIORITY = 100
#: No check takes longer; one that hangs ends.
TIME_LIMIT_SECONDS = 900.0
VIRTUAL_LABEL = ("virtual", "true")
ADVICE = "Repair or replace it, then run: corral health run {gpu}. For a ticket: corral health ticket {gpu}"


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckRules:
    #: the interpreter on the nodes, which may have PyTorch
    python: str = "python3"
    #: the directory with the program, for PYTHONPATH
    library: str = ""
    #: the least value of each metric, by GPU model
    limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    #: seconds between two scheduled checks of a GPU; None: no scheduled checks
    every_seconds: float | None = None
    #: how many scheduled checks there are at the same time
    at_once: int = 1
    checks: tuple[Check, ...] = USUAL


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckOutcome:
    """The report of a check's program. None in place of an outcome means that the program reported nothing."""

    measurements: tuple[Measurement, ...] = ()
    problems: tuple[Problem, ...] = ()
    #: by check: why it was not made
    skipped: Mapping[Check, str] = field(default_factory=dict)


def request(work: Work, caller: Caller, target: str, checks: Sequence[Check], rules: CheckRules) -> list[CheckRecord]:
    """Check a GPU, or every GPU of a node."""
    require_operator(caller, "check GPUs")
    wanted = tuple(dict.fromkeys(checks or rules.checks))
    node, gpus = _targets(work.state, target)
    if node.state is NodeState.DOWN:
        raise WrongState(f"node {node.id} is down: its GPUs cannot be checked", state=node.state)
    busy = {gpu for record in work.tx.health.open_checks() for gpu in (record.gpu_id,)}
    free = [gpu for gpu in gpus if gpu.id not in busy]
    if not free:
        raise InUse(f"{target} is being checked already", field="target")
    # A disk and a link belong to the node: they are measured once.
    of_gpu = tuple(check for check in wanted if not check.is_of_node)
    records = []
    for number, gpu in enumerate(free):
        chosen = wanted if number == 0 else of_gpu
        if chosen:
            cause = CheckCause.REQUESTED if gpu.health is GpuHealth.HEALTHY else CheckCause.RETURN
            records.append(_begun(work, caller, caller.name, node, gpu, chosen, cause, rules))
    work.tx.health.add_checks(records)
    return records


def begin_scheduled(work: Work, rules: CheckRules) -> list[CheckRecord]:
    """Check idle GPUs whose last check was long ago, a few at a time, and only where no job waits for a GPU."""
    state = work.state
    if rules.every_seconds is None:
        return []
    open_now = work.tx.health.open_checks()
    room = rules.at_once - sum(record.cause is CheckCause.SCHEDULE for record in open_now)
    user = _first_operator(work)
    if room <= 0 or user is None:
        return []
    last = {record.gpu_id: record.requested_at for record in work.tx.health.latest_checks()}
    crowded = {
        queue.pool
        for job in state.snapshot.jobs.values()
        if job.allocation is None and job.request.wants_gpu and not job.only_gpus and job.state.is_active
        if (queue := state.snapshot.queues.get(job.queue)) is not None
    }
    busy = {record.gpu_id for record in open_now} | {
        gpu for job in state.snapshot.jobs.values() if job.allocation is not None for gpu in job.allocation.gpus
    }
    due = [
        (last.get(gpu.id, -math.inf), node, gpu)
        for node in state.snapshot.nodes.values()
        if node.state is NodeState.READY
        for gpu in node.gpus
        if gpu.takes_jobs and gpu.id not in busy and gpu.id not in node.taken.gpus
        if gpu.pool not in crowded and work.now - last.get(gpu.id, -math.inf) >= rules.every_seconds
    ]
    due.sort(key=lambda item: (item[0], item[2].id))
    records = [
        _begun(work, SYSTEM, user, node, gpu, rules.checks, CheckCause.SCHEDULE, rules) for _, node, gpu in due[:room]
    ]
    if records:
        work.tx.health.add_checks(records)
    return records


def finish(work: Work, job_id: str, outcome: CheckOutcome | None, rules: CheckRules) -> CheckRecord | None:
    """Evaluate a check whose job has ended. Finishing twice changes nothing."""
    record = work.tx.health.check(job_id)
    if record is None or record.state is not CheckState.OPEN:
        return record
    gpu = gpu_health.find_gpu(work.state, record.gpu_id)
    if outcome is None or gpu is None or not (outcome.measurements or outcome.problems):
        why = () if outcome is None else tuple(f"{check}: {reason}" for check, reason in outcome.skipped.items())
        over = replace(record, state=CheckState.UNKNOWN, ended_at=work.now, skipped=why or ("no result was reported",))
        work.tx.health.save_check(over)
        work.record(
            SYSTEM, "gpu.check-without-result", record.gpu_id, detail={"job": job_id, "why": list(over.skipped)}
        )
        return over
    problems = (
        *outcome.problems,
        *below_limits(outcome.measurements, rules.limits.get(record.model, {})),
        *slower_than_peers(record.gpu_id, outcome.measurements, _peers(work, record)),
    )
    over = replace(
        record,
        state=CheckState.FAILED if problems else CheckState.PASSED,
        ended_at=work.now,
        measurements=outcome.measurements,
        problems=problems,
        skipped=tuple(f"{check}: {reason}" for check, reason in outcome.skipped.items()),
    )
    work.tx.health.save_check(over)
    _apply(work, over, gpu, missed=frozenset(outcome.skipped))
    return over


def ticket(state: State, checks: Sequence[CheckRecord], gpu_id: str, now_text: str) -> str:
    """The text of a repair ticket: which device, what was found, with which evidence."""
    gpu = gpu_health.find_gpu(state, gpu_id)
    if gpu is None:
        raise NotFound(f"there is no GPU {gpu_id!r}", field="gpu")
    condition = gpu_health.condition_of(state, gpu_id)
    node = state.snapshot.fleet.gpu_home[gpu_id]
    lines = [
        f"GPU {gpu_id} ({gpu.model}) in {node}, index {gpu.index}: {gpu.health}",
        f"As of {now_text}",
        "",
        "Evidence:",
        *(f"- {item.sign}: {item.text}" for item in condition.evidence),
        *([] if condition.evidence else ["- none"]),
        "",
        "Checks, the newest first:",
    ]
    for record in checks:
        lines.append(f"- {record.job_id} ({record.cause}): {record.state}")
        lines += [f"    {item.metric} = {item.value:.4g}" for item in record.measurements]
        lines += [f"    {problem.check}: {problem.text}" for problem in record.problems]
        lines += [f"    not checked: {reason}" for reason in record.skipped]
    if not checks:
        lines.append("- none")
    lines += ["", f"After the repair: corral health run {gpu_id}"]
    return "\n".join(lines)


# ------------------------------------------------------------------------------------------------ inside


def _targets(state: State, target: str) -> tuple[Node, list[Gpu]]:
    node = state.snapshot.nodes.get(target)
    if node is not None:
        if not node.gpus:
            raise Invalid(f"node {target} has no GPUs", field="target")
        return node, sorted(node.gpus, key=lambda gpu: gpu.index)
    gpu = gpu_health.find_gpu(state, target)
    if gpu is None:
        raise NotFound(f"there is no node and no GPU {target!r}", field="target")
    return state.snapshot.nodes[state.snapshot.fleet.gpu_home[target]], [gpu]


def _begun(
    work: Work,
    caller: Caller,
    user: str,
    node: Node,
    gpu: Gpu,
    checks: tuple[Check, ...],
    cause: CheckCause,
    rules: CheckRules,
) -> CheckRecord:
    is_virtual = VIRTUAL_LABEL in node.labels
    (job_id,) = work.tx.jobs.next_ids(1)
    names = ",".join(check.value for check in checks)
    command = (rules.python, "-m", "corral.presets.gpu_checks", f"--checks={names}", *(["--cpu"] if is_virtual else []))
    job = Job(
        id=job_id,
        name=f"check-{job_id}",
        user=user,
        queue=_queue_of(work.state, gpu),
        request=Request(gpus=1, models=(gpu.model,)),
        priority=PRIORITY,
        created_at=work.now,
        time_limit_seconds=TIME_LIMIT_SECONDS,
        grace_seconds=1.0,
        max_retries=0,
        idles=True,
        only_gpus=(gpu.id,),
    )
    env = {"PYTHONPATH": rules.library} if rules.library else {}
    spec = JobSpec(command=command, env=env, description=f"checks {gpu.model} {gpu.id}: {names}"[:500])
    work.jobs.add(JobRecord(job=job, spec=spec))
    work.jobs.advance(job, StartRequested(at=work.now))
    work.record(caller, "gpu.check-started", gpu.id, detail={"job": job_id, "checks": names, "cause": cause})
    return CheckRecord(
        job_id=job_id,
        gpu_id=gpu.id,
        node=node.id,
        model=gpu.model,
        cause=cause,
        requested_by=caller.name,
        requested_at=work.now,
        checks=checks,
        is_simulated=is_virtual,
    )


def _queue_of(state: State, gpu: Gpu) -> str:
    """The queue of the GPU's pool, the default one if it is that pool's."""
    names = sorted(queue.name for queue in state.snapshot.queues.values() if queue.pool == gpu.pool)
    if not names:
        raise WrongState(f"pool {gpu.pool} has no queue: its GPUs cannot be checked by jobs", state="no queue")
    return DEFAULT_QUEUE if DEFAULT_QUEUE in names else names[0]


def _first_operator(work: Work) -> str | None:
    """The user in whose name scheduled checks run."""
    operators = [user for user in work.tx.people.users() if user.role is Role.OPERATOR]
    return min(operators, key=lambda user: (user.created_at, user.name)).name if operators else None


def _peers(work: Work, record: CheckRecord) -> dict[str, dict[str, float]]:
    """The latest values of the other GPUs of the model, by metric. Processors and GPUs are never compared."""
    found: dict[str, dict[str, float]] = {}
    for other in work.tx.health.latest_checks(record.model):
        if other.gpu_id != record.gpu_id and other.is_simulated == record.is_simulated:
            for item in other.measurements:
                found.setdefault(item.metric, {})[other.gpu_id] = item.value
    return found


def _apply(work: Work, record: CheckRecord, gpu: Gpu, missed: frozenset[Check]) -> None:
    """Make the verdict fact: evidence against the GPU, or its return from quarantine."""
    detail = {
        "job": record.job_id,
        "problems": [problem.text for problem in record.problems],
        "measured": {item.metric: item.value for item in record.measurements},
    }
    of_node = [problem.text for problem in record.problems if problem.check.is_of_node]
    if of_node:
        work.record(SYSTEM, "node.check-failed", record.node, detail={"job": record.job_id, "problems": of_node})
    problems = [problem for problem in record.problems if not problem.check.is_of_node]
    if not problems:
        work.record(SYSTEM, "gpu.check-passed", record.gpu_id, detail=detail)
        is_complete = {*NEEDED_TO_RETURN} <= {*record.checks} - missed
        if record.cause is CheckCause.RETURN and is_complete and gpu.health is not GpuHealth.HEALTHY:
            gpu_health.clear_after_check(work, record.gpu_id, record.requested_by)
        return
    work.record(SYSTEM, "gpu.check-failed", record.gpu_id, detail=detail)
    is_fatal = any(problem.is_fatal for problem in problems) or gpu.health is GpuHealth.FAILED
    advice = ADVICE.format(gpu=record.gpu_id)
    evidence = [Evidence(sign=Sign.CHECK, at=work.now, text=problem.text, advice=advice) for problem in problems]
    gpu_health.quarantine(work, record.gpu_id, GpuHealth.FAILED if is_fatal else GpuHealth.SUSPECT, evidence)
