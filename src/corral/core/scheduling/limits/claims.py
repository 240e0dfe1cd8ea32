"""Claims: a queue position on a limit that many jobs share.

A limit on a queue, or on all jobs together, is a resource like GPUs: without claims, a stream of small jobs under the
same limit would starve a large job for ever. The first job that is held by such a limit alone has a claim on it. Later
jobs that count for the same limit may pass it if they end before enough of the limit will be free.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass

from corral.core.model import WHOLE, Job
from corral.core.scheduling.limits.hold_rules import MOUNT, QUEUE_LIMIT, TOTAL_LIMIT, Reason
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot

#: The rules whose limits are shared by many users.
SHARED = frozenset({TOTAL_LIMIT, QUEUE_LIMIT})
#: The rules on which the first waiting job gets a claim.
CLAIMED_RULES = SHARED | {MOUNT}


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    job_id: str
    rule: str
    #: the queue that has the limit; "" for the limit of the installation
    queue: str
    #: the latest time at which enough of the limit is free; infinite if it is not known
    at: float
    #: the claimed volume, and whether the job will write to it; "" for a claim on GPUs
    volume: str = ""
    writes: bool = False

    def concerns(self, job: Job) -> bool:
        """Whether the job counts for the same limit and has to wait behind this claim."""
        if job.id == self.job_id:
            return False
        if self.volume:
            return any(mount.volume == self.volume and (mount.writes or self.writes) for mount in job.mounts)
        return job.request.total_gpu_milli > 0 and (not self.queue or self.queue == job.queue)

    def is_for(self, job: Job, reason: Reason) -> bool:
        """Whether this claim is on the limit that holds the job."""
        return (self.rule, self.queue, self.volume) == (reason.rule, _queue_of(job, reason), _volume_of(reason))

    @property
    def blocks_others(self) -> bool:
        """Whether other jobs wait behind the claim. They do not for a volume without a known time when it is free."""
        return not self.volume or math.isfinite(self.at)

    def can_be_passed(self, ends_at: float) -> bool:
        """Whether a job that ends at that time may pass the claim."""
        return ends_at <= self.at and math.isfinite(ends_at)


def may_have_claims(reasons: Iterable[Reason]) -> bool:
    """Whether the job fits under the limits at all: a job larger than a limit must not make other jobs wait."""
    return all(
        float(reason.numbers["asked"]) <= float(reason.numbers["limit"]) for reason in reasons if reason.rule in SHARED
    )


def claim_of(
    snapshot: ClusterSnapshot, job: Job, reason: Reason, now: float, started: Iterable[tuple[float, Job]]
) -> Claim:
    """The claim of a job that is held by `reason`, a shared limit or a mount. `started` are the starts of this cycle
    with their ends."""
    if reason.rule == MOUNT:
        return _claim_on_volume(snapshot, job, reason, now, started)
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


def _claim_on_volume(
    snapshot: ClusterSnapshot, job: Job, reason: Reason, now: float, started: Iterable[tuple[float, Job]]
) -> Claim:
    """The claim of a writer, which would otherwise wait for ever while new readers start and end. The writer starts
    when the last job that uses the volume now has ended; if that time is not known, no job waits for the writer.
    """
    volume = _volume_of(reason)
    starting = {job.id: end for end, job in started}
    ends = [
        starting[job_id] if job_id in starting else snapshot.jobs[job_id].likely_end_after(now)
        for job_id in reason.jobs
    ]
    writes = any(mount.volume == volume and mount.writes for mount in job.mounts)
    return Claim(job_id=job.id, rule=MOUNT, queue="", at=max((now, *ends)), volume=volume, writes=writes)


def _volume_of(reason: Reason) -> str:
    return str(reason.numbers["volume"]) if reason.rule == MOUNT else ""


def _queue_of(job: Job, reason: Reason) -> str:
    return job.queue if reason.rule == QUEUE_LIMIT else ""
