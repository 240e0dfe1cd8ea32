"""Finds the Slurm jobs that hold GPUs: jobs of corral's attempts, jobs whose attempt is over, and GPUs that no known
job holds.

A job is corral's by its id and by its account; any user can choose its name.

An attempt is over when its files say so, and these belong to the job. A program that writes an end and goes on, or a
job that Slurm cannot end, must keep its GPUs in corral's view: for a few seconds such jobs count as about to end, and
after that as holding their GPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from corral.control.ports import LaunchOrder
from corral.engines.slurm.attempts.slurm_attempt import Attempt
from corral.engines.slurm.cluster.nodes import unexplained
from corral.engines.slurm.slurm_api.slurm_records import JobOwner, SlurmJob, SlurmNode

#: corral's script exits within a second, and Slurm cleans up after it.
LEAVE_SECONDS = 3.0
LINGER_SECONDS = 10.0
#: Largest difference between the clocks of the server and of Slurm's controller.
CLOCK_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class _Left:
    """A Slurm job whose attempt is over."""

    attempt_id: str
    owner: JobOwner
    #: when that was first noticed
    since: float


class LingeringJobs:
    def __init__(self) -> None:
        self._left: dict[int, _Left] = {}

    def note(self, attempt: Attempt, now: float) -> None:
        """Idempotent."""
        if attempt.job_id is not None:
            self._left.setdefault(attempt.job_id, _Left(attempt_id=attempt.id, owner=attempt.owner, since=now))

    def known(self) -> Iterable[int]:
        return self._left

    def lingering(self, live: Iterable[SlurmJob], now: float) -> set[int]:
        """Jobs whose GPUs are almost free."""
        return {job.id for job, left in self._there(live) if now - left.since < LINGER_SECONDS}

    def stuck(self, live: Sequence[SlurmJob], now: float) -> list[int]:
        """Jobs that still run in spite of that. Records of jobs that are gone are removed."""
        states = {job.id: job.state for job, _ in self._there(live)}
        late = {job_id for job_id, left in self._left.items() if now - left.since >= LINGER_SECONDS}
        self._left = {job_id: left for job_id, left in self._left.items() if job_id in states or job_id not in late}
        return sorted(job_id for job_id in late if states.get(job_id) == "RUNNING")

    def overran(self, live: Iterable[SlurmJob], now: float) -> dict[str, float]:
        """The attempts of jobs that run longer than corral's script needs to exit."""
        return {
            left.attempt_id: now
            for job, left in self._there(live)
            if job.state == "RUNNING" and now - left.since >= LEAVE_SECONDS
        }

    def _there(self, live: Iterable[SlurmJob]) -> list[tuple[SlurmJob, _Left]]:
        found = [(job, left) for job in live if (left := self._left.get(job.id)) is not None]
        return [(job, left) for job, left in found if left.owner.owns(job)]


class Occupancy:
    """The caller must hold the engine's lock."""

    def __init__(self) -> None:
        self._lingering = LingeringJobs()
        #: GPUs that Slurm called used without a job in the last observation, by node
        self._unexplained: Mapping[str, int] = {}

    def note_over(self, attempt: Attempt, now: float) -> None:
        self._lingering.note(attempt, now)

    def own_jobs(self, attempts: Iterable[Attempt], live: Sequence[SlurmJob], now: float) -> tuple[set[int], list[int]]:
        """Jobs whose GPUs are known from corral's attempts; and jobs that hold GPUs although their attempts are
        over."""
        owners = dict[int, JobOwner]()
        sent = list[Attempt]()
        for attempt in attempts:
            if attempt.is_over:
                self.note_over(attempt, now)
            elif attempt.job_id is not None:
                owners[attempt.job_id] = attempt.owner
            else:
                sent.append(attempt)
        own = {job.id for job in live if job.id in owners and owners[job.id].owns(job)}
        if sent:
            known = {*owners, *self._lingering.known()}
            own |= _jobs_being_submitted(sent, [job for job in live if job.id not in known])
        stuck = self._lingering.stuck(live, now)
        return own | self._lingering.lingering(live, now), stuck

    def overran(self, live: Iterable[SlurmJob], now: float) -> dict[str, float]:
        """Attempts that have reported their end, and until when their jobs still ran; they are charged for that
        time."""
        return self._lingering.overran(live, now)

    def lost_gpus(self, seen: Iterable[SlurmNode], jobs: Iterable[SlurmJob]) -> dict[str, int]:
        """GPUs that were unexplained in two consecutive observations."""
        now = unexplained(seen, jobs)
        lost = {node: min(count, self._unexplained.get(node, 0)) for node, count in now.items()}
        self._unexplained = now
        return lost


def _jobs_being_submitted(sent: Iterable[Attempt], unknown: Iterable[SlurmJob]) -> set[int]:
    """The Slurm jobs of attempts whose job ids the server does not know yet, one for each attempt."""
    left = {job.id: job for job in unknown}
    found = set[int]()
    for attempt in sent:
        if (job := next((job for job in left.values() if _may_be(job, attempt)), None)) is not None:
            found.add(left.pop(job.id).id)
    return found


def _may_be(job: SlurmJob, attempt: Attempt) -> bool:
    """Same account, nodes and GPUs, and not older than the attempt."""
    return (
        set(job.nodes) == set(attempt.nodes)
        and all(job.gpus_on(node) == len(gpus) for node, gpus in attempt.gpus.items())
        and job.submitted_at >= attempt.created_at - CLOCK_SECONDS
        and attempt.owner.owns(job)
    )


def named_gpus(attempts: Iterable[Attempt], orders: Iterable[LaunchOrder]) -> dict[str, frozenset[str]]:
    """The GPUs that plans of live attempts name, by node: of attempts, and of orders that are being prepared."""
    named: dict[str, set[str]] = {}
    for attempt in attempts:
        if not attempt.is_over:
            for node, gpus in attempt.gpus.items():
                named.setdefault(node, set()).update(gpus)
    for order in orders:
        for instance in order.instances:
            named.setdefault(instance.node, set()).update(instance.gpu_ids)
    return {node: frozenset(gpus) for node, gpus in named.items()}
