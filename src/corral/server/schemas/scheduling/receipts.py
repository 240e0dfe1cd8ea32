"""API schemas: receipts of preemptions."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from corral.control.records import ReceiptRecord
from corral.core.model import WHOLE
from corral.core.scheduling.plan.plan import PreemptionRule
from corral.server.schemas.base import Number, View, number, rfc3339, rfc3339_or_none


class ExpectedBackView(View):
    """Time at which the job is expected to run again: by p50 in half of the cases, by p90 in nine of ten."""

    p50: str
    p90: str


class ReceiptView(View):
    """One job was preempted for another. Both owners and operators see the receipt."""

    id: int
    at: str = Field(description="Time at which the job was asked to save and end.")
    rule: PreemptionRule
    detail: str = Field(description="The rule with its numbers.")
    job: str = Field(description="The job that was preempted.")
    job_name: str
    user: str
    attempt: int = Field(description="The attempt that was ended.")
    for_job: str = Field(description="The job that starts instead.")
    for_job_name: str
    for_user: str
    gpus: Number = Field(description="GPUs that the job held.")
    lost_gpu_seconds: Number = Field(
        description="Work that was not saved when the job was asked to end; once `saved` is known, the lost work."
    )
    saved: bool | None = Field(
        description="Whether the program saved between the warning and its end; null until known."
    )
    ended_at: str | None = Field(description="Time at which the attempt was over and the job waited again.")
    back_at: str | None = Field(description="Time at which the next attempt was running.")
    expected_back: ExpectedBackView | None = Field(description="While the job waits: when it is expected to run again.")


class JobReceiptView(ReceiptView):
    role: Literal["preempted", "preempting"] = Field(
        description="Whether the job was preempted, or other jobs were preempted for it."
    )


def receipt_view(receipt: ReceiptRecord, expected: ExpectedBackView | None = None) -> ReceiptView:
    return ReceiptView(
        id=receipt.id,
        at=rfc3339(receipt.at),
        rule=receipt.rule,
        detail=receipt.detail,
        job=receipt.job_id,
        job_name=receipt.job_name,
        user=receipt.user,
        attempt=receipt.attempt,
        for_job=receipt.for_job,
        for_job_name=receipt.for_job_name,
        for_user=receipt.for_user,
        gpus=number(receipt.gpu_milli / WHOLE),
        lost_gpu_seconds=number(receipt.lost_gpu_seconds),
        saved=receipt.saved,
        ended_at=rfc3339_or_none(receipt.ended_at),
        back_at=rfc3339_or_none(receipt.back_at),
        expected_back=expected,
    )


def job_receipt_view(receipt: ReceiptRecord, job_id: str, expected: ExpectedBackView | None = None) -> JobReceiptView:
    role: Literal["preempted", "preempting"] = "preempted" if receipt.job_id == job_id else "preempting"
    return JobReceiptView(**receipt_view(receipt, expected).model_dump(), role=role)
