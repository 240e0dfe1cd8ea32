"""One cycle of the live system:

Decide from the picture, then write what was decided. Acting on it comes after the commit.
"""

from __future__ import annotations

from collections.abc import Collection

from corral.control.live.journal import JournalWriter
from corral.control.live.unit_of_work import SYSTEM, Work
from corral.control.scheduling.preemptions import preempt
from corral.core.jobs.lifecycle import Planned, ResizeRequested
from corral.core.model import JobState
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.plan.plan import Plan, Resize
from corral.core.scheduling.plan.plan_check import PlanRejected, check_plan
from corral.core.snapshot.changes import PutJob, PutLastNode
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot


def run_cycle(work: Work, journal: JournalWriter, left_out: Collection[str] = ()) -> Plan:
    """Plan, and let the plan happen to the jobs. Costs next to nothing when nothing can start.

    Jobs that wait in queues that are `left_out` are not planned, as if they were not there. Raises PlanRejected, and
    then nothing of the plan has happened.
    """
    state = work.state
    picture = _without(state.snapshot, left_out) if left_out else state.snapshot
    plan = schedule(picture, work.now)
    if problems := check_plan(picture, plan):
        raise PlanRejected(problems, state.digest.hex())
    if plan.starts or plan.resizes or plan.preemptions:
        work.tx.cycles.append(journal.entry_of(state, picture, plan) if left_out else journal.entry(state, plan))
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


def failing_queues(snapshot: ClusterSnapshot, now: float) -> dict[str, str]:
    """The queues that cannot be planned, with what planning ends with: each is added to those that can, and stays out
    if that fails. Plans once for every queue in which jobs wait."""
    waiting = {key.queue for key in snapshot.lines}
    failing: dict[str, str] = {}
    out = set(waiting)
    for queue in sorted(waiting):
        try:
            picture = _without(snapshot, out - {queue})
            if problems := check_plan(picture, schedule(picture, now)):
                raise PlanRejected(problems, "")
        except Exception as error:  # noqa: BLE001 - whatever planning ends with is what is looked for
            failing[queue] = f"{type(error).__name__}: {error}"
        else:
            out.discard(queue)
    return failing


def _without(snapshot: ClusterSnapshot, queues: Collection[str]) -> ClusterSnapshot:
    """The same picture without those who wait in these queues."""
    picture = ClusterSnapshot()
    picture.apply(
        change
        for change in snapshot.contents()
        if not (isinstance(change, PutJob) and change.job.state is JobState.QUEUED and change.job.queue in queues)
    )
    return picture
