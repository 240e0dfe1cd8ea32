"""Who holds what on a cluster: which Slurm jobs are in corral's own books, and what is held by nobody who is known.

An attempt is over when its files say so, and these are the job's own. A program that writes there that it has ended and
goes on, or a job that Slurm cannot end, must not have its GPUs planned for others: for a moment such jobs are about to
go, and after that they hold what they hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from corral.control.ports import LaunchOrder
from corral.engines.slurm.attempts import Attempt
from corral.engines.slurm.fleet import unexplained
from corral.engines.slurm.seen import SlurmJob, SlurmNode, by_attempt

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


class Occupancy:
    """For whoever holds the engine's lock."""

    def __init__(self, mark: str) -> None:
        """`mark` is before the names of the engine's own jobs."""
        self._mark = mark
        self._leaving = Leaving()
        #: GPUs that Slurm called used without a job in the last observation, by node
        self._unexplained: Mapping[str, int] = {}

    def note_over(self, attempt: Attempt, now: float) -> None:
        self._leaving.note(attempt.job_id, now)

    def own_jobs(
        self, attempts: Mapping[str, Attempt], live: Sequence[SlurmJob], now: float
    ) -> tuple[set[int], list[int]]:
        """Those whose GPUs are in corral's own books; and those that hold theirs although their attempts are over."""
        own = set[int]()
        for attempt in attempts.values():
            if attempt.is_over:
                self.note_over(attempt, now)
            elif attempt.job_id is not None:
                own.add(attempt.job_id)
        for attempt_id, named in by_attempt(live, self._mark).items():
            # Slurm has it, and the server is about to write that down; or it was sent twice.
            if (known := attempts.get(attempt_id)) is not None and not known.is_over:
                own.update(job.id for job in named)
        stuck = self._leaving.stuck(live, now)
        return own | self._leaving.lingering(now), stuck

    def lost_gpus(self, seen: Iterable[SlurmNode], jobs: Iterable[SlurmJob]) -> dict[str, int]:
        """What was unexplained in two observations in a row is no matter of a moment."""
        now = unexplained(seen, jobs)
        lasting = {node: min(count, self._unexplained.get(node, 0)) for node, count in now.items()}
        self._unexplained = now
        return lasting


def named_gpus(attempts: Iterable[Attempt], orders: Iterable[LaunchOrder]) -> dict[str, frozenset[str]]:
    """The GPUs that live plans have, by node: of attempts, and of orders that are being prepared."""
    named: dict[str, set[str]] = {}
    for attempt in attempts:
        if not attempt.is_over:
            for node, gpus in attempt.gpus.items():
                named.setdefault(node, set()).update(gpus)
    for order in orders:
        for instance in order.instances:
            named.setdefault(instance.node, set()).update(instance.gpu_ids)
    return {node: frozenset(gpus) for node, gpus in named.items()}
