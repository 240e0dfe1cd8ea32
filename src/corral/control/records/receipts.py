"""Records of preemptions, which both owners can read later."""

from __future__ import annotations

from dataclasses import dataclass

from corral.core.scheduling.plan.plan import PreemptionRule


@dataclass(frozen=True, kw_only=True, slots=True)
class ReceiptRecord:
    """One job was preempted for another. Kept when both jobs are deleted."""

    #: given by the store, growing without repetition
    id: int = 0
    #: when the job was asked to save and end
    at: float
    rule: PreemptionRule
    #: the rule with its numbers, as a text for both owners
    detail: str
    #: the victim
    job_id: str
    job_name: str
    user: str
    #: the attempt that was ended
    attempt: int
    #: the job that starts instead
    for_job: str
    for_job_name: str
    for_user: str
    #: what it held
    gpu_milli: int
    #: from when on its work was saved nowhere
    work_since: float
    #: GPU-seconds of that work: what it could lose when it was asked to save, and what it lost once `saved` is known
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
    """The filter of a list of receipts; an empty field selects every receipt."""

    #: only of jobs of this user, on either side
    of: str | None = None
    #: the same, as it was asked for
    user: str | None = None
    rule: PreemptionRule | None = None
    #: warned then or later
    since: float | None = None
