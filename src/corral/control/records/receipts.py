"""What is kept of a preemption: for both sides to see, long after it is over."""

from __future__ import annotations

from dataclasses import dataclass

from corral.core.scheduling.plan.plan import PreemptionRule


@dataclass(frozen=True, kw_only=True, slots=True)
class ReceiptRecord:
    """One job has given way to another. It outlives both."""

    #: given by the store, growing without repetition
    id: int = 0
    #: when the job was told to save and end
    at: float
    rule: PreemptionRule
    #: the rule with its numbers, in words for both sides
    detail: str
    #: who gave way
    job_id: str
    job_name: str
    user: str
    #: the attempt that was ended
    attempt: int
    #: who starts instead
    for_job: str
    for_job_name: str
    for_user: str
    #: what it held
    gpu_milli: int
    #: from when on its work was saved nowhere
    work_since: float
    #: GPU-seconds of that work: what it could lose when it was told, and what it lost once `saved` is known
    lost_gpu_seconds: float
    #: whether its program saved between the warning and its end; None until that is known
    saved: bool | None = None
    ended_at: float | None = None
    #: when its next attempt was up
    back_at: float | None = None
    #: something of it is still to come
    is_open: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class ReceiptFilter:
    """Which receipts a list shows; an empty field lets every one through."""

    #: of jobs of this user, on either side: whoever else is asked for
    of: str | None = None
    #: the same, as it was asked for
    user: str | None = None
    rule: PreemptionRule | None = None
    #: warned then or later
    since: float | None = None
