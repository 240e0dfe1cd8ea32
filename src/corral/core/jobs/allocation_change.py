"""How a job's request follows its allocation, and the allocation that a job holds while it is resized or moved.
Pure."""

from __future__ import annotations

from dataclasses import replace

from corral.core.model import Allocation, Grant, Job


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
    """Both allocations of one job at once. A job that is resized stays on its nodes, with the same CPUs and memory; a
    job that is moved, always on one node, goes to another node."""
    if [grant.node for grant in one.grants] != [grant.node for grant in other.grants]:
        return replace(one, grants=(*one.grants, *other.grants))
    pairs = zip(one.grants, other.grants, strict=True)
    return replace(one, grants=tuple(_joined(grant, more) for grant, more in pairs))


def _joined(grant: Grant, more: Grant) -> Grant:
    return replace(grant, gpus=tuple(sorted({*grant.gpus, *more.gpus})))
