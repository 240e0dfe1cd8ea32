"""One cycle of the live system:

Decide from the picture, then write what was decided. Acting on it comes after the commit.
"""

from __future__ import annotations

from corral.control.journal import JournalWriter
from corral.control.preempting import preempt
from corral.control.work import SYSTEM, Work
from corral.core.changes import PutLastNode
from corral.core.lifecycle import Planned, ResizeRequested
from corral.core.plan import Plan, Resize
from corral.core.plan_check import PlanRejected, check_plan
from corral.core.scheduler import schedule


def run_cycle(work: Work, journal: JournalWriter) -> Plan:
    """Plan, and let the plan happen to the jobs. Costs next to nothing when nothing can start.

    Raises PlanRejected, and then nothing of the plan has happened.
    """
    state = work.state
    plan = schedule(state.snapshot, work.now)
    if problems := check_plan(state.snapshot, plan):
        raise PlanRejected(problems, state.digest.hex())
    if plan.starts or plan.resizes or plan.preemptions:
        work.tx.cycles.append(journal.entry(state, plan))
    for start in plan.starts:
        job = work.advance(state.snapshot.jobs[start.job_id], Planned(at=work.now, allocation=start.allocation))
        work.record(
            SYSTEM,
            "job.planned",
            job.id,
            owner=job.user,
            detail={
                "attempt": job.attempt,
                "queue": job.queue,
                "waited_seconds": max(0.0, work.now - (job.queued_at or work.now)),
                "model": start.allocation.model,
                "nodes": {grant.node: list(grant.gpus) for grant in start.allocation.grants},
            },
        )
    for resize in plan.resizes:
        _resize(work, resize)
    preempt(work, plan.preemptions)
    if plan.starts:
        work.change(PutLastNode(id=plan.starts[-1].allocation.grants[-1].node))
    state.plan = plan
    state.needs_cycle = False
    return plan


def _resize(work: Work, resize: Resize) -> None:
    """Every resize leaves a receipt: why, for whom, and what may be lost."""
    before = work.state.snapshot.jobs[resize.job_id]
    event = ResizeRequested(at=work.now, allocation=resize.allocation, ceiling=resize.ceiling)
    job = work.advance(before, event)
    detail = {
        "attempt": job.attempt,
        "cause": resize.cause,
        "from_gpus": before.request.gpus,
        "to_gpus": len(resize.allocation.gpus),
        "node": resize.allocation.grants[0].node,
        "for": list(resize.for_jobs),
        "utilization": before.utilization,
        "checkpointed_at": before.checkpointed_at,
    }
    work.record(SYSTEM, "job.resizing", job.id, owner=job.user, detail=detail)
