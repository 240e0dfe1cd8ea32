"""What one scheduling cycle decided."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from corral.core.model import Allocation, Ceiling
from corral.core.scheduling.limits.claims import Claim
from corral.core.snapshot.waiting_lines import LineKey


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    job_id: str
    allocation: Allocation


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedStart:
    """The protected start of the first job that waits in a line.

    What it needs and is free already is held for it; others may use that only if they are gone by then.
    """

    job_id: str
    line: LineKey
    #: infinite when it waits for something that has no known end
    at: float
    nodes: tuple[str, ...]
    #: free resources that are kept for it until then
    held: Allocation
    #: whether it rests on time limits alone; else on predictions too, or on jobs that will have to give way
    is_firm: bool = True

    @property
    def is_known(self) -> bool:
        return math.isfinite(self.at)


class ResizeCause(StrEnum):
    #: others wait, and what it has beyond its minimum lets them start
    OTHERS = "others"
    #: it does not use what it has
    UNUSED = "unused"
    #: it uses what it has, and GPUs beside it are idle
    IDLE_GPUS = "idle-gpus"


@dataclass(frozen=True, kw_only=True, slots=True)
class Resize:
    """An elastic job goes on with other GPUs of its node."""

    job_id: str
    allocation: Allocation
    cause: ResizeCause
    #: the jobs that it makes room for
    for_jobs: tuple[str, ...] = ()
    #: what it shall not have again for a while, when it did not use it
    ceiling: Ceiling | None = None


class PreemptionRule(StrEnum):
    #: its queue has GPUs guaranteed, and others have borrowed them
    GUARANTEE = "guarantee"
    #: its owner has GPUs reserved, and others use them
    RESERVATION = "reservation"
    #: it stands before the other in a queue whose order preempts
    ORDER = "order"
    #: the other passed it by backfill, and runs longer than was predicted
    OVERRUN = "overrun"
    #: the other goes on elsewhere, so that there is room for it in one place
    MOVE = "move"


@dataclass(frozen=True, kw_only=True, slots=True)
class Preemption:
    """A running job goes back to the queue, or on elsewhere, and another one starts on what it held."""

    job_id: str
    #: who starts
    for_job: str
    rule: PreemptionRule
    #: GPU-seconds of its work since its last checkpoint: lost, unless it saves when it is warned
    lost_gpu_seconds: float
    #: the rule with its numbers, in words for both sides
    detail: str
    #: where it goes on as soon as it has saved, if it is only moved
    to: Allocation | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    at: float
    starts: tuple[Start, ...] = ()
    resizes: tuple[Resize, ...] = ()
    preemptions: tuple[Preemption, ...] = ()
    planned: tuple[PlannedStart, ...] = ()
    #: whose turn it is under a limit that many share
    claims: tuple[Claim, ...] = ()
    #: when time alone will change the answer (a back-off ends, a resize is due); None if only an event can
    wake_at: float | None = None

    def planned_start(self, job_id: str) -> PlannedStart | None:
        return next((planned for planned in self.planned if planned.job_id == job_id), None)
