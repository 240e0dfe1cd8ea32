"""Settings of the whole installation: limits, and rules for scaling, preemption, allocation and backfill."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

DEFAULT_RACK_LABEL = "rack"


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Limits of the whole installation, in whole GPUs; None means no limit."""

    max_gpus_per_user: int | None = None
    max_gpus_per_job: int | None = None
    max_total_gpus: int | None = None
    max_seconds: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingRules:
    """When elastic jobs grow and shrink."""

    enabled: bool = True
    #: measured utilization from which on a job gets more GPUs, and below which fewer are enough
    up: float = 0.8
    down: float = 0.3
    #: the least time between two resizes that no other job needs
    interval_seconds: float = 600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PreemptionRules:
    """When running jobs are preempted."""

    enabled: bool = False
    #: the least run time of an attempt before it may be preempted
    min_run_seconds: float = 600.0
    #: under `preempts`, the least lead of a job, as a part of the victim's cost: a tiny lead is not worth a restart
    margin: float = 0.0
    #: under `preempts` and an order by run time, how long a job waits before it preempts: within minutes other jobs end
    #: anyway, and a preemption for each arrival is saved
    patience_seconds: float = 0.0
    #: under `preempts`, jobs that write checkpoints may be moved to other GPUs, so that free GPUs are on one node
    moves: bool = False
    #: a gang that has waited for so long takes back nodes from younger jobs that passed it and write checkpoints;
    #: None means never
    gang_patience_seconds: float | None = None


class Strategy(StrEnum):
    """How GPUs are allocated."""

    #: only to users and groups that have reserved them
    STATIC = "static"
    #: on demand; there are no standing reservations
    DYNAMIC = "dynamic"
    #: standing reservations may take a part of every pool, the rest is shared
    HYBRID = "hybrid"


@dataclass(frozen=True, kw_only=True, slots=True)
class AllocationRules:
    strategy: Strategy = Strategy.HYBRID
    #: the part of a pool that standing reservations may take together under `hybrid`
    reserved_ratio: float = 0.3
    #: nodes with the same value of this label are in one rack, and gangs are placed in few racks; empty: no racks
    rack_label: str = DEFAULT_RACK_LABEL


@dataclass(frozen=True, kw_only=True, slots=True)
class BackfillRules:
    #: how many jobs of each line get a planned start; jobs behind them are backfilled. Stored under this name.
    protected: int = 1
    #: from which waiting time on free GPUs are held for a planned start that rests on predictions. Before that, jobs
    #: behind may use them: held GPUs are idle, and the prediction may be wrong.
    hold_after_seconds: float = 0.0
    #: Jobs behind may delay the firm planned start of a single-node job until it has waited for so many times as long
    #: as its time limit; 0 means not at all. The planned start of a gang is never delayed.
    slack: float = 0.0


#: The rules of a new installation. Chosen by measurements on real weeks: docs/measurements/real-weeks.md.
DEFAULT_PREEMPTION = PreemptionRules(enabled=True, patience_seconds=300.0, gang_patience_seconds=4 * 3600.0)
DEFAULT_BACKFILL = BackfillRules(protected=1, hold_after_seconds=7 * 86_400.0)
