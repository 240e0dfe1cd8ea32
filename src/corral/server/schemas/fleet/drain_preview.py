"""API schemas: the jobs that draining a node would displace."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from corral.core.fleet.drain_preview import DisplacedJob, DrainPreview, Span
from corral.server.schemas.base import Number, View, number, rfc3339, rfc3339_or_none


class SpanView(View):
    p50: str = Field(description="The job has ended by then with a probability of 50 %.")
    p90: str = Field(description="The job has ended by then with a probability of 90 %.")


class DisplacedJobView(View):
    id: str
    name: str
    user: str
    gpus: list[str] = Field(description="Number of the job's GPUs on the node.")
    gpu_count: int
    ends_at: SpanView | None = Field(
        description="Estimated from similar runs that took at least as long; null if there were none."
    )
    limit_at: str | None = Field(description="End of the job's time limit.")
    displaced: Literal["surely", "likely", "possibly", "no"] = Field(
        description="Whether the job is expected to run still at that time."
    )
    lost_gpu_seconds: Number = Field(description="Work since the last known checkpoint.")
    preemptible: bool
    goes_to: list[str] | None = Field(description="Nodes that the job would fit on; null if none is known.")
    back_at: str | None


class StrandedView(View):
    id: str
    name: str
    user: str
    detail: str


class CapacityView(View):
    gpus: int
    free: int


class DrainPreviewView(View):
    node: str = Field(description="The first of the nodes.")
    nodes: list[str]
    at: str
    empty_at: SpanView | None = Field(description="Estimated end of the last job; null if it cannot be estimated.")
    jobs: list[DisplacedJobView]
    stranded: list[StrandedView] = Field(description="Waiting jobs that can run on these nodes only.")
    capacity_after: dict[str, CapacityView] = Field(
        description="Each pool with GPUs on the nodes, and its GPUs without them."
    )


def drain_preview_view(found: DrainPreview) -> DrainPreviewView:
    return DrainPreviewView(
        node=found.nodes[0],
        nodes=list(found.nodes),
        at=rfc3339(found.at),
        empty_at=_span_view(found.empty_at),
        jobs=[_job_view(item) for item in found.jobs],
        stranded=[
            StrandedView(id=item.job.id, name=item.job.name, user=item.job.user, detail=item.detail)
            for item in found.stranded
        ],
        capacity_after={
            pool: CapacityView(gpus=capacity.gpus, free=capacity.free)
            for pool, capacity in found.capacity_after.items()
        },
    )


def _job_view(item: DisplacedJob) -> DisplacedJobView:
    return DisplacedJobView(
        id=item.job.id,
        name=item.job.name,
        user=item.job.user,
        gpus=list(item.gpus),
        gpu_count=len(item.gpus),
        ends_at=_span_view(item.ends_at),
        limit_at=rfc3339_or_none(item.limit_at),
        displaced=item.displaced.value,
        lost_gpu_seconds=number(round(item.lost_gpu_seconds, 1)),
        preemptible=item.job.preemptible,
        goes_to=None if item.goes_to is None else list(item.goes_to),
        back_at=rfc3339_or_none(item.back_at),
    )


def _span_view(span: Span | None) -> SpanView | None:
    return None if span is None else SpanView(p50=rfc3339(span.p50), p90=rfc3339(span.p90))
