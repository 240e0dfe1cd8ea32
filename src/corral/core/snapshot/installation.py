"""What an operator sets for the whole installation: limits, and when jobs are resized, interrupted or passed."""

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
    #: measured use from which on more GPUs are worth having, and below which fewer will do
    up: float = 0.8
    down: float = 0.3
    #: at least so long between a resize and the next one that nobody else needs
    interval_seconds: float = 600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PreemptionRules:
    """When running jobs are interrupted for others."""

    enabled: bool = False
    #: an attempt runs at least so long before it may be preempted
    min_run_seconds: float = 600.0
    #: under `preempts`, a job must be ahead by so much of the other's cost: a hair's breadth is not worth a restart
    margin: float = 0.0
    #: under `preempts`, jobs that save their work may be moved to other GPUs, so that what is free lies together
    moves: bool = False


class Strategy(StrEnum):
    """How GPUs are given out."""

    #: only to those for whom they are reserved by name
    STATIC = "static"
    #: on demand; nothing is reserved standing
    DYNAMIC = "dynamic"
    #: a part of every pool may be reserved standing, the rest is shared
    HYBRID = "hybrid"


@dataclass(frozen=True, kw_only=True, slots=True)
class AllocationRules:
    strategy: Strategy = Strategy.HYBRID
    #: the part of a pool that standing reservations may take together under `hybrid`
    reserved_ratio: float = 0.3
    #: nodes with the same value of this label stand together, and gangs are kept together; empty means that none do
    rack_label: str = DEFAULT_RACK_LABEL


@dataclass(frozen=True, kw_only=True, slots=True)
class BackfillRules:
    #: how many jobs of each line get a protected start; behind them later ones may pass
    protected: int = 1
