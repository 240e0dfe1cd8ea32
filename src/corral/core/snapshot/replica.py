"""A replica of the live snapshot, for computations that change much and must not run in the controller's thread.

The values in a snapshot are immutable, so that a copy of its tables is a copy of the snapshot, and the same object in
both means no change. A copy costs a few milliseconds for tens of thousands of jobs; bringing a replica up to date costs
what has changed since.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from corral.core.model import Job, Node
from corral.core.people.scores import Score
from corral.core.snapshot.changes import Change, DropJob, DropNode, PutJob, PutLastNode, PutNode, PutScore
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot


@dataclass(frozen=True, kw_only=True, slots=True)
class SnapshotCopy:
    """The content of a snapshot at one moment."""

    settings: tuple[Change, ...]
    nodes: dict[str, Node]
    scores: dict[tuple[str, str], Score]
    jobs: dict[str, Job]
    revision: int = 0


def copy_of(snapshot: ClusterSnapshot) -> SnapshotCopy:
    """Must be called by the thread that changes the snapshot, between two changes."""
    return SnapshotCopy(
        settings=tuple(snapshot.settings()),
        nodes=dict(snapshot.nodes),
        scores=dict(snapshot.scores),
        jobs=dict(snapshot.jobs),
        revision=snapshot.revision,
    )


class Replica:
    """`snapshot` may be changed freely: the next `follow` makes it equal to a copy again."""

    def __init__(self) -> None:
        self.snapshot = ClusterSnapshot()
        self._settings: tuple[Change, ...] = ()

    def follow(self, copy: SnapshotCopy) -> None:
        """Make the replica equal to the copy."""
        if not _same_settings(self._settings, copy.settings):
            # Queues, quotas and rules seldom change: it is not worth computing the difference.
            self.snapshot = ClusterSnapshot(copy.settings)
            self._settings = copy.settings
        self.snapshot.apply(list(_differences(self.snapshot, copy)))
        self.snapshot.apply(change for change in copy.settings if isinstance(change, PutLastNode))


def _same_settings(ours: tuple[Change, ...], theirs: tuple[Change, ...]) -> bool:
    def without_last_node(changes: tuple[Change, ...]) -> list[Change]:
        return [change for change in changes if not isinstance(change, PutLastNode)]

    return without_last_node(ours) == without_last_node(theirs)


def _differences(replica: ClusterSnapshot, copy: SnapshotCopy) -> Iterator[Change]:
    differing = [job for job_id, job in copy.jobs.items() if replica.jobs.get(job_id) is not job]
    # Jobs that release resources are dropped before other jobs take these resources.
    yield from (DropJob(id=job_id) for job_id in replica.jobs if job_id not in copy.jobs)
    yield from (DropJob(id=job.id) for job in differing if job.id in replica.jobs)
    yield from (DropNode(id=node_id) for node_id in replica.nodes if node_id not in copy.nodes)
    yield from (PutNode(node=node) for node_id, node in copy.nodes.items() if replica.nodes.get(node_id) is not node)
    for (user, model), score in copy.scores.items():
        if replica.scores.get((user, model)) is not score:
            yield PutScore(user=user, model=model, score=score)
    for user, model in replica.scores:
        if (user, model) not in copy.scores:
            # A score of zero is the same as no score.
            yield PutScore(user=user, model=model, score=Score())
    yield from (PutJob(job=job) for job in differing)
