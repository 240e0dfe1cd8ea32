"""Records of active checks of GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from corral.core.monitoring.checks import Check, Measurement, Problem


class CheckCause(StrEnum):
    #: an operator wants to know
    REQUESTED = "requested"
    #: a GPU is to return from quarantine if it passes
    RETURN = "return"
    #: it is time for it, and the GPU is idle
    SCHEDULE = "schedule"


class CheckState(StrEnum):
    #: the check's job waits or runs
    OPEN = "open"
    PASSED = "passed"
    FAILED = "failed"
    #: nothing was found out: the job was stopped, or the program could not check anything
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckRecord:
    """One check of one GPU, by the job that makes it."""

    job_id: str
    gpu_id: str
    node: str
    model: str
    cause: CheckCause
    requested_by: str
    requested_at: float
    checks: tuple[Check, ...]
    state: CheckState = CheckState.OPEN
    ended_at: float | None = None
    #: whether the rates are those of the processor: the GPU is a virtual one
    is_simulated: bool = False
    measurements: tuple[Measurement, ...] = ()
    problems: tuple[Problem, ...] = ()
    #: why something was not checked
    skipped: tuple[str, ...] = ()
