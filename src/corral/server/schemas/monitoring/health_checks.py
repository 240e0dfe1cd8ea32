"""API schemas: active checks of GPUs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from corral.control.records import CheckCause, CheckRecord, CheckState
from corral.core.monitoring.checks import Check
from corral.server.schemas.base import Body, Text, View, rfc3339, rfc3339_or_none


class HealthCheckCreate(Body):
    target: Annotated[Text, Field(min_length=1, max_length=253)] = Field(description="A GPU, or a node: all its GPUs.")
    checks: Annotated[list[Annotated[Check, Field(strict=False)]], Field(max_length=10)] | None = Field(
        default=None, description="Checks to run; null: the checks of the configuration."
    )


class MeasurementView(View):
    check: Check
    metric: str = Field(description="Such as compute_tflops or memory_gb_per_second; more is better.")
    value: float


class CheckProblemView(View):
    check: Check
    text: str
    is_fatal: bool = Field(description="The GPU computed or stored something wrong; otherwise it is slow.")


class HealthCheckView(View):
    job: str = Field(description="The job that makes the check.")
    gpu: str
    node: str
    model: str
    cause: CheckCause
    requested_by: str
    requested_at: str
    ended_at: str | None
    state: CheckState
    checks: list[Check]
    is_simulated: bool = Field(description="The GPU is virtual: the rates are those of the processor.")
    measurements: list[MeasurementView]
    problems: list[CheckProblemView]
    skipped: list[str] = Field(description="Checks that were left out, each with the reason.")


class HealthChecksStarted(View):
    items: list[HealthCheckView]


class RepairTicketView(View):
    gpu: str
    text: str


def health_check_view(record: CheckRecord) -> HealthCheckView:
    return HealthCheckView(
        job=record.job_id,
        gpu=record.gpu_id,
        node=record.node,
        model=record.model,
        cause=record.cause,
        requested_by=record.requested_by,
        requested_at=rfc3339(record.requested_at),
        ended_at=rfc3339_or_none(record.ended_at),
        state=record.state,
        checks=list(record.checks),
        is_simulated=record.is_simulated,
        measurements=[
            MeasurementView(check=item.check, metric=item.metric, value=item.value) for item in record.measurements
        ],
        problems=[
            CheckProblemView(check=item.check, text=item.text, is_fatal=item.is_fatal) for item in record.problems
        ],
        skipped=list(record.skipped),
    )
