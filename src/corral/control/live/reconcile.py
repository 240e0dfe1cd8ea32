"""Reconciling: bring the store and an engine into agreement.

An engine reports events of single attempts (`report`), and every few seconds everything that it observes: its nodes and
all its attempts (`reconcile`). The store says which attempts should run. Every difference has one repair: an attempt
that the engine does not know is launched again, or recorded as lost; an attempt that no job needs is stopped; an end
that the store does not have is recorded; a node that is not reported is down, and its jobs are requeued. So a crash of
the server or of the engine at any point is repaired by the next observation.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from corral.control.datasets.operations import commit_outputs
from corral.control.fleet.node_actions import effective_state, instruct_engine
from corral.control.live import restored_store
from corral.control.live.state import without_held
from corral.control.live.unit_of_work import SYSTEM, Work
from corral.control.monitoring.gpu_health import forget
from corral.control.ports import AttemptPhase, AttemptStatus, Observation, Withholding
from corral.control.scheduling.hybrid_share import keep_shares
from corral.control.workbenches.workbenches import explained
from corral.core.jobs.lifecycle import NOT_TAKEN, Ended, Launch, Stop, StopRequested, Up, message_when_taken
from corral.core.model import EndReason, Job, JobKind, JobState, Node, NodeState, job_of_attempt
from corral.core.scheduling.placement.search import could_ever_fit
from corral.core.snapshot.changes import PutNode

log = logging.getLogger("corral.control")

#: How long a job avoids a node that it lost.
SETTLE_SECONDS = 60.0


def report(work: Work, status: AttemptStatus) -> None:
    """An engine reports that an attempt runs or has ended. Outdated and repeated reports change nothing."""
    job = _present_job(work, status.attempt_id)
    if job is None:
        if status.phase is AttemptPhase.ENDED:
            work.effects.recorded_ends.append(status.attempt_id)
            work.state.unreadable_held.pop(status.attempt_id, None)
        return
    if status.phase is AttemptPhase.STARTING:
        return
    is_over = status.phase is AttemptPhase.ENDED
    if (began_at := status.began_at if is_over else status.at) is not None and job.started_at is None:
        job = work.jobs.advance(job, Up(at=began_at))
        detail: dict[str, Any] = {"attempt": job.attempt, "queue": job.queue}
        if not job.attained_seconds and job.aged_from is not None and job.started_at is not None:
            detail["submitted_seconds"] = max(0.0, job.started_at - job.aged_from)
        work.record(SYSTEM, "job.running", job.id, owner=job.notified_user, detail=detail)
    if is_over:
        _end(work, job, status)


def not_taken(work: Work, attempt_id: str, reason: str) -> None:
    """Show in the job's message why its engine cannot take the launch yet; an empty reason ends the waiting."""
    job = _present_job(work, attempt_id)
    if job is None or job.state is not JobState.STARTING:
        return
    message = f"{NOT_TAKEN}: {reason}" if reason else message_when_taken(job)
    if message != job.message:
        work.jobs.edit(job, replace(job, message=message))


def reconcile(work: Work, cluster: str, observation: Observation, observed_at: float) -> None:
    """Updates the store from an observation, and sends the engine the effects that it has missed.

    `observed_at` is a time before the observation was made: attempts that are younger may be absent from it.
    """
    sync_nodes(work, cluster, observation.nodes)
    if observation.withheld is not None:
        mine = tuple(node for node in observation.nodes if node.id in work.state.observed[cluster])
        _agree_on_withheld(work, mine, observation.withheld, observed_at)
    observed = {status.attempt_id: status for status in observation.attempts}
    unheld = []
    for status in observation.attempts:
        report(work, status)
        if status.attempt_id in work.state.unreadable_held:
            continue  # its job has a damaged row: it keeps running until an operator repairs the row
        if status.phase is not AttemptPhase.ENDED and _present_job(work, status.attempt_id) is None:
            unheld.append(status.attempt_id)
    later = restored_store.jobs_with_later_attempts(work, unheld)
    for job in [job for job in work.state.snapshot.jobs.values() if job.state.holds_resources]:
        if job.attempt_id not in observed and _runs_on(work, job, cluster):
            _missing(work, job, observed_at, is_older=job.id in later)
        elif job.state is JobState.STOPPING and job.attempt_id in observed:
            _stop_again(work, job)
    for attempt_id in unheld:
        restored_store.end_unheld(work, attempt_id, cluster)
    _leave_lost_nodes(work, cluster)
    _drop_outdated_avoids(work, observed_at)
    for attempt_id, until in observation.overran.items():
        _charge(work, attempt_id, until)


def _charge(work: Work, attempt_id: str, until: float) -> None:
    """Count the GPUs that the attempt held after its reported end."""
    for record in work.tx.usage.of_job(job_of_attempt(attempt_id)[0]):
        if record.attempt_id == attempt_id and record.ended_at is not None and record.ended_at < until:
            work.attempts.charge_overrun(record, until)


def sync_nodes(work: Work, cluster: str, nodes: tuple[Node, ...]) -> None:
    """Store the observed nodes; decisions of operators and health checks about them are kept.

    A node that is not reported any more is down. It is not deleted: its GPUs have pools and a history, and it may be
    back in an hour. Only an operator can delete it.
    """
    nodes = _without_namesakes(work, cluster, nodes)
    known = {node.id: node for node in work.state.snapshot.nodes.values() if node.cluster == cluster}
    names = frozenset(node.id for node in nodes)
    if work.state.observed.get(cluster) != names:  # an observation without news is no change of the state
        work.state.observed[cluster] = names
    gone = [
        replace(node, state=NodeState.DOWN) for node in known.values() if node.id not in work.state.observed[cluster]
    ]
    changed = [*_changed(work, cluster, nodes, known), *(node for node in gone if node != known.get(node.id))]
    for node in changed:
        work.change(PutNode(node=node))
        _record_node(work, known.get(node.id), node)
        _forget_replaced(work, known.get(node.id), node)
    if changed:
        work.tx.fleet.save_nodes(changed)
        keep_shares(work)


def _changed(work: Work, cluster: str, nodes: tuple[Node, ...], known: Mapping[str, Node]) -> list[Node]:
    """The observed nodes that differ from the stored ones. A node that is observed as before, and was not changed
    since, is not compared again: most nodes of a large fleet are."""
    state, changed = work.state, []
    for node in nodes:
        before = known.get(node.id)
        seen = state.compared.get(node.id)
        if seen is not None and seen[1] is before and (seen[0] is node or seen[0] == node):
            continue
        after = without_held(_merged(before, replace(node, cluster=cluster)), state.unreadable_held)
        if after != before:
            changed.append(after)
        if not state.unreadable_held:
            state.compared[node.id] = (node, after if before is None or after != before else before)
    return changed


def _without_namesakes(work: Work, cluster: str, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Names of nodes are unique. The cluster that reported a name first keeps it; a second node of that name is left
    out."""
    others = {name for other, names in work.state.observed.items() if other != cluster for name in names}
    left_out = frozenset(node.id for node in nodes if node.id in others)
    if left_out != work.state.left_out.get(cluster, frozenset()):
        for name in sorted(left_out):
            log.warning("node %s of cluster %s is left out: another cluster has a node of that name", name, cluster)
        work.state.left_out[cluster] = left_out
    return tuple(node for node in nodes if node.id not in left_out)


def _agree_on_withheld(
    work: Work, nodes: tuple[Node, ...], withheld: Mapping[str, Withholding], observed_at: float
) -> None:
    """The last decision about a node counts: of an operator of corral, or of an administrator of the engine itself.
    Decisions that the engine did not get, because a server died, are sent now."""
    for name in [node.id for node in nodes]:
        if work.state.spoken_at.get(name, 0.0) >= observed_at:
            continue
        node, found = work.state.snapshot.nodes[name], withheld.get(name)
        is_withheld = node.withheld is not NodeState.READY
        if is_withheld and found is None:
            instruct_engine(work, node)
        elif not is_withheld and found is not None:
            instruct_engine(work, node, force=False)
        elif found is Withholding.OVERRULED:
            seen = next(node for node in nodes if node.id == name)
            changed = replace(node, withheld=NodeState.READY, state=seen.state)
            work.tx.fleet.save_nodes([changed])
            work.change(PutNode(node=changed))
            work.record(SYSTEM, "node.uncordoned", name, detail={"by": node.cluster, "reason": seen.reason})
            instruct_engine(work, changed, force=False)


def _merged(known: Node | None, observed: Node) -> Node:
    if known is None:
        return observed
    # A GPU of another model under an old name is a new GPU: a pool has one model.
    kept = {(gpu.id, gpu.model): gpu for gpu in known.gpus}
    gpus = tuple(
        replace(gpu, health=old.health, pool=old.pool, next_pool=old.next_pool)
        if (old := kept.get((gpu.id, gpu.model)))
        else gpu
        for gpu in observed.gpus
    )
    state = effective_state(observed.state, known.withheld)
    return replace(
        observed, gpus=gpus, state=state, withheld=known.withheld, load=known.load, gpu_loads=known.gpu_loads
    )


def _record_node(work: Work, before: Node | None, node: Node) -> None:
    is_down = node.state is NodeState.DOWN
    if before is None:
        work.record(SYSTEM, "node.added", node.id, detail={"gpus": len(node.gpus), "cluster": node.cluster})
    was_down = before is not None and before.state is NodeState.DOWN
    if is_down and not was_down:
        jobs = sorted(job.id for job in work.state.snapshot.jobs.values() if node.id in _nodes_of(job))
        work.record(SYSTEM, "node.down", node.id, detail={"gpus": len(node.gpus), "jobs": jobs})
    elif was_down and not is_down:
        work.record(SYSTEM, "node.up", node.id, detail={"gpus": len(node.gpus), "state": node.state})


def _drop_outdated_avoids(work: Work, observed_at: float) -> None:
    """A job that lost its node avoids the node for SETTLE_SECONDS, and then while the node is down. A longer time would
    let the job wait for ever where there is no other node."""
    nodes = work.state.snapshot.nodes
    for job in list(work.state.snapshot.jobs.values()):
        if job.avoid_nodes and job.state is JobState.QUEUED and (job.queued_at or 0.0) + SETTLE_SECONDS <= observed_at:
            avoid = tuple(name for name in job.avoid_nodes if name in nodes and nodes[name].state is NodeState.DOWN)
            if avoid != job.avoid_nodes:
                work.jobs.edit(job, replace(job, avoid_nodes=avoid))


def _forget_replaced(work: Work, before: Node | None, node: Node) -> None:
    """Drop the health of GPUs that were replaced by other devices."""
    if before is not None:
        there = {(gpu.id, gpu.model) for gpu in node.gpus}
        forget(work, [gpu.id for gpu in before.gpus if (gpu.id, gpu.model) not in there])


def _leave_lost_nodes(work: Work, cluster: str) -> None:
    """Stop jobs on nodes that are down, so that they are requeued, unless the engine has ended them itself."""
    down = {
        node.id
        for node in work.state.snapshot.nodes.values()
        if node.cluster == cluster and node.state is NodeState.DOWN
    }
    if not down:
        return
    for job in list(work.state.snapshot.jobs.values()):
        lost = sorted(down.intersection(_nodes_of(job)))
        if lost and (job.state in (JobState.STARTING, JobState.RUNNING) or job.is_resizing):
            message = f"node {', '.join(lost)} is down"
            stop = StopRequested(at=work.now, reason=EndReason.NODE_LOST, failed=tuple(lost), message=message)
            work.jobs.advance(job, stop)
            detail = {"attempt": job.attempt, "reason": EndReason.NODE_LOST, "nodes": lost, "message": message}
            work.record(SYSTEM, "job.moving", job.id, owner=job.notified_user, detail=detail)


def _end(work: Work, job: Job, status: AttemptStatus) -> None:
    if job.kind is JobKind.WORKBENCH:
        status = explained(work.jobs.spec(job.id), status)
    reason = status.reason or EndReason.LOST
    ended = work.jobs.advance(
        job,
        Ended(
            at=max(status.at, job.started_at or 0.0),
            reason=reason,
            exit_code=status.exit_code,
            message=status.message,
            failed=status.failed,
        ),
    )
    if ended.state is JobState.QUEUED and ended.retries > job.retries:
        ended = _with_a_place(work, ended)
    detail = {
        "attempt": job.attempt,
        "reason": job.stopping_for or reason,
        "exit_code": status.exit_code,
        "message": job.message if job.stopping_for and job.message else status.message,
        "state": ended.state,
    }
    if ended.state is JobState.COMPLETED and ended.ended_at is not None and ended.aged_from is not None:
        detail |= {"queue": ended.queue, "completion_seconds": max(0.0, ended.ended_at - ended.aged_from)}
    action = "job.requeued" if ended.state is JobState.QUEUED else f"job.{ended.state}"
    if ended.state is JobState.STARTING:
        action = "job.went-on" if job.is_moving else "job.resized"
        detail |= {"next_attempt": ended.attempt, "gpus": ended.request.gpus, "nodes": list(_nodes_of(ended))}
    work.record(SYSTEM, action, job.id, owner=job.notified_user, detail=detail)
    if ended.state is JobState.COMPLETED and (outputs := work.jobs.spec(job.id).commit_outputs):
        commit_outputs(work, ended, outputs)


def _with_a_place(work: Work, job: Job) -> Job:
    """A job that failed on the only node that can run it avoids no node."""
    queue = work.state.snapshot.queues.get(job.queue)
    if queue is None or not job.avoid_nodes or could_ever_fit(work.state.snapshot.fleet, job, queue.pool):
        return job
    return work.jobs.edit(job, replace(job, avoid_nodes=()))


def _missing(work: Work, job: Job, observed_at: float, *, is_older: bool = False) -> None:
    """The engine does not know an attempt that the store has; `is_older` if it runs a later attempt of the job. An
    attempt of a restored backup may have run elsewhere, and is not launched."""
    if (job.started_at or job.allocated_at or 0.0) >= observed_at:
        return
    is_older = is_older or restored_store.is_from_backup(work, job)
    if job.state is JobState.STARTING and not is_older and not _down_nodes_of(work, job):
        # The server died between the plan and the launch, or the launch is under way. Launching is idempotent.
        work.effects.instructions.append(Launch(attempt_id=job.attempt_id))
    elif job.state is JobState.STOPPING and job.started_at is None:
        message = "it was stopped before it was launched"
        ended = AttemptStatus(
            attempt_id=job.attempt_id,
            phase=AttemptPhase.ENDED,
            at=work.now,
            reason=job.stopping_for,
            message=message,
        )
        _end(work, job, ended)
    else:
        lost = _down_nodes_of(work, job)
        reason, message = EndReason.LOST, "its engine does not know it any more"
        if lost:
            reason, message = EndReason.NODE_LOST, f"node {', '.join(lost)} is down"
        ended = AttemptStatus(
            attempt_id=job.attempt_id,
            phase=AttemptPhase.ENDED,
            at=work.now,
            reason=reason,
            message=message,
            failed=tuple(lost),
        )
        _end(work, job, ended)


def _stop_again(work: Work, job: Job) -> None:
    """Send the stop again: the server that decided it may have died before. Stopping is idempotent."""
    if job.attempt_id not in work.state.stops_sent:
        work.state.stops_sent[job.attempt_id] = None
        work.effects.instructions.append(Stop(attempt_id=job.attempt_id, grace_seconds=job.grace_seconds))


def _present_job(work: Work, attempt_id: str) -> Job | None:
    """The job whose present attempt this is, while the job holds resources."""
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


def _nodes_of(job: Job) -> list[str]:
    return [grant.node for grant in job.allocation.grants] if job.allocation is not None else []


def _down_nodes_of(work: Work, job: Job) -> list[str]:
    nodes = work.state.snapshot.nodes
    return [name for name in _nodes_of(job) if name in nodes and nodes[name].state is NodeState.DOWN]
