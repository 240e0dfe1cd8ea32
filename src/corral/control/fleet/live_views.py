"""Views of the live state for pages, updated by the changes of the snapshot.

A view is built at its first read. Later reads apply the changes since the previous read; after very many changes
without a read the view is built again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from corral.control.fleet.live_fleet import LiveFleet
from corral.control.fleet.live_jobs import LiveJobs
from corral.core.monitoring.health.model import Condition
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot

#: Changes that are kept for the next read; each may keep a job in memory.
MAX_UNREAD = 20_000


class LiveViews:
    def __init__(self) -> None:
        self._snapshot: ClusterSnapshot | None = None
        self._revision = -1
        self._fleet: LiveFleet | None = None
        self._jobs: LiveJobs | None = None
        #: how often everything was made again
        self.made = 0

    def fleet(
        self, snapshot: ClusterSnapshot, conditions: Mapping[str, Condition], changes: int, now: float | None
    ) -> LiveFleet:
        """See `LiveFleet.update`."""
        fleet, _ = self._followed(snapshot)
        fleet.update(conditions, changes, now)
        return fleet

    def jobs(self, snapshot: ClusterSnapshot) -> LiveJobs:
        return self._followed(snapshot)[1]

    def _followed(self, snapshot: ClusterSnapshot) -> tuple[LiveFleet, LiveJobs]:
        fleet, jobs, unread = self._fleet, self._jobs, snapshot.unread
        is_known = snapshot is self._snapshot and unread is not None
        if fleet is None or jobs is None or not is_known or self._revision + len(unread or ()) != snapshot.revision:
            self.made += 1
            fleet, jobs = self._fleet, self._jobs = LiveFleet(snapshot), LiveJobs(snapshot)
            self._snapshot, snapshot.unread = snapshot, deque(maxlen=MAX_UNREAD)
        else:
            for change in unread or ():
                fleet.follow(change)
                jobs.follow(change)
            if unread:
                unread.clear()
        self._revision = snapshot.revision
        return fleet, jobs
