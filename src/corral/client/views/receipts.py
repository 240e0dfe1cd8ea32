"""Receipts of preemptions, as the API shows them."""

from __future__ import annotations

from typing import TypedDict


class ExpectedBackView(TypedDict):
    p50: str
    p90: str


class ReceiptView(TypedDict):
    id: int
    at: str
    rule: str
    detail: str
    job: str
    job_name: str
    user: str
    attempt: int
    for_job: str
    for_job_name: str
    for_user: str
    gpus: float
    lost_gpu_seconds: float
    saved: bool | None
    ended_at: str | None
    back_at: str | None
    expected_back: ExpectedBackView | None


class JobReceiptView(ReceiptView):
    #: preempted or preempting
    role: str
