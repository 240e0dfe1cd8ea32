"""Which jobs belong to a cluster: those that run there, and those that wait and may."""

from __future__ import annotations

from corral.control.state import State
from corral.core.model import CLUSTER_LABEL, Job


def bound_to(job: Job) -> str | None:
    """The only cluster where it may run, if its labels, its flavor or its volumes say so."""
    return dict(job.request.labels).get(CLUSTER_LABEL)


def is_of(state: State, job: Job, cluster: str) -> bool:
    """A job that waits and may run anywhere belongs to each of them."""
    if job.allocation is None:
        return bound_to(job) in (None, cluster)
    nodes = state.snapshot.nodes
    return any(grant.node in nodes and nodes[grant.node].cluster == cluster for grant in job.allocation.grants)
