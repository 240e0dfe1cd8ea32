"""Records of simulations, and of the shadow policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class SimulationState(StrEnum):
    WAITING = "waiting"
    WORKING = "working"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"
    #: its process or the server died over it
    INTERRUPTED = "interrupted"

    @property
    def is_over(self) -> bool:
        return self not in (SimulationState.WAITING, SimulationState.WORKING)


class SimulationSource(StrEnum):
    HISTORY = "history"
    #: jobs that came with the question
    TRACE = "trace"


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulationRecord:
    id: str
    name: str
    state: SimulationState = SimulationState.WAITING
    source: SimulationSource = SimulationSource.HISTORY
    since: float
    until: float
    #: when the history of jobs begins, if that is later than `since`: the replay covers the time from then on
    history_since: float | None = None
    #: what differs from the cluster as it is, as plain data (see `corral.core.whatif.scenario`)
    base: Mapping[str, Any] = field(default_factory=dict)
    candidate: Mapping[str, Any] = field(default_factory=dict)
    created_by: str
    created_at: float
    started_at: float | None = None
    ended_at: float | None = None
    error: str = ""
    #: how many jobs it replays; None until they were read
    jobs: int | None = None
    #: how often it was begun: a question over which the server dies again and again is given up
    starts: int = 0
    #: the most important figures of the result
    headline: Mapping[str, Any] | None = None

    @property
    def replayed_since(self) -> float:
        return self.since if self.history_since is None else self.history_since


@dataclass(frozen=True, kw_only=True, slots=True)
class ShadowRecord:
    """A candidate that decides beside the live policy, and has no effect."""

    changes: Mapping[str, Any]
    started_by: str
    started_at: float
    stopped_at: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DifferenceRecord:
    """A cycle in which the shadow would have decided otherwise."""

    cycle: int
    at: float
    texts: tuple[str, ...]
    #: starts as plain data: job, name, user, nodes with their GPUs, number of GPUs
    live: tuple[Mapping[str, Any], ...] = ()
    shadow: tuple[Mapping[str, Any], ...] = ()
