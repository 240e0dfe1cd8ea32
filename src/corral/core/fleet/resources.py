"""How GPUs are counted: whole GPUs, shares of one, and none.

All amounts are integer thousandths, so that a GPU that was split in three and released is exactly whole again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from corral.core.counts import counted
from corral.core.model import WHOLE, Allocation, Grant, Job, Request


@dataclass(frozen=True, kw_only=True, slots=True)
class Amount:
    """A total of held or requested resources over all nodes."""

    gpu_milli: int = 0
    cpu_milli: int = 0
    memory_bytes: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            gpu_milli=self.gpu_milli + other.gpu_milli,
            cpu_milli=self.cpu_milli + other.cpu_milli,
            memory_bytes=self.memory_bytes + other.memory_bytes,
        )

    def __sub__(self, other: Amount) -> Amount:
        return Amount(
            gpu_milli=self.gpu_milli - other.gpu_milli,
            cpu_milli=self.cpu_milli - other.cpu_milli,
            memory_bytes=self.memory_bytes - other.memory_bytes,
        )


NOTHING = Amount()


def asked_by(request: Request) -> Amount:
    return Amount(
        gpu_milli=request.total_gpu_milli,
        cpu_milli=request.nodes * request.cpu_milli,
        memory_bytes=request.nodes * request.memory_bytes,
    )


def held_by(allocation: Allocation) -> Amount:
    return Amount(
        gpu_milli=allocation.total_gpu_milli,
        cpu_milli=sum(grant.cpu_milli for grant in allocation.grants),
        memory_bytes=sum(grant.memory_bytes for grant in allocation.grants),
    )


def at_least(job: Job) -> Job:
    """The job with its least request: that of an elastic job is its minimum."""
    if job.elastic is None or job.request.gpus == job.elastic.min_gpus:
        return job
    return replace(job, request=replace(job.request, gpus=job.elastic.min_gpus))


def gpus_text(milli: int) -> str:
    """GPUs as text: 2000 is "2", 250 is "0.25"."""
    return f"{milli / WHOLE:g}"


def counted_gpus(milli: int) -> str:
    """GPUs as text with the noun: 1000 is "1 GPU", 250 is "0.25 GPUs"."""
    return counted(milli / WHOLE, "GPU")


def grant_on(node: str, gpus: tuple[str, ...], request: Request) -> Grant:
    """The grant of one instance on a node with these GPUs."""
    return Grant(
        node=node,
        gpus=gpus,
        gpu_milli=request.gpu_milli or WHOLE,
        cpu_milli=request.cpu_milli,
        memory_bytes=request.memory_bytes,
    )
