"""Carrying out a defragmentation: approved moves of running jobs, a few at a time, each with a receipt.

The plan is made from a copy of the snapshot (`core.reports.analysis.defragmentation`); each move is checked again when
it begins, and left out if its job or its place has changed. Moves that have not begun can be cancelled. The latest run
is one value in the store: a restarted server goes on with it.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum

from corral.control.errors import Invalid, NotFound, WrongState
from corral.control.live.unit_of_work import Caller, Work
from corral.control.people.operators import require_operator
from corral.control.ports import Transaction
from corral.control.scheduling.moves.job_move import begin_move
from corral.core.fleet.free_gpus import closed_gpus
from corral.core.model import Allocation, Job, JobState
from corral.core.reports.analysis.model import DefragmentationPlan, Move
from corral.core.scheduling.plan.plan import PreemptionRule
from corral.core.snapshot.codec import from_plain, to_plain

KEY = "defragmentation"
#: Jobs that are moved at the same time: each of them saves to the same storage.
AT_ONCE = 2


class MoveState(StrEnum):
    WAITING = "waiting"
    MOVING = "moving"
    DONE = "done"
    #: the job or its place has changed
    LEFT_OUT = "left-out"
    CANCELLED = "cancelled"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunMove:
    job_id: str
    job_name: str
    user: str
    from_node: str
    to_node: str
    before: Allocation
    after: Allocation
    state: MoveState = MoveState.WAITING
    #: the attempt that was asked to save and end
    attempt: int = 0
    receipt: int | None = None
    #: why it was left out, or what became of the job
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class DefragmentationRun:
    started_at: float
    started_by: str
    moves: tuple[RunMove, ...]
    ended_at: float | None = None

    @property
    def is_over(self) -> bool:
        return self.ended_at is not None


def latest(tx: Transaction) -> DefragmentationRun | None:
    text = tx.meta.get(KEY)
    return None if text is None else from_plain(DefragmentationRun, json.loads(text))


def start(
    work: Work,
    caller: Caller,
    plan: DefragmentationPlan,
    *,
    jobs: Collection[str] | None = None,
    include_unsaved: bool = False,
) -> DefragmentationRun:
    """Approve moves of a plan: those of these jobs, or all. A job that never saved is only moved if that is said."""
    require_operator(caller, "defragment the cluster")
    running = latest(work.tx)
    if running is not None and not running.is_over:
        raise WrongState("a defragmentation is under way: cancel it, or wait for its end", state="running")
    missing = sorted(set(jobs or ()) - {move.job_id for move in plan.moves})
    if missing:
        raise Invalid(f"the present plan does not move {', '.join(missing)}: see the preview", field="jobs")
    chosen = [move for move in plan.moves if jobs is None or move.job_id in jobs]
    movable = [move for move in chosen if include_unsaved or _has_saved(work, move)]
    if not movable:
        reason = "no small set of moves would free a whole node"
        if chosen:
            reason = "none of these jobs has saved a checkpoint: it would lose all its work; include_unsaved moves it"
        raise WrongState(reason, state="nothing to move")
    run = DefragmentationRun(
        started_at=work.now, started_by=caller.name, moves=tuple(_waiting(move) for move in movable)
    )
    work.record(caller, "defragmentation.started", KEY, detail={"jobs": [move.job_id for move in movable]})
    return _advanced(work, run)


def go_on(work: Work) -> DefragmentationRun | None:
    """Follow the moves that are under way, and begin the next ones."""
    run = latest(work.tx)
    return run if run is None or run.is_over else _advanced(work, run)


def cancel(work: Work, caller: Caller) -> DefragmentationRun:
    """Cancel the moves that have not begun; those under way are completed."""
    require_operator(caller, "defragment the cluster")
    run = latest(work.tx)
    if run is None:
        raise NotFound("no defragmentation was started yet", field="defragmentation")
    if run.is_over:
        raise WrongState("the defragmentation is over: nothing is left to cancel", state="over")
    undone = [move.job_id for move in run.moves if move.state is MoveState.WAITING]
    moves = tuple(
        replace(move, state=MoveState.CANCELLED, detail=f"cancelled by {caller.name}")
        if move.state is MoveState.WAITING
        else move
        for move in run.moves
    )
    work.record(caller, "defragmentation.cancelled", KEY, detail={"jobs": undone})
    return _advanced(work, replace(run, moves=moves))


def _advanced(work: Work, run: DefragmentationRun) -> DefragmentationRun:
    moves = [_followed(work, move) if move.state is MoveState.MOVING else move for move in run.moves]
    under_way = sum(move.state is MoveState.MOVING for move in moves)
    for place, move in enumerate(moves):
        if move.state is MoveState.WAITING and under_way < AT_ONCE:
            moves[place] = _begun(work, move, run.started_by)
            under_way += moves[place].state is MoveState.MOVING
    is_over = not any(move.state in (MoveState.WAITING, MoveState.MOVING) for move in moves)
    after = replace(run, moves=tuple(moves), ended_at=work.now if is_over else None)
    if after != run or latest(work.tx) != after:
        work.tx.meta.put(KEY, json.dumps(to_plain(after)))
    if is_over:
        done = [move.job_id for move in moves if move.state is MoveState.DONE]
        work.record(Caller(name=run.started_by), "defragmentation.ended", KEY, detail={"moved": done})
    return after


def _followed(work: Work, move: RunMove) -> RunMove:
    job = work.jobs.get(move.job_id)
    if job is None or job.state.is_ended or job.state is JobState.QUEUED:
        return replace(move, state=MoveState.DONE, detail="its job ended, or was queued again, while it was moved")
    if job.attempt > move.attempt:
        return replace(move, state=MoveState.DONE)
    return move


def _begun(work: Work, move: RunMove, by: str) -> RunMove:
    job = work.jobs.get(move.job_id)
    problem = _obstacle(work, job, move)
    if job is None or problem:
        return replace(move, state=MoveState.LEFT_OUT, detail=problem)
    detail = f"defragmentation by {by}: from {move.from_node} to {move.to_node}, so that whole nodes are free"
    rule = PreemptionRule.DEFRAGMENTATION
    receipt = begin_move(work, Caller(name=by), job, move.after, rule=rule, detail=detail)
    return replace(move, state=MoveState.MOVING, attempt=job.attempt, receipt=receipt.id)


def _obstacle(work: Work, job: Job | None, move: RunMove) -> str:
    """Why the job cannot be moved as planned; empty if it can."""
    if job is None or job.state is not JobState.RUNNING:
        return "its job does not run any more"
    if job.allocation != move.before:
        return "its job holds other GPUs by now"
    snapshot = work.state.snapshot
    closed = closed_gpus(snapshot, work.now, job.user)
    for grant in move.after.grants:
        place = snapshot.fleet.place_of.get(grant.node)
        if place is None:
            return f"node {grant.node} is gone"
        slot = snapshot.fleet.slots[place]
        usable = {gpu for gpus in slot.domains.values() for gpu in gpus} - closed
        if any(gpu not in usable or slot.free_milli[gpu] < grant.gpu_milli for gpu in grant.gpus):
            return f"its place on {grant.node} is not free any more"
        if slot.free_cpu_milli < grant.cpu_milli or slot.free_memory_bytes < grant.memory_bytes:
            return f"{grant.node} has too few CPUs or too little memory left"
    return ""


def _has_saved(work: Work, move: Move) -> bool:
    job = work.jobs.get(move.job_id)
    return job is not None and job.preemptible and job.checkpointed_at is not None


def _waiting(move: Move) -> RunMove:
    return RunMove(
        job_id=move.job_id,
        job_name=move.job_name,
        user=move.user,
        from_node=move.from_node,
        to_node=move.to_node,
        before=move.before,
        after=move.after,
    )
