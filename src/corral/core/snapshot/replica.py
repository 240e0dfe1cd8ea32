"""A second picture that follows the first: for whoever wants to try out much and undo it all, away from the thread
that decides.

Values in a picture never change, so that a copy of its tables is a copy of the picture, and whatever is the same object
in both is the same. Taking a copy costs a few milliseconds for tens of thousands of jobs; following one costs what has
changed since.
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
    """Everything that a snapshot holds at one moment."""

    settings: tuple[Change, ...]
    nodes: dict[str, Node]
    scores: dict[tuple[str, str], Score]
    jobs: dict[str, Job]
    revision: int = 0


def copy_of(snapshot: ClusterSnapshot) -> SnapshotCopy:
    """A copy. Must be taken by whoever may change the snapshot, between two changes."""
    return SnapshotCopy(
        settings=tuple(snapshot.settings()),
        nodes=dict(snapshot.nodes),
        scores=dict(snapshot.scores),
        jobs=dict(snapshot.jobs),
        revision=snapshot.revision,
    )


class Replica:
    """`snapshot` may be changed at will: the next `follow` brings it back to what is followed."""

    def __init__(self) -> None:
        self.snapshot = ClusterSnapshot()
        self._settings: tuple[Change, ...] = ()

    def follow(self, picture: SnapshotCopy) -> None:
        """Make the mirror equal to the picture."""
        if not _same_settings(self._settings, picture.settings):
            # Queues, quotas and rules seldom change: it is not worth to work out how.
            self.snapshot = ClusterSnapshot(picture.settings)
            self._settings = picture.settings
        self.snapshot.apply(list(_differences(self.snapshot, picture)))
        self.snapshot.apply(change for change in picture.settings if isinstance(change, PutLastNode))


def _same_settings(ours: tuple[Change, ...], theirs: tuple[Change, ...]) -> bool:
    def lasting(changes: tuple[Change, ...]) -> list[Change]:
        return [change for change in changes if not isinstance(change, PutLastNode)]

    return lasting(ours) == lasting(theirs)


def _differences(mirror: ClusterSnapshot, picture: SnapshotCopy) -> Iterator[Change]:
    differing = [job for job_id, job in picture.jobs.items() if mirror.jobs.get(job_id) is not job]
    # First everything goes that holds what others may get, and only then they get it.
    yield from (DropJob(id=job_id) for job_id in mirror.jobs if job_id not in picture.jobs)
    yield from (DropJob(id=job.id) for job in differing if job.id in mirror.jobs)
    yield from (DropNode(id=node_id) for node_id in mirror.nodes if node_id not in picture.nodes)
    yield from (PutNode(node=node) for node_id, node in picture.nodes.items() if mirror.nodes.get(node_id) is not node)
    for (user, model), score in picture.scores.items():
        if mirror.scores.get((user, model)) is not score:
            yield PutScore(user=user, model=model, score=score)
    for user, model in mirror.scores:
        if (user, model) not in picture.scores:
            # Nothing is as good as no score at all.
            yield PutScore(user=user, model=model, score=Score())
    yield from (PutJob(job=job) for job in differing)
