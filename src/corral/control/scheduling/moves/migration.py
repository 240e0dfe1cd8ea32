"""Moves of a running job to another node, requested by its owner or an operator."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from corral.control.errors import Invalid, WrongState
from corral.control.jobs.jobs import own_job
from corral.control.live.unit_of_work import Caller, Work
from corral.control.scheduling.moves.job_move import begin_move
from corral.core.counts import counted
from corral.core.jobs.allocation_change import asking_for
from corral.core.model import Allocation, Job, JobKind, JobState
from corral.core.scheduling.backfill.planned_allocation import end_if_started
from corral.core.scheduling.plan.plan import PreemptionRule
from corral.core.scheduling.reservations.reservations import Reserved, find_open_place


def migrate(work: Work, caller: Caller, ref: str, to: str | None = None) -> Job:
    """Move a running job to this node, or to the best other node, through a checkpoint."""
    job, after = target_of(work, caller, ref, to)
    detail = f"migration by {caller.name}: from {_node_of(job)} to {after.grants[0].node}"
    begin_move(work, caller, job, after, rule=PreemptionRule.MIGRATION, detail=detail)
    return work.jobs.get(job.id) or job


def migrated(work: Work, caller: Caller, ref: str, to: str | None = None) -> Job:
    """The job as it would run after the move; nothing is changed."""
    job, after = target_of(work, caller, ref, to)
    return asking_for(replace(job, allocation=after), after)


def target_of(work: Work, caller: Caller, ref: str, to: str | None) -> tuple[Job, Allocation]:
    """The job with its new place: free GPUs of its present model that neither a reservation nor a planned start of a
    waiting job needs."""
    job = own_job(work, caller, ref)
    if job.state is not JobState.RUNNING or job.allocation is None:
        raise WrongState(f"job {job.id} is {job.state}: only a running one can be migrated", state=job.state)
    if job.kind is JobKind.WORKBENCH:
        raise WrongState(f"{job.id} is a workbench: stop it and start it again to change its node", state=job.state)
    if len(job.allocation.grants) > 1:
        raise WrongState(
            f"job {job.id} runs on {counted(len(job.allocation.grants), 'node')}: only jobs on one node are migrated; "
            f"corral requeue {job.id} places it again",
            state=job.state,
        )
    snapshot, here = work.state.snapshot, _node_of(job)
    if to is not None and to not in snapshot.nodes:
        raise Invalid(f"there is no node {to!r}", field="to")
    if to == here:
        raise Invalid(f"job {job.id} runs on {here} already", field="to")
    shut = {here} if to is None else snapshot.nodes.keys() - {to}
    found = place_elsewhere(work, job, shut)
    if found is None:
        where = "no other node has" if to is None else f"node {to} does not have"
        raise WrongState(
            f"{where} free what job {job.id} holds on {here}, without what is reserved or planned for waiting jobs",
            state=job.state,
        )
    return job, found


def place_elsewhere(work: Work, job: Job, shut: Collection[str]) -> Allocation | None:
    """A free place for a running job outside of these nodes: GPUs of its present model that neither a reservation nor a
    planned start of a waiting job needs."""
    assert job.allocation is not None
    snapshot = work.state.snapshot
    queue = snapshot.queues.get(job.queue)
    if queue is None:
        return None
    request = replace(job.request, models=(job.allocation.model,)) if job.request.wants_gpu else job.request
    searched = replace(job, request=request, avoid_nodes=(*job.avoid_nodes, *shut))
    with snapshot.trial() as trial:
        for planned in work.state.plan.planned:
            trial.hold(planned.job_id, planned.held)
        reserved = Reserved(snapshot, work.now)
        return find_open_place(reserved, snapshot.fleet, searched, queue, end_if_started(job, work.now))


def _node_of(job: Job) -> str:
    assert job.allocation is not None
    return job.allocation.grants[0].node
