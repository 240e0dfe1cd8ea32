"""How a job's request follows its allocation, and the allocation that a job holds while it is resized or moved.
Pure."""

from __future__ import annotations

from dataclasses import replace

from corral.core.model import Allocation, Job


def asking_for(job: Job, allocation: Allocation) -> Job:
    """An elastic job asks for the GPUs that it holds, so that limits count those."""
    if job.elastic is None:
        return job
    return replace(job, request=replace(job.request, gpus=len(allocation.grants[0].gpus)))


def asking_least(job: Job) -> Job:
    """An elastic job that holds nothing asks for its minimum."""
    if job.elastic is None:
        return job
    return replace(job, request=replace(job.request, gpus=job.elastic.min_gpus), ran_seconds=0.0, utilization=None)


def together(one: Allocation, other: Allocation) -> Allocation:
    """Both allocations of one job at once. A job that is resized stays on its node, with the same CPUs and memory; a
    job that is moved goes to another node."""
    (grant,), (more,) = one.grants, other.grants
    if grant.node != more.node:
        return replace(one, grants=(grant, more))
    return replace(one, grants=(replace(grant, gpus=tuple(sorted({*grant.gpus, *more.gpus}))),))
