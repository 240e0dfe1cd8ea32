"""What one scheduling cycle decided."""

from __future__ import annotations

import math
from dataclasses import dataclass

from corral.core.claims import Claim
from corral.core.lines import LineKey
from corral.core.model import Allocation


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

    @property
    def is_known(self) -> bool:
        return math.isfinite(self.at)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    at: float
    starts: tuple[Start, ...] = ()
    planned: tuple[PlannedStart, ...] = ()
    #: whose turn it is under a limit that many share
    claims: tuple[Claim, ...] = ()
    #: when time alone will change the answer (the end of a back-off); None if only an event can
    wake_at: float | None = None

    def planned_start(self, job_id: str) -> PlannedStart | None:
        return next((planned for planned in self.planned if planned.job_id == job_id), None)
