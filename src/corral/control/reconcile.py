"""Bringing what the store says and what an engine observes together:

After every event, and after any crash of either side.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from corral.control.ports import AttemptPhase, AttemptStatus, Observation
from corral.control.work import SYSTEM, Work
from corral.core.changes import DropNode, PutNode
from corral.core.lifecycle import Ended, Launch, Stop, Up
from corral.core.model import EndReason, Job, JobState, Node, NodeState, job_of_attempt

log = logging.getLogger("corral.control")


def report(work: Work, status: AttemptStatus) -> None:
    """An engine says that an attempt is up or over. Old news and repeated news change nothing."""
    job = _present_job(work, status.attempt_id)
    if job is None:
        if status.phase is AttemptPhase.ENDED:
            work.recorded_ends.append(status.attempt_id)
        return
    if status.phase is AttemptPhase.RUNNING:
        if job.started_at is None:
            work.advance(job, Up(at=status.at))
            work.record(SYSTEM, "job.running", job.id, owner=job.user, detail={"attempt": job.attempt})
        return
    _end(work, job, status)


def reconcile(work: Work, cluster: str, observation: Observation, observed_at: float) -> None:
    """Make the store true to what was observed, and tell the engine what it has missed.

    `observed_at` is a time before the observation was made: younger attempts may rightly be absent from it.
    """
    sync_nodes(work, cluster, observation.nodes)
    observed = {status.attempt_id: status for status in observation.attempts}
    for status in observation.attempts:
        report(work, status)
        if status.phase is AttemptPhase.RUNNING and _present_job(work, status.attempt_id) is None:
            log.warning("attempt %s runs although nobody holds it: stopping it", status.attempt_id)
            work.instructions.append(Stop(attempt_id=status.attempt_id, grace_seconds=0.0))
    for job in [job for job in work.state.snapshot.jobs.values() if job.state.holds_resources]:
        if job.attempt_id not in observed and _runs_on(work, job, cluster):
            _missing(work, job, observed_at)


def sync_nodes(work: Work, cluster: str, nodes: tuple[Node, ...]) -> None:
    """Nodes as they are, with what operators and health checks decided about them kept."""
    known = {node.id: node for node in work.state.snapshot.nodes.values() if node.cluster == cluster}
    changed = []
    for node in nodes:
        merged = _merged(known.get(node.id), replace(node, cluster=cluster))
        if merged != known.get(node.id):
            changed.append(merged)
            work.change(PutNode(node=merged))
            if node.id not in known:
                detail = {"gpus": len(node.gpus), "cluster": cluster}
                work.record(SYSTEM, "node.added", node.id, detail=detail)
    gone = known.keys() - {node.id for node in nodes}
    busy = {
        grant.node for job in work.state.snapshot.jobs.values() if job.allocation for grant in job.allocation.grants
    }
    for node_id in sorted(gone):
        if node_id not in busy:
            work.tx.fleet.delete_nodes([node_id])
            work.change(DropNode(id=node_id))
            work.record(SYSTEM, "node.removed", node_id)
        elif known[node_id].state is not NodeState.DOWN:
            # Its jobs decide when it may go: they end as lost, and are tried elsewhere.
            down = replace(known[node_id], state=NodeState.DOWN)
            changed.append(down)
            work.change(PutNode(node=down))
            work.record(SYSTEM, "node.down", node_id)
    if changed:
        work.tx.fleet.save_nodes(changed)


def _merged(known: Node | None, observed: Node) -> Node:
    if known is None:
        return observed
    # A GPU of another model under an old name is a new GPU: a pool has one model.
    kept = {(gpu.id, gpu.model): gpu for gpu in known.gpus}
    gpus = tuple(
        replace(gpu, health=old.health, pool=old.pool) if (old := kept.get((gpu.id, gpu.model))) else gpu
        for gpu in observed.gpus
    )
    withheld = known.state in (NodeState.CORDONED, NodeState.DRAINING) and observed.state is NodeState.READY
    return replace(observed, gpus=gpus, state=known.state if withheld else observed.state, load=known.load)


def _end(work: Work, job: Job, status: AttemptStatus) -> None:
    reason = status.reason or EndReason.LOST
    ended = work.advance(
        job,
        Ended(
            at=max(status.at, job.started_at or 0.0), reason=reason, exit_code=status.exit_code, message=status.message
        ),
    )
    detail = {
        "attempt": job.attempt,
        "reason": job.stopping_for or reason,
        "exit_code": status.exit_code,
        "message": status.message,
        "state": ended.state,
    }
    action = "job.requeued" if ended.state is JobState.QUEUED else f"job.{ended.state}"
    work.record(SYSTEM, action, job.id, owner=job.user, detail=detail)


def _missing(work: Work, job: Job, observed_at: float) -> None:
    """The engine does not know an attempt that the store holds."""
    if (job.started_at or job.allocated_at or 0.0) >= observed_at:
        return
    if job.state is JobState.STARTING:
        # The server died between the plan and the launch, or the launch is on its way: launching twice is one launch.
        work.instructions.append(Launch(attempt_id=job.attempt_id))
    elif job.state is JobState.STOPPING and job.started_at is None:
        message = "it was stopped before it was launched"
        _end(
            work, job, AttemptStatus(attempt_id=job.attempt_id, phase=AttemptPhase.ENDED, at=work.now, message=message)
        )
    else:
        message = "its engine does not know it any more"
        _end(
            work, job, AttemptStatus(attempt_id=job.attempt_id, phase=AttemptPhase.ENDED, at=work.now, message=message)
        )


def _present_job(work: Work, attempt_id: str) -> Job | None:
    """The job that this is the present attempt of, while it holds resources."""
    try:
        job_id, number = job_of_attempt(attempt_id)
    except ValueError:
        return None
    job = work.state.snapshot.jobs.get(job_id)
    return job if job is not None and job.attempt == number and job.state.holds_resources else None


def _runs_on(work: Work, job: Job, cluster: str) -> bool:
    assert job.allocation is not None
    node = work.state.snapshot.nodes.get(job.allocation.grants[0].node)
    return node is None or node.cluster == cluster
