"""Actions that corral takes when an alert fires, if its rule names them.

An action that cannot be carried out is recorded, and changes nothing else: the alert stays, and its channels are
notified.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from corral.control.errors import Refusal, WrongState
from corral.control.fleet import node_actions
from corral.control.jobs import jobs
from corral.control.live.unit_of_work import SYSTEM, Work
from corral.control.monitoring import gpu_health
from corral.core.alerts.facts import Scope
from corral.core.alerts.model import Alert, AlertAction
from corral.core.alerts.signal import Finding
from corral.core.jobs.lifecycle import StopRequested
from corral.core.model import EndReason, GpuHealth, JobState, NodeState
from corral.core.monitoring.health.model import Sign

#: The scopes whose alerts name what an action is done to.
FITTING: dict[AlertAction, frozenset[Scope]] = {
    AlertAction.CORDON_NODE: frozenset({Scope.GPU, Scope.NODE}),
    AlertAction.MARK_GPU: frozenset({Scope.GPU}),
    AlertAction.STOP_JOB: frozenset({Scope.GPU, Scope.NODE}),
    AlertAction.REQUEUE_JOB: frozenset({Scope.GPU, Scope.NODE}),
}


def act(work: Work, alert: Alert, action: AlertAction, found: Finding) -> None:
    """Carry out one action of an alert that just fired."""
    for subject, do in _steps(action, alert, found):
        detail: dict[str, Any] = {"rule": alert.rule, "action": action, "alert": alert.id}
        try:
            do(work)
        except Refusal as refusal:
            # Refusals leave nothing changed, so the rest of the work stands.
            detail["refused"] = refusal.detail
        work.record(SYSTEM, "alert.acted", subject, owner=alert.owner, detail=detail)


def _steps(action: AlertAction, alert: Alert, found: Finding) -> list[tuple[str, Callable[[Work], None]]]:
    """The steps of an action: the subject of each and the function that changes it."""
    match action:
        case AlertAction.CORDON_NODE:
            return [(found.node, partial(_cordon, node_id=found.node))] if found.node else []
        case AlertAction.MARK_GPU:
            return [(alert.subject, partial(_mark, alert=alert))]
        case AlertAction.STOP_JOB:
            return [(job_id, partial(_stop, job_id=job_id)) for job_id in found.jobs]
        case AlertAction.REQUEUE_JOB:
            return [(job_id, partial(_requeue, job_id=job_id)) for job_id in found.jobs]


def _cordon(work: Work, node_id: str) -> None:
    node = work.state.snapshot.nodes.get(node_id)
    if node is not None and node.state is NodeState.READY:
        node_actions.cordon(work, SYSTEM, node_id)


def _mark(work: Work, alert: Alert) -> None:
    gpu_health.mark(
        work, SYSTEM, alert.subject, GpuHealth.SUSPECT, alert.text[: gpu_health.MAX_REASON], sign=Sign.ALERT
    )


def _stop(work: Work, job_id: str) -> None:
    jobs.stop(work, SYSTEM, job_id)


def _requeue(work: Work, job_id: str) -> None:
    """Back to the queue, from its checkpoint, without spending a retry."""
    job = work.state.snapshot.jobs.get(job_id)
    if job is None or job.state not in (JobState.STARTING, JobState.RUNNING):
        raise WrongState(f"job {job_id} does not run any more")
    work.jobs.advance(job, StopRequested(at=work.now, reason=EndReason.PREEMPTED))
    work.record(SYSTEM, "job.stop-requested", job_id, owner=job.user, detail={"reason": EndReason.PREEMPTED})
