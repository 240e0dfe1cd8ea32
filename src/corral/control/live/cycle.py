"""One scheduling cycle of the live system: plan from the snapshot, and write the plan to the transaction.

The engines get their orders after the commit.
"""

from __future__ import annotations

from collections.abc import Collection

from corral.control.live.journal import JournalWriter
from corral.control.live.unit_of_work import SYSTEM, Work
from corral.control.scheduling.preemptions import preempt
from corral.core.jobs.lifecycle import Planned, ResizeRequested
from corral.core.model import WHOLE, JobState
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.plan.plan import Plan, Resize
from corral.core.scheduling.plan.plan_check import PlanRejected, check_plan
from corral.core.snapshot.changes import PutJob, last_node_of
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.journal import digest_of


def run_cycle(work: Work, journal: JournalWriter, left_out: Collection[str] = ()) -> Plan:
    """Plan, and apply the plan to the jobs. Costs next to nothing when no job can start.

    Jobs that wait in queues that are `left_out` are not planned. Raises PlanRejected before any part of the plan is
    applied.
    """
    state = work.state
    snapshot = _without(state.snapshot, left_out) if left_out else state.snapshot
    plan = schedule(snapshot, work.now)
    if problems := check_plan(snapshot, plan):
        raise PlanRejected(problems, digest_of(snapshot.contents()))
    if plan.starts or plan.resizes or plan.preemptions:
        work.tx.cycles.append(journal.entry_of(state, snapshot, plan) if left_out else journal.entry(state, plan))
    for start in plan.starts:
        job = work.jobs.advance(state.snapshot.jobs[start.job_id], Planned(at=work.now, allocation=start.allocation))
        work.record(
            SYSTEM,
            "job.planned",
            job.id,
            owner=job.notified_user,
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
        # As after a restart, when only the running jobs are known: the youngest of those that started together.
        last = max(plan.starts, key=lambda start: state.snapshot.jobs[start.job_id].serial)
        work.change(last_node_of(last.allocation))
    state.plan = plan
    state.needs_cycle = False
    return plan


def _resize(work: Work, resize: Resize) -> None:
    """Resize a job, and record the cause, the jobs that need the GPUs, and the work that may be lost."""
    before = work.state.snapshot.jobs[resize.job_id]
    event = ResizeRequested(at=work.now, allocation=resize.allocation, ceiling=resize.ceiling)
    job = work.jobs.advance(before, event)
    detail = {
        "attempt": job.attempt,
        "cause": resize.cause,
        "from_gpus": before.request.total_gpu_milli // WHOLE,
        "to_gpus": len(resize.allocation.gpus),
        "node": resize.allocation.grants[0].node,
        "for": list(resize.for_jobs),
        "utilization": before.utilization,
        "checkpointed_at": before.checkpointed_at,
    }
    work.record(SYSTEM, "job.resizing", job.id, owner=job.user, detail=detail)


def failing_queues(snapshot: ClusterSnapshot, now: float) -> dict[str, str]:
    """The queues that cannot be planned, with the error. Each queue is added to those that can be planned, and left out
    again if planning fails. Plans once for every queue in which jobs wait."""
    waiting = {key.queue for key in snapshot.lines}
    failing: dict[str, str] = {}
    out = set(waiting)
    for queue in sorted(waiting):
        try:
            reduced = _without(snapshot, out - {queue})
            if problems := check_plan(reduced, schedule(reduced, now)):
                raise PlanRejected(problems, "")
        except Exception as error:  # noqa: BLE001 - every error of planning is reported
            failing[queue] = f"{type(error).__name__}: {error}"
        else:
            out.discard(queue)
    return failing


def _without(snapshot: ClusterSnapshot, queues: Collection[str]) -> ClusterSnapshot:
    """A copy of the snapshot without the jobs that wait in these queues."""
    reduced = ClusterSnapshot()
    reduced.apply(
        change
        for change in snapshot.contents()
        if not (isinstance(change, PutJob) and change.job.state is JobState.QUEUED and change.job.queue in queues)
    )
    return reduced
