"""The jobs of a cluster: running there, or waiting and able to run there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from corral.control.live.state import State
from corral.core.model import CLUSTER_LABEL, Job


@dataclass(frozen=True, kw_only=True, slots=True)
class Homes:
    """The clusters, each with the GPU models that it has."""

    models: Mapping[str, frozenset[str]]

    def suit(self, job: Job, cluster: str) -> bool:
        """Whether nothing that it asks for keeps it away: no label, flavor or volume, and no GPU model."""
        bound = dict(job.request.labels).get(CLUSTER_LABEL)
        wanted = job.request.models
        return bound in (None, cluster) and (not wanted or not self.models[cluster].isdisjoint(wanted))

    def only(self, job: Job) -> str | None:
        """The one where it may run, if there is no other."""
        found = [cluster for cluster in self.models if self.suit(job, cluster)]
        return found[0] if len(found) == 1 else None


def homes_of(state: State) -> Homes:
    fleet = state.fleet()
    models: dict[str, set[str]] = {cluster: set() for (cluster, _), count in fleet.nodes.items() if count}
    for cluster, _, model in fleet.groups:
        models[cluster].add(model)
    return Homes(models={cluster: frozenset(found) for cluster, found in models.items()})


def is_of(state: State, homes: Homes, job: Job, cluster: str) -> bool:
    """A job that waits and may run on several belongs to each of them."""
    if job.allocation is None:
        return cluster in homes.models and homes.suit(job, cluster)
    nodes = state.snapshot.nodes
    return any(grant.node in nodes and nodes[grant.node].cluster == cluster for grant in job.allocation.grants)
