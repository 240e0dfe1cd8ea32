"""Future arrivals in a rollout. The next day is assumed to be like the last one: jobs that were submitted then are
submitted again by the same users, with the same size and run time, at the same time of day.

Rollouts differ in the number of arrivals: fewer in an early rollout, more in a late one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from corral.core.model import Job, JobState
from corral.core.scheduling.forecast.remaining_time import RolloutSample, chance

DAY = 86_400.0
#: A shorter history is not used.
LEAST_SECONDS = 3600.0
#: The relative increase of arrivals in a rollout that is late by one standard deviation.
SPREAD = 0.4
#: How far ahead arrivals are assumed, and the most in one rollout.
HORIZON_SECONDS = 7 * DAY
MOST = 2000
#: Serial numbers above those of real jobs.
_FIRST_SERIAL = 10**15


@dataclass(frozen=True, kw_only=True, slots=True)
class Recent:
    """All jobs that were queued since a time, the oldest first, as they were queued."""

    jobs: Sequence[Job] = ()
    since: float = math.inf

    def period(self, now: float) -> float | None:
        """The length of the period that is repeated; None if the history is too short."""
        seconds = min(DAY, now - self.since)
        return seconds if seconds >= LEAST_SECONDS else None


NO_RECENT_JOBS = Recent()


def coming(recent: Recent, now: float, sample: RolloutSample) -> Iterator[Job]:
    """The jobs that are assumed to arrive after now, in order. The same rollout always has the same arrivals."""
    period = recent.period(now)
    if period is None:
        return
    last = [(at, job) for job in recent.jobs if (at := came_at(job)) > now - period]
    intensity = math.exp(SPREAD * sample.late)
    number = 0
    for turn in range(1, math.ceil(HORIZON_SECONDS / period) + 1):
        for came, job in last:
            copies = int(intensity + chance(job.serial + turn, sample))
            for _ in range(copies):
                at = came + turn * period
                number += 1
                if number > MOST or at > now + HORIZON_SECONDS:
                    return
                yield as_queued(job, f"j-{_FIRST_SERIAL + number}", at)


def came_at(job: Job) -> float:
    """When the job was first queued; a preemption does not change it."""
    first = job.queued_at if job.aged_from is None else job.aged_from
    return job.created_at if first is None else first


def as_queued(job: Job, job_id: str, at: float) -> Job:
    """The same job, submitted at another time."""
    return replace(
        job,
        id=job_id,
        state=JobState.QUEUED,
        created_at=at,
        queued_at=at,
        aged_from=at,
        not_before=0.0,
        given_back=0,
        after=(),
        pinned_at=None,
        user_order=0,
        attempt=0,
        retries=0,
        faults=0,
        allocation=None,
        next_allocation=None,
        allocated_at=None,
        started_at=None,
        ended_at=None,
        stopping_for=None,
        preempted_for=None,
        avoid_nodes=(),
        avoid_gpus=(),
        # The volumes of the earlier job may have been deleted.
        mounts=(),
        checkpointed_at=None,
        saved_seconds=0.0,
        ran_seconds=0.0,
    )
