"""The nodes and GPUs that the next attempt of a job avoids, because something failed there. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from corral.core.model import EndReason, Job


def avoiding_named(job: Job, reason: EndReason, failed: Iterable[str]) -> Job:
    """The job avoids the GPUs or nodes that were named as failed."""
    if reason is EndReason.GPU_FAILED:
        return replace(job, avoid_gpus=_with(job.avoid_gpus, failed))
    if reason is EndReason.NODE_LOST:
        return replace(job, avoid_nodes=_with(job.avoid_nodes, failed))
    return job


def avoiding_failed(job: Job, reason: EndReason) -> Job:
    """The job avoids what failed: the GPUs or nodes that were named, or else all that it held."""
    if job.allocation is None:
        return job
    gpus, nodes = job.allocation.gpus, [grant.node for grant in job.allocation.grants]
    # A job is never placed on what it avoids, so what it holds and avoids was named while it ran.
    if reason is EndReason.GPU_FAILED and not {*gpus} & {*job.avoid_gpus}:
        return replace(job, avoid_gpus=_with(job.avoid_gpus, gpus))
    if reason is EndReason.NODE_LOST and not {*nodes} & {*job.avoid_nodes}:
        return replace(job, avoid_nodes=_with(job.avoid_nodes, nodes))
    return job


def avoiding_place(job: Job) -> Job:
    """The job avoids the node where its program failed. Of a gang it is not known which node was the cause."""
    if job.allocation is None or len(job.allocation.grants) != 1:
        return job
    return replace(job, avoid_nodes=_with(job.avoid_nodes, [job.allocation.grants[0].node]))


def _with(names: tuple[str, ...], more: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*names, *more}))
