"""Claims: the turn of the first job that waits for a limit which many share.

A limit on a queue, or on everything together, is a resource like GPUs: without a turn, a stream of small jobs under
the same limit would starve a large one for ever. The first job that only such a limit holds has a claim on it; later
jobs that count for the same limit may pass if they are gone before enough of it will be free.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass

from corral.core.model import WHOLE, Job
from corral.core.rules import QUEUE_LIMIT, TOTAL_LIMIT, Reason
from corral.core.snapshot import ClusterSnapshot

#: The rules whose limits are shared by many users.
SHARED = frozenset({TOTAL_LIMIT, QUEUE_LIMIT})


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    job_id: str
    rule: str
    #: the queue whose limit it is; "" when it is the limit of everything
    queue: str
    #: when enough of the limit is free at the latest; infinite when that cannot be told
    at: float

    def concerns(self, job: Job) -> bool:
        """Whether the job counts for the same limit and comes behind."""
        return job.id != self.job_id and job.request.total_gpu_milli > 0 and (not self.queue or self.queue == job.queue)

    def is_for(self, job: Job, reason: Reason) -> bool:
        """Whether this is a claim on the very limit that holds the job."""
        return self.rule == reason.rule and self.queue == _queue_of(job, reason)

    def lets_pass(self, ends_at: float) -> bool:
        """Whether a job that ends by then is gone before the claim's turn comes."""
        return ends_at <= self.at and math.isfinite(ends_at)


def can_be_kept(reasons: Iterable[Reason]) -> bool:
    """Whether the limits could ever be kept: a job larger than a limit must not make everybody else wait."""
    return all(float(reason.numbers["asked"]) <= float(reason.numbers["limit"]) for reason in reasons)


def claim_of(
    snapshot: ClusterSnapshot, job: Job, reason: Reason, now: float, started: Iterable[tuple[float, Job]]
) -> Claim:
    """The claim of a job that `reason`, a shared limit, holds. `started` are this cycle's starts and when they end."""
    queue = _queue_of(job, reason)
    missing = round((float(reason.numbers["held"]) + float(reason.numbers["asked"])) * WHOLE)
    missing -= round(float(reason.numbers["limit"]) * WHOLE)
    running = ((end, snapshot.jobs[job_id]) for end, _, job_id in snapshot.ends(now))
    for end, other in heapq.merge(running, started, key=lambda item: item[0]):
        if not queue or other.queue == queue:
            missing -= other.request.total_gpu_milli
            if missing <= 0:
                return Claim(job_id=job.id, rule=reason.rule, queue=queue, at=max(end, now))
    return Claim(job_id=job.id, rule=reason.rule, queue=queue, at=math.inf)


def _queue_of(job: Job, reason: Reason) -> str:
    return job.queue if reason.rule == QUEUE_LIMIT else ""
