"""Drains: a node gets no new jobs, and becomes empty as its jobs end or, from a given time on, as they are displaced.

A displaced job is asked to save. It continues on another node that has room for it now, which is held for it; otherwise
it is queued again. Each displaced job gets a receipt.
"""

from __future__ import annotations

from dataclasses import replace

from corral.control.fleet import node_actions
from corral.control.fleet.draining.drain_records import Drain, store_drains
from corral.control.live.state import State
from corral.control.live.unit_of_work import SYSTEM, Caller, Work
from corral.control.scheduling.moves.job_move import begin_move, begin_requeue
from corral.control.scheduling.moves.migration import place_elsewhere
from corral.core.model import Job, JobKind, JobState, Node, NodeState
from corral.core.scheduling.plan.plan import PreemptionRule


def drain(
    work: Work, caller: Caller, node_id: str, empty_by: float | None = None, *, window: str | None = None
) -> Node:
    """Drain a node. Repeated with another time, the new time counts; a time in the past means now."""
    node = node_actions.drain(work, caller, node_id)
    known = work.state.drains.get(node_id)
    begun = known or Drain(node=node_id, started_at=work.now, started_by=caller.name)
    wanted = replace(
        begun,
        started_by=caller.name,
        empty_by=None if empty_by is None else max(empty_by, work.now),
        window=begun.window if window is None else window,
    )
    if known is None or known.empty_by != empty_by or known.window != wanted.window:
        _keep(work, wanted)
        if empty_by is not None:
            work.record(caller, "node.drain-planned", node_id, detail={"empty_by": wanted.empty_by})
    go_on(work)
    return work.state.snapshot.nodes.get(node_id, node)


def is_due(state: State, now: float) -> bool:
    """Whether `go_on` would change anything."""
    return any(
        _has_ended(state, record) or _is_empty_now(state, record) or _left(state, record, now) for record in _all(state)
    )


def go_on(work: Work) -> None:
    """Displace the jobs of nodes that must be empty by now, and record the nodes that have become empty."""
    for record in _all(work.state):
        if _has_ended(work.state, record):
            del work.state.drains[record.node]
            store_drains(work.tx, work.state.drains)
            continue
        for job in _left(work.state, record, work.now):
            _displace(work, record, job)
        if _is_empty_now(work.state, record):
            _keep(work, replace(record, drained_at=work.now))
            detail = {"by": record.started_by, "seconds": round(work.now - record.started_at)}
            work.record(SYSTEM, "node.drained", record.node, owner=record.started_by, detail=detail)


def hand_over(work: Work, node_id: str, window: str) -> None:
    """Another maintenance window keeps the node drained from now on."""
    _keep(work, replace(work.state.drains[node_id], window=window))


def jobs_on(state: State, node_id: str) -> list[Job]:
    return [job for job in state.snapshot.jobs.values() if node_actions.is_on(job, node_id)]


def _all(state: State) -> list[Drain]:
    return list(state.drains.values())


def _has_ended(state: State, drain: Drain) -> bool:
    """The node was removed, or is withheld in another way or not at all by now."""
    node = state.snapshot.nodes.get(drain.node)
    return node is None or node.withheld is not NodeState.DRAINING


def _is_empty_now(state: State, drain: Drain) -> bool:
    return drain.drained_at is None and not jobs_on(state, drain.node)


def _left(state: State, drain: Drain, now: float) -> list[Job]:
    """Jobs that must leave the node, and were not asked to yet."""
    if drain.empty_by is None or now < drain.empty_by or drain.drained_at is not None:
        return []
    return [job for job in jobs_on(state, drain.node) if job.state in (JobState.STARTING, JobState.RUNNING)]


def _displace(work: Work, drain: Drain, job: Job) -> None:
    caller, rule = Caller(name=drain.started_by), PreemptionRule.DRAIN
    drained = f"node {drain.node} is drained by {drain.started_by}"
    if drain.window:
        drained += f" for maintenance ({drain.window})"
    assert job.allocation is not None
    can_move = job.state is JobState.RUNNING and job.kind is not JobKind.WORKBENCH and len(job.allocation.grants) == 1
    place = place_elsewhere(work, job, {drain.node}) if can_move else None
    if place is None:
        detail = f"{drained}: the job is queued again"
        begin_requeue(work, caller, job, rule=rule, detail=detail)
        return
    detail = f"{drained}: the job continues on {place.grants[0].node}"
    begin_move(work, caller, job, place, rule=rule, detail=detail)


def _keep(work: Work, drain: Drain) -> None:
    work.state.drains[drain.node] = drain
    store_drains(work.tx, work.state.drains)
