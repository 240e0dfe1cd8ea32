"""Slurm jobs whose attempts are over: for a moment they are about to go, and after that they hold what they hold.

An attempt is over when its files say so, and these are the job's own. A program that writes there that it has ended and
goes on, or a job that Slurm cannot end, must not have its GPUs planned for others.
"""

from __future__ import annotations

from collections.abc import Iterable

from corral.engines.slurm.seen import SlurmJob

#: Scripts of corral's leave within a second, and Slurm cleans up after them.
LINGER_SECONDS = 10.0


class Leaving:
    def __init__(self) -> None:
        #: since when each of them is on its way out
        self._since: dict[int, float] = {}

    def note(self, job_id: int | None, now: float) -> None:
        """However often it is said."""
        if job_id is not None:
            self._since.setdefault(job_id, now)

    def lingering(self, now: float) -> set[int]:
        """Those whose GPUs are as good as free."""
        return {job_id for job_id, since in self._since.items() if now - since < LINGER_SECONDS}

    def stuck(self, live: Iterable[SlurmJob], now: float) -> list[int]:
        """Those that run on all the same. Of those that are gone nothing is kept."""
        states = {job.id: job.state for job in live}
        late = set(self._since) - self.lingering(now)
        self._since = {one: since for one, since in self._since.items() if one in states or one not in late}
        return sorted(one for one in late if states.get(one) == "RUNNING")
