"""Past jobs for a replay: their request, their arrival, and their actual run time."""

from __future__ import annotations

from dataclasses import dataclass

from corral.core.model import Job


@dataclass(frozen=True, kw_only=True, slots=True)
class PastJob:
    #: not started yet; `created_at` is its arrival in the replay
    job: Job
    run_seconds: float
    #: the group of its user at that time; "" without one
    group: str = ""
    #: False for a job that ran or waited already at the start of the window: it only fills the cluster
    is_measured: bool = True
    #: the job had not ended, so that its run time is a prediction
    is_estimated: bool = False
    #: the actual wait for the first start; None if not known
    waited_seconds: float | None = None
    #: the measured utilization of its GPUs, 0 to 1
    busy: float | None = None
