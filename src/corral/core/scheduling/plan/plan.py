"""The plan: everything that one scheduling cycle decided, as immutable values."""

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
    """The planned start of one of the first waiting jobs of a line.

    Resources that the job needs and that are free already are held for it; other jobs may use them only if they end by
    then.
    """

    job_id: str
    line: LineKey
    #: the latest start that the scheduler guarantees; infinite if the job waits for allocations without a known end
    at: float
    nodes: tuple[str, ...]
    #: free resources that are held for the job until then
    held: Allocation
    #: whether it follows from time limits alone; else also from predictions, or from jobs that will be preempted
    is_firm: bool = True
    #: GPU time for which free GPUs that the job needs are idle until then; if it is too much, they are not held
    idle_gpu_seconds: float = 0.0
    #: by how much jobs behind may delay the start, which is contained in `at`
    slack_seconds: float = 0.0

    @property
    def is_known(self) -> bool:
        return math.isfinite(self.at)

    @property
    def soonest_at(self) -> float:
        """The start if no job passes."""
        return self.at - self.slack_seconds


class ResizeCause(StrEnum):
    #: other jobs wait, and can start on the GPUs that the job has beyond its minimum
    OTHERS = "others"
    #: the job does not use its GPUs
    UNUSED = "unused"
    #: the job uses its GPUs, and GPUs of its node are idle
    IDLE_GPUS = "idle-gpus"


@dataclass(frozen=True, kw_only=True, slots=True)
class Resize:
    """An elastic job continues with more or fewer GPUs of its nodes."""

    job_id: str
    allocation: Allocation
    cause: ResizeCause
    #: the jobs that get room
    for_jobs: tuple[str, ...] = ()
    #: if the job did not use its GPUs: the number that it does not get again for a while
    ceiling: Ceiling | None = None


class PreemptionRule(StrEnum):
    #: the waiting job's queue is guaranteed GPUs that other queues have borrowed
    GUARANTEE = "guarantee"
    #: the waiting job's owner has reserved GPUs that other users' jobs use
    RESERVATION = "reservation"
    #: the waiting job stands before the victim in a queue whose order preempts
    ORDER = "order"
    #: the victim was backfilled before the waiting job, and runs longer than predicted
    OVERRUN = "overrun"
    #: the victim is moved to another node, so that the waiting job has room on one node
    MOVE = "move"
    #: the job is moved to another node, so that whole nodes are free; an operator has approved it
    DEFRAGMENTATION = "defragmentation"
    #: the job is moved to another node because its owner or an operator asked for it
    MIGRATION = "migration"
    #: the job leaves a node that an operator drains, and that must be empty by now
    DRAIN = "drain"


@dataclass(frozen=True, kw_only=True, slots=True)
class Preemption:
    """A running job is requeued or moved, and another job starts on the resources that it held."""

    job_id: str
    #: the job that starts
    for_job: str
    rule: PreemptionRule
    #: GPU-seconds of work since the victim's last checkpoint: lost, unless it saves when it is warned
    lost_gpu_seconds: float
    #: describes the rule with its numbers, for the owners of both jobs
    detail: str
    #: if the victim is moved: its new place, where it continues as soon as it has saved
    to: Allocation | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    at: float
    starts: tuple[Start, ...] = ()
    resizes: tuple[Resize, ...] = ()
    preemptions: tuple[Preemption, ...] = ()
    planned: tuple[PlannedStart, ...] = ()
    #: claims on limits that many jobs share
    claims: tuple[Claim, ...] = ()
    #: when the next cycle is needed without an event (a back-off ends, a resize is due); None if only events matter
    wake_at: float | None = None

    def planned_start(self, job_id: str) -> PlannedStart | None:
        return next((planned for planned in self.planned if planned.job_id == job_id), None)
