"""A planned start: the time and the allocation that a waiting job will get, and what is held for it until then."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from corral.core.model import WHOLE, Allocation, Grant, Job
from corral.core.snapshot.node_index import Fleet


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedAllocation:
    """A planned start with the allocation that the job will get."""

    job: Job
    at: float
    allocation: Allocation
    #: the part of the allocation that is free now and is held for the job
    held: Allocation
    #: whether the start follows from time limits alone, without any prediction
    is_firm: bool = True
    #: what the start costs others: idle GPU-seconds of resources that are free now and needed then, whether they are
    #: held or not
    idle_gpu_seconds: float = 0.0
    #: Until then jobs behind may delay the start; never before `at`.
    latest_at: float = -math.inf

    @property
    def guaranteed_at(self) -> float:
        """The latest start that the scheduler guarantees."""
        return max(self.at, self.latest_at)

    @property
    def slack_seconds(self) -> float:
        return self.latest_at - self.at if self.latest_at > self.at else 0.0

    @property
    def ends_at(self) -> float:
        return likely_end_if_started(self.job, self.at)


def end_if_started(job: Job, at: float) -> float:
    """The latest time at which the job releases its resources, if it starts at `at`; infinite without a time limit."""
    return math.inf if job.time_limit_seconds is None else at + job.time_limit_seconds + job.grace_seconds


def is_limited(job: Job) -> bool:
    return job.time_limit_seconds is not None


def likely_end_if_started(job: Job, at: float) -> float:
    """Like `end_if_started`, but for a job without a time limit the end that is predicted."""
    if job.time_limit_seconds is not None or job.predicted is None:
        return end_if_started(job, at)
    return at + job.predicted.p90_seconds + job.grace_seconds


def idle_gpu_seconds(planned: PlannedAllocation, now: float, unknown_seconds: float) -> float:
    """The GPU time for which the held GPUs are idle until the planned start. A start that is not known is assumed to be
    `unknown_seconds` away."""
    seconds = planned.at - now if math.isfinite(planned.at) else unknown_seconds
    return max(0.0, seconds) * planned.held.total_gpu_milli / WHOLE


def free_part(fleet: Fleet, allocation: Allocation) -> Allocation:
    """The part of an allocation that is free now: one grant for each GPU, one for CPUs and memory of each node."""
    grants = []
    for grant in allocation.grants:
        slot = fleet.slot(grant.node)
        for gpu in grant.gpus:
            milli = min(grant.gpu_milli, slot.free_milli[gpu])
            if milli:
                grants.append(Grant(node=grant.node, gpus=(gpu,), gpu_milli=milli))
        grants.append(
            Grant(
                node=grant.node,
                cpu_milli=min(grant.cpu_milli, max(0, slot.free_cpu_milli)),
                memory_bytes=min(grant.memory_bytes, max(0, slot.free_memory_bytes)),
            )
        )
    return replace(allocation, grants=tuple(grants))


def still_held(fleet: Fleet, planned: PlannedAllocation) -> PlannedAllocation:
    """The planned start after a job that ends in time was backfilled onto some of the held resources."""
    grants = []
    for grant in planned.held.grants:
        slot = fleet.slot(grant.node)
        if grant.gpus:
            milli = min(grant.gpu_milli, slot.free_milli[grant.gpus[0]])
            if milli:
                grants.append(replace(grant, gpu_milli=milli))
        else:
            cpu_milli = min(grant.cpu_milli, max(0, slot.free_cpu_milli))
            memory_bytes = min(grant.memory_bytes, max(0, slot.free_memory_bytes))
            grants.append(replace(grant, cpu_milli=cpu_milli, memory_bytes=memory_bytes))
    return replace(planned, held=Allocation(grants=tuple(grants), model=planned.held.model))
