"""What could be better: findings with evidence and a proposal, one file each.

A finder looks at the whole input and gives what it finds, the largest first. Another kind of finding is another file
and another line in `FINDERS`.
"""

from __future__ import annotations

from collections.abc import Callable

from corral.core.alerts.model import SEVERITY_ORDER
from corral.core.analysis import (
    fragmentation,
    hot_gpus,
    idle_allocations,
    low_utilization,
    oversized_requests,
    pool_balance,
    starving_queues,
)
from corral.core.analysis.model import AnalysisInput, Finding, FindingKind

Finder = Callable[[AnalysisInput], list[Finding]]

FINDERS: dict[FindingKind, Finder] = {
    FindingKind.IDLE_ALLOCATION: idle_allocations.find,
    FindingKind.LOW_UTILIZATION: low_utilization.find,
    FindingKind.OVERSIZED_REQUEST: oversized_requests.find,
    FindingKind.FRAGMENTATION: fragmentation.find,
    FindingKind.HOT_GPU: hot_gpus.find,
    FindingKind.POOL_BALANCE: pool_balance.find,
    FindingKind.STARVING_QUEUE: starving_queues.find,
}


def analyse(seen: AnalysisInput) -> list[Finding]:
    """All findings: the most severe first, then kind by kind, the largest first."""
    found = [
        finding
        for finder in FINDERS.values()
        for finding in sorted(finder(seen), key=lambda one: -one.weight)[: seen.rules.most_findings]
    ]
    # Sorting is stable, so that the order within a severity stays.
    return sorted(found, key=lambda finding: -SEVERITY_ORDER.index(finding.severity))
