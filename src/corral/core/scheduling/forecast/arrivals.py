"""Who comes next. Nobody knows, but the next day is mostly like the last one: what was submitted then is supposed to be
submitted again, by the same users, as large and as long, at the same time of day.

Rollouts differ here too: in an early one fewer come, in a late one more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from corral.core.model import Job, JobState
from corral.core.scheduling.forecast.remaining_time import Mood, chance

DAY = 86_400.0
#: From less than this nothing is concluded.
LEAST_SECONDS = 3600.0
#: How much more come in a rollout that is late by one standard deviation.
SPREAD = 0.4
#: Nobody is supposed to come later than this, and in one rollout not more than so many.
HORIZON_SECONDS = 7 * DAY
MOST = 2000
#: Numbers that no real job has.
_FIRST_SERIAL = 10**15


@dataclass(frozen=True, kw_only=True, slots=True)
class Recent:
    """Jobs as they were queued, the oldest first, of a time from which none is missing."""

    jobs: Sequence[Job] = ()
    since: float = math.inf

    def period(self, now: float) -> float | None:
        """What is supposed to come again and again; None if too little is known."""
        seconds = min(DAY, now - self.since)
        return seconds if seconds >= LEAST_SECONDS else None


NO_RECENT_JOBS = Recent()


def coming(recent: Recent, now: float, mood: Mood) -> Iterator[Job]:
    """The jobs that are supposed to come after now, in order. The same rollout always has the same ones."""
    period = recent.period(now)
    if period is None:
        return
    last = [(at, job) for job in recent.jobs if (at := came_at(job)) > now - period]
    intensity = math.exp(SPREAD * mood.late)
    number = 0
    for turn in range(1, math.ceil(HORIZON_SECONDS / period) + 1):
        for came, job in last:
            copies = int(intensity + chance(job.serial + turn, mood))
            for _ in range(copies):
                at = came + turn * period
                number += 1
                if number > MOST or at > now + HORIZON_SECONDS:
                    return
                yield as_queued(job, f"j-{_FIRST_SERIAL + number}", at)


def came_at(job: Job) -> float:
    """When it first came: an interruption makes it no new one."""
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
        # Which volumes it would want is not known, and those of then may be gone.
        mounts=(),
        checkpointed_at=None,
        saved_seconds=0.0,
        ran_seconds=0.0,
    )
