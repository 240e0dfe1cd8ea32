"""Counters of the resources that jobs hold, by user, queue and kind: limits and quotas are checked against them."""

from __future__ import annotations

from collections import defaultdict

from corral.core.fleet.resources import NOTHING, Amount, asked_by
from corral.core.model import Job, JobKind
from corral.core.people.quota import quota_kinds
from corral.core.storage.volume_use import Mounted


class Usage:
    """Counters over jobs. A gang counts with all its nodes."""

    def __init__(self) -> None:
        self.total_gpu_milli = 0
        self.by_user: dict[str, int] = defaultdict(int)
        self.by_queue: dict[str, int] = defaultdict(int)
        self.by_kind: dict[tuple[str, JobKind], Amount] = {}
        #: the volumes that the jobs have mounted
        self.mounted = Mounted()

    def add(self, job: Job) -> None:
        self._count(job, asked_by(job.request), 1)
        if job.mounts:
            self.mounted.add(job)

    def remove(self, job: Job) -> None:
        self._count(job, asked_by(job.request), -1)
        if job.mounts:
            self.mounted.remove(job)

    def copy(self) -> Usage:
        """An independent copy of the counters."""
        other = Usage()
        other.total_gpu_milli = self.total_gpu_milli
        other.by_user.update(self.by_user)
        other.by_queue.update(self.by_queue)
        other.by_kind.update(self.by_kind)
        other.mounted = self.mounted.copy()
        return other

    def of_kind(self, user: str, kind: JobKind) -> Amount:
        """The resources that count in the user's quota of this kind."""
        return self.by_kind.get((user, kind), NOTHING)

    def _count(self, job: Job, amount: Amount, sign: int) -> None:
        gpu_milli = sign * amount.gpu_milli
        self.total_gpu_milli += gpu_milli
        self.by_user[job.user] += gpu_milli
        self.by_queue[job.queue] += gpu_milli
        for kind in quota_kinds(job):
            before = self.by_kind.get((job.user, kind), NOTHING)
            self.by_kind[job.user, kind] = before + amount if sign > 0 else before - amount
