"""The jobs that write and read each volume: the mount rules are checked against these counters.

They are counted like other held resources, so that a start in a trial includes its mounts: two jobs that start in one
cycle never both write.
"""

from __future__ import annotations

from collections.abc import Iterator

from corral.core.model import Job
from corral.core.storage.volumes import VolumeMount


class Mounted:
    """The jobs of each volume, in the order in which they mounted it."""

    def __init__(self) -> None:
        #: with a count, because a trial may add a job more than once
        self._writers: dict[str, dict[str, int]] = {}
        self._readers: dict[str, dict[str, int]] = {}

    def add(self, job: Job) -> None:
        for mount in job.mounts:
            jobs = self._side(mount).setdefault(mount.volume, {})
            jobs[job.id] = jobs.get(job.id, 0) + 1

    def remove(self, job: Job) -> None:
        for mount in job.mounts:
            side = self._side(mount)
            jobs = side[mount.volume]
            jobs[job.id] -= 1
            if not jobs[job.id]:
                del jobs[job.id]
            if not jobs:
                del side[mount.volume]

    def writers(self, volume: str) -> list[str]:
        return list(self._writers.get(volume, ()))

    def readers(self, volume: str) -> list[str]:
        return list(self._readers.get(volume, ()))

    def users(self, volume: str) -> list[str]:
        """All jobs that have mounted the volume."""
        return [*self._writers.get(volume, ()), *self._readers.get(volume, ())]

    def conflicting_jobs(self, mount: VolumeMount) -> list[str]:
        """The jobs that conflict with a mount of a volume with one writer: all jobs with a writer, writers with a
        reader."""
        return self.users(mount.volume) if mount.writes else self.writers(mount.volume)

    def volumes(self) -> Iterator[str]:
        yield from {**self._writers, **self._readers}

    def copy(self) -> Mounted:
        """An independent copy."""
        other = Mounted()
        other._writers = {volume: dict(jobs) for volume, jobs in self._writers.items()}
        other._readers = {volume: dict(jobs) for volume, jobs in self._readers.items()}
        return other

    def _side(self, mount: VolumeMount) -> dict[str, dict[str, int]]:
        return self._writers if mount.writes else self._readers
