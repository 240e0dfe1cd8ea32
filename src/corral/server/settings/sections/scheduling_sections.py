"""The sections about the order, the place and the size of jobs: `allocation`, `scheduling`, `scaling`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from corral.core.model import Blocking
from corral.core.scheduling.ordering import POLICIES as ORDERING_POLICIES
from corral.core.scheduling.placement import POLICIES as PLACEMENT_POLICIES
from corral.core.snapshot.installation import DEFAULT_RACK_LABEL
from corral.server.settings.sections.section_base import Fraction, Section, Texts
from corral.server.settings.sections.section_rules import (
    one_of,
)

OrderingPolicy = Annotated[str, one_of(ORDERING_POLICIES, "ordering policy")]
PlacementPolicy = Annotated[str, one_of(PLACEMENT_POLICIES, "placement policy")]
Weight = Annotated[float, Field(ge=0, le=1000)]


class AllocationSettings(Section):
    #: how GPUs are allocated: `static`, only to the owners of reservations; `dynamic`, on demand; `hybrid`,
    #: both
    strategy: Literal["static", "dynamic", "hybrid"] = "hybrid"
    #: the part of each pool that permanent reservations may take together under `hybrid`
    reserved_ratio: Fraction = 0.3
    #: whether the share `reserved_ratio` is reserved without an operator under `hybrid`; null: if the configuration
    #: sets the strategy
    reserve_share: bool | None = None
    #: users and groups (`group:NAME`) for which it is reserved
    reserved_for: Texts = ()
    #: which node a job gets; the first setting of the queue `default`
    placement: PlacementPolicy = "fragmentation"
    #: the node label with the rack; empty: gangs are placed without regard to racks
    rack_label: Annotated[str, Field(max_length=253)] = DEFAULT_RACK_LABEL


class WeightSettings(Section):
    """Weights of the policy `weighted`."""

    #: cost of each level of priority
    priority: Weight = 1.0
    #: cost of each doubling of the GPUs
    size: Weight = 1.0
    #: cost of each doubling of the expected run time
    runtime: Weight = 1.0
    #: above 0: the weight of the waiting time prevents starvation
    age: Annotated[float, Field(ge=0.001, le=1000)] = 1.0


class SchedulingSettings(Section):
    #: the order of jobs; the first setting of the queue `default`
    algorithm: OrderingPolicy = "fair-share"
    #: whether a later job may pass a waiting one without delaying it, or all later jobs of the same GPU model
    #: wait; for queues that are created without a choice
    blocking: Annotated[Blocking, Field(strict=False)] = Blocking.BACKFILL
    #: every user sees the names of all waiting jobs in the queue, not only of the user's own
    show_queued_names: bool = False
    #: jobs that may wait in all queues together
    max_queue_size: Annotated[int, Field(ge=1)] | None = 100_000
    #: priority of jobs that set none; smaller goes first
    default_priority: Annotated[int, Field(ge=0, le=100)] = 5
    #: the time constant of the fair-share score
    score_settling_hours: Annotated[float, Field(gt=0, le=8760)] = 6.0
    weights: WeightSettings = Field(default_factory=WeightSettings)
    #: under `shortest`: GPU-hours of work that one hour of waiting compensates
    ageing: Annotated[float, Field(ge=0.001, le=1_000_000)] = 0.01
    #: under `shortest`: exponent of the number of GPUs in a job's cost; 1 is GPU-time
    size_power: Annotated[float, Field(ge=0, le=2)] = 1.0
    #: under `shortest`, in queues whose order preempts: the margin, as a share of the victim's cost, by which a job
    #: must be ahead of a victim without a time limit
    unknown_margin: Annotated[float, Field(ge=0, lt=1)] = 0.85
    #: jobs of each waiting line with a planned start, which backfilled jobs must not delay
    protected_starts: Annotated[int, Field(ge=1, le=100)] = 1
    #: waiting time from which on free GPUs are held for a planned start that rests on predictions and not on time
    #: limits
    hold_after_hours: Annotated[float, Field(ge=0, le=8760)] = 168.0
    #: until a single-node job has waited for so many times as long as its time limit, jobs behind may delay its planned
    #: start; 0: never
    backfill_slack: Annotated[float, Field(ge=0, le=1000)] = 0.0
    #: predicted run time of a job without a time limit and without similar completed jobs
    unknown_run_hours: Annotated[float, Field(gt=0, le=8760)] = 1.0
    #: smallest share of a GPU that a job may request, so that one GPU is not split into thousands of shares
    smallest_share: Annotated[float, Field(ge=0.001, le=1)] = 0.01


class ScalingSettings(Section):
    #: elastic jobs may be submitted and are resized
    enabled: bool = True
    #: least GPUs of elastic jobs, and the minimum of jobs that set none
    min_gpus: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    #: most GPUs of elastic jobs, and the maximum of jobs that set none
    max_gpus: Annotated[int, Field(ge=1, le=1_000_000)] = 4
    #: use of its GPUs at which a job may grow
    scale_up_threshold: Fraction = 0.8
    #: use of its GPUs below which a job releases GPUs
    scale_down_threshold: Fraction = 0.3
    #: period over which the utilisation of a job's GPUs is measured
    window_minutes: Annotated[float, Field(gt=0, le=10_080)] = 5
    #: minimum time between two resizes of a job, unless other jobs need its GPUs
    interval_minutes: Annotated[float, Field(ge=0, le=10_080)] = 10

    @model_validator(mode="after")
    def _in_order(self) -> ScalingSettings:
        if self.min_gpus > self.max_gpus:
            raise ValueError(f"min_gpus ({self.min_gpus}) must not be more than max_gpus ({self.max_gpus})")
        if self.scale_down_threshold >= self.scale_up_threshold:
            raise ValueError("scale_down_threshold must be below scale_up_threshold")
        return self
