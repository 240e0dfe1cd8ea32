"""Jobs of the past, as they are replayed: what was asked for, when, and how long it really ran."""

from __future__ import annotations

from dataclasses import dataclass

from corral.core.model import Job


@dataclass(frozen=True, kw_only=True, slots=True)
class PastJob:
    #: not started yet; `created_at` is when it arrives in a replay
    job: Job
    run_seconds: float
    #: of its user then; "" without one
    group: str = ""
    #: False for one that held or waited already when the window began: it only makes the cluster as full as it was
    is_measured: bool = True
    #: it had not ended, so that its run time is a prediction
    is_estimated: bool = False
    #: how long it really waited for its first start; None where nobody knows
    waited_seconds: float | None = None
    #: how busy its GPUs were measured to be, 0 to 1
    busy: float | None = None
