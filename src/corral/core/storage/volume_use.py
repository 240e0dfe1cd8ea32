"""Who writes and who reads which volume at this moment: what the rules of mounts are checked against.

Counted like what jobs hold, so that a cycle which supposes a start supposes its mounts, too: two jobs that start in one
cycle never both write.
"""

from __future__ import annotations

from collections.abc import Iterator

from corral.core.model import Job
from corral.core.storage.volumes import VolumeMount


class Mounted:
    """Jobs by the volumes that they have, in the order in which they got them."""

    def __init__(self) -> None:
        #: a job may be supposed to have it more than once at a time: each counts
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
        """Everybody who has it."""
        return [*self._writers.get(volume, ()), *self._readers.get(volume, ())]

    def in_the_way(self, mount: VolumeMount) -> list[str]:
        """Who keeps a volume with one writer from being mounted so: a writer everybody, a reader those who write."""
        return self.users(mount.volume) if mount.writes else self.writers(mount.volume)

    def volumes(self) -> Iterator[str]:
        yield from {**self._writers, **self._readers}

    def copy(self) -> Mounted:
        """The same, to be changed apart from this."""
        other = Mounted()
        other._writers = {volume: dict(jobs) for volume, jobs in self._writers.items()}
        other._readers = {volume: dict(jobs) for volume, jobs in self._readers.items()}
        return other

    def _side(self, mount: VolumeMount) -> dict[str, dict[str, int]]:
        return self._writers if mount.writes else self._readers
