"""Changes of a GPU's health: the snapshot, the evidence, the jobs on the GPU, and decisions of operators.

Readings are judged elsewhere (`core.health`); here a judgement becomes fact, if it still fits what is known by now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from corral.control.errors import InUse, Invalid, NotFound, WrongState
from corral.control.live.state import State
from corral.control.live.unit_of_work import SYSTEM, Caller, Work
from corral.control.people.operators import require_operator
from corral.core.jobs.lifecycle import StopRequested
from corral.core.model import EndReason, Gpu, GpuHealth, Job, JobState, Node, NodeState
from corral.core.monitoring.health.judgement import put
from corral.core.monitoring.health.model import DAY, Condition, Evidence, Sign
from corral.core.monitoring.health.xid import about
from corral.core.snapshot.changes import PutNode

#: The events of a GPU's health; a failed self-test is a failure like any other.
ACTIONS = {
    GpuHealth.HEALTHY: "gpu.healthy",
    GpuHealth.SUSPECT: "gpu.suspect",
    GpuHealth.FAILED: "gpu.failed",
}
MAX_REASON = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class HealthChange:
    """A change of a GPU's condition: the one before and the one after."""

    before: Condition
    after: Condition


@dataclass(frozen=True, kw_only=True, slots=True)
class XidNote:
    """The driver has reported an error on a GPU."""

    gpu_id: str
    code: int
    at: float
    job_ids: tuple[str, ...] = ()


def apply(work: Work, changes: Sequence[HealthChange]) -> None:
    """Make judgements fact. One that was made from a condition that is not the present one any more is dropped: the
    next reading will be judged anew."""
    state = work.state
    fitting = [
        change
        for change in changes
        if condition_of(state, change.before.gpu_id) == change.before and find_gpu(state, change.before.gpu_id)
    ]
    if fitting:
        _settle(work, SYSTEM, [change.after for change in fitting])


def note_xids(work: Work, notes: Sequence[XidNote]) -> None:
    """Record every driver error in the audit log with its meaning; also errors that a program caused."""
    for note in notes:
        xid = about(note.code)
        detail = {"code": note.code, "words": xid.meaning, "fault": xid.fault, "advice": xid.advice}
        work.record(SYSTEM, "gpu.xid", note.gpu_id, detail={**detail, "jobs": list(note.job_ids)})


def reset(work: Work, caller: Caller, gpu_id: str) -> Gpu:
    """An operator decides that a GPU may be used again. Its recorded faults are dropped."""
    require_operator(caller, "manage nodes and GPUs")
    gpu = _known(work.state, gpu_id)
    if gpu.health is not GpuHealth.HEALTHY or gpu_id in work.state.conditions:
        _clear(work, gpu_id)
        work.record(caller, "gpu.health-reset", gpu_id, detail={"was": gpu.health})
    return _known(work.state, gpu_id)


def mark(work: Work, caller: Caller, gpu_id: str, health: GpuHealth, reason: str, *, sign: Sign = Sign.OPERATOR) -> Gpu:
    """An operator or an alert marks a GPU as suspect. A failed GPU stays failed."""
    require_operator(caller, "manage nodes and GPUs")
    gpu = _known(work.state, gpu_id)
    if health is GpuHealth.HEALTHY:
        raise Invalid("a GPU becomes healthy by reset-health or a self-test", field="health")
    if not reason.strip() or len(reason) > MAX_REASON:
        raise Invalid(f"say why, in at most {MAX_REASON} characters", field="reason")
    if gpu.health is GpuHealth.FAILED and health is GpuHealth.SUSPECT:
        raise WrongState(f"GPU {gpu_id} has failed already", state=gpu.health)
    said = Evidence(sign=sign, at=work.now, text=f"{reason.strip()} ({caller.name})")
    _settle(work, caller, [put(condition_of(work.state, gpu_id), health, [said], work.now)])
    return _known(work.state, gpu_id)


def quarantine(work: Work, gpu_id: str, health: GpuHealth, evidence: Sequence[Evidence]) -> None:
    """A check has found a GPU wrong or slow: it gets no new jobs, and loses those it has if it is failed."""
    _settle(work, SYSTEM, [put(condition_of(work.state, gpu_id), health, evidence, work.now)])


def clear_after_check(work: Work, gpu_id: str, requested_by: str) -> None:
    """A check that an operator requested has passed: the GPU returns from quarantine."""
    was = _known(work.state, gpu_id).health
    _clear(work, gpu_id)
    work.record(SYSTEM, "gpu.returned", gpu_id, detail={"was": was, "requested_by": requested_by})


def begin_self_test(work: Work, caller: Caller, gpu_id: str) -> Gpu:
    """Takes a free GPU out of use for a self-test."""
    require_operator(caller, "manage nodes and GPUs")
    gpu = _known(work.state, gpu_id)
    if gpu_id in work.state.testing:
        raise WrongState(f"GPU {gpu_id} is being tested already", state="testing")
    for job in holding_jobs(work.state, [gpu_id]):
        raise InUse(
            f"job {job.id} ({job.name}) of {job.user} holds GPU {gpu_id}: a test would disturb it",
            field="gpu",
            job=job.id,
            name=job.name,
        )
    node = work.state.snapshot.nodes[work.state.snapshot.fleet.gpu_home[gpu_id]]
    if node.state is NodeState.DOWN:
        raise WrongState(f"node {node.id} is down: its GPUs cannot be tested", state=node.state)
    work.state.testing[gpu_id] = work.state.conditions.get(gpu_id)
    if gpu.health is GpuHealth.HEALTHY:
        # No new work meanwhile. Should the server end during the test, it recovers like any suspect GPU.
        under_test = Evidence(sign=Sign.SELF_TEST, at=work.now, text="a self-test runs")
        _save(work, [put(condition_of(work.state, gpu_id), GpuHealth.SUSPECT, [under_test], work.now)])
    work.record(caller, "gpu.self-test-started", gpu_id)
    return gpu


def end_self_test(work: Work, caller: Caller, gpu_id: str, problem: str | None) -> Gpu:
    """A passed test brings the GPU back; a failed one is evidence."""
    gpu = _known(work.state, gpu_id)
    work.state.testing.pop(gpu_id, None)
    if problem is None:
        _clear(work, gpu_id)
        work.record(caller, "gpu.self-test-passed", gpu_id, detail={"was": gpu.health})
        return _known(work.state, gpu_id)
    failed = Evidence(
        sign=Sign.SELF_TEST, at=work.now, text=problem, advice="Reset the GPU or restart the node and test it again."
    )
    _settle(work, caller, [put(condition_of(work.state, gpu_id), GpuHealth.FAILED, [failed], work.now)])
    return _known(work.state, gpu_id)


def abandon_self_test(work: Work, caller: Caller, gpu_id: str) -> None:
    """The test itself could not be run: everything is as before."""
    if gpu_id not in work.state.testing or find_gpu(work.state, gpu_id) is None:
        work.state.testing.pop(gpu_id, None)
        return
    before = work.state.testing.pop(gpu_id)
    if before is None:
        _clear(work, gpu_id)
    else:
        _save(work, [before])
    work.record(caller, "gpu.self-test-abandoned", gpu_id)


def forget_old(work: Work) -> None:
    """Healthy GPUs that were last suspected more than a day ago are like all others."""
    old = [
        item.gpu_id
        for item in work.state.conditions.values()
        if item.health is GpuHealth.HEALTHY and all(begin <= work.now - DAY for begin in item.episodes)
    ]
    forget(work, old)


def forget(work: Work, gpu_ids: Iterable[str]) -> None:
    """Deletes the conditions of GPUs that are removed or replaced."""
    known = [gpu_id for gpu_id in gpu_ids if gpu_id in work.state.conditions]
    if known:
        work.tx.health.delete_conditions(known)
        for gpu_id in known:
            del work.state.conditions[gpu_id]


def condition_of(state: State, gpu_id: str) -> Condition:
    return state.conditions.get(gpu_id) or Condition(gpu_id=gpu_id)


def find_gpu(state: State, gpu_id: str) -> Gpu | None:
    node = state.snapshot.nodes.get(state.snapshot.fleet.gpu_home.get(gpu_id, ""))
    return next((gpu for gpu in node.gpus if gpu.id == gpu_id), None) if node is not None else None


def holding_jobs(state: State, gpu_ids: Iterable[str]) -> list[Job]:
    """The jobs that hold any of these GPUs, in the order of their ids."""
    wanted = set(gpu_ids)
    holding = [
        job
        for job in state.snapshot.jobs.values()
        if job.allocation is not None and not wanted.isdisjoint(job.allocation.gpus)
    ]
    return sorted(holding, key=lambda job: job.serial)


def _settle(work: Work, caller: Caller, conditions: Sequence[Condition]) -> None:
    """Save conditions, record the changes of health, and move jobs away from failed GPUs."""
    was = {item.gpu_id: condition_of(work.state, item.gpu_id).health for item in conditions}
    _save(work, conditions)
    for item in conditions:
        if item.health is not was[item.gpu_id]:
            work.record(caller, ACTIONS[item.health], item.gpu_id, detail=_detail(work.state, item, was[item.gpu_id]))
    failed = {item.gpu_id: item for item in conditions if item.health is GpuHealth.FAILED}
    for job in holding_jobs(work.state, failed):
        # A check is there because of the fault, and can run nowhere else.
        if not job.only_gpus:
            _move_away(work, job, failed)


def _move_away(work: Work, job: Job, failed: dict[str, Condition]) -> None:
    """Requeue the job; it resumes from its checkpoint on other GPUs. A job that is being stopped for another reason is
    left alone."""
    assert job.allocation is not None
    gpus = tuple(gpu for gpu in job.allocation.gpus if gpu in failed)
    if job.state is JobState.STOPPING and not job.is_resizing and job.stopping_for is not EndReason.GPU_FAILED:
        return
    if job.state is JobState.STOPPING and {*gpus} <= {*job.avoid_gpus}:
        return
    message = "; ".join(f"GPU {gpu} failed: {_latest_fault(failed[gpu])}" for gpu in gpus)
    work.jobs.advance(job, StopRequested(at=work.now, reason=EndReason.GPU_FAILED, failed=gpus, message=message))
    detail = {"attempt": job.attempt, "reason": EndReason.GPU_FAILED, "gpus": list(gpus), "message": message}
    work.record(SYSTEM, "job.moving", job.id, owner=job.notified_user, detail=detail)


def _clear(work: Work, gpu_id: str) -> None:
    """Healthy, and nothing is held against it any more."""
    _put_health(work, {gpu_id: GpuHealth.HEALTHY})
    forget(work, [gpu_id])
    # Who waits may come back to it: with nothing else to run on, avoiding it would mean to wait for ever.
    for job in list(work.state.snapshot.jobs.values()):
        if job.state is JobState.QUEUED and gpu_id in job.avoid_gpus:
            left = tuple(gpu for gpu in job.avoid_gpus if gpu != gpu_id)
            work.jobs.edit(job, replace(job, avoid_gpus=left))


def _save(work: Work, conditions: Sequence[Condition]) -> None:
    _put_health(work, {item.gpu_id: item.health for item in conditions})
    work.tx.health.save_conditions(conditions)
    for item in conditions:
        work.state.conditions[item.gpu_id] = item


def _put_health(work: Work, healths: dict[str, GpuHealth]) -> None:
    """Updates the health of GPUs in the snapshot: each node once, and only changed values."""
    by_node: defaultdict[str, list[Gpu]] = defaultdict(list)
    for gpu_id, health in healths.items():
        gpu = _known(work.state, gpu_id)
        if gpu.health is not health:
            by_node[work.state.snapshot.fleet.gpu_home[gpu_id]].append(replace(gpu, health=health))
    for node_id, gpus in by_node.items():
        work.tx.fleet.save_gpus(gpus)
        work.change(PutNode(node=_with_gpus(work.state.snapshot.nodes[node_id], gpus)))


def _with_gpus(node: Node, gpus: Sequence[Gpu]) -> Node:
    changed = {gpu.id: gpu for gpu in gpus}
    return replace(node, gpus=tuple(changed.get(gpu.id, gpu) for gpu in node.gpus))


def _detail(state: State, condition: Condition, was: GpuHealth) -> dict[str, Any]:
    fresh = condition.fresh_evidence or condition.evidence[-1:]
    return {
        "node": state.snapshot.fleet.gpu_home.get(condition.gpu_id, ""),
        "was": was,
        "evidence": [{"sign": item.sign, "text": item.text, "advice": item.advice} for item in fresh],
        "jobs": [job.id for job in holding_jobs(state, [condition.gpu_id])],
    }


def _latest_fault(condition: Condition) -> str:
    return condition.evidence[-1].text if condition.evidence else "no evidence was kept"


def _known(state: State, gpu_id: str) -> Gpu:
    gpu = find_gpu(state, gpu_id)
    if gpu is None:
        raise NotFound(f"there is no GPU {gpu_id!r}", field="gpu")
    return gpu
