"""Analysis: findings with evidence and a proposal, one file per kind.

A finder returns its findings in the input, the largest first. A new kind of finding is one file and one line in
`FINDERS`.
"""

from __future__ import annotations

from collections.abc import Callable

from corral.core.alerts.model import SEVERITY_ORDER
from corral.core.reports.analysis.fragmentation import find as find_fragmentation
from corral.core.reports.analysis.hot_gpus import find as find_hot_gpus
from corral.core.reports.analysis.idle_allocations import find as find_idle_allocations
from corral.core.reports.analysis.low_utilization import find as find_low_utilization
from corral.core.reports.analysis.model import AnalysisInput, Finding, FindingKind
from corral.core.reports.analysis.oversized_requests import find as find_oversized_requests
from corral.core.reports.analysis.pool_balance import find as find_pool_balance
from corral.core.reports.analysis.starving_queues import find as find_starving_queues

Finder = Callable[[AnalysisInput], list[Finding]]

FINDERS: dict[FindingKind, Finder] = {
    FindingKind.IDLE_ALLOCATION: find_idle_allocations,
    FindingKind.LOW_UTILIZATION: find_low_utilization,
    FindingKind.OVERSIZED_REQUEST: find_oversized_requests,
    FindingKind.FRAGMENTATION: find_fragmentation,
    FindingKind.HOT_GPU: find_hot_gpus,
    FindingKind.POOL_BALANCE: find_pool_balance,
    FindingKind.STARVING_QUEUE: find_starving_queues,
}


def analyse(seen: AnalysisInput) -> list[Finding]:
    """All findings: the most severe first, then kind by kind, the largest first."""
    found = [
        finding
        for finder in FINDERS.values()
        for finding in sorted(finder(seen), key=lambda finding: -finding.weight)[: seen.rules.most_findings]
    ]
    # Sorting is stable, so that the order within a severity stays.
    return sorted(found, key=lambda finding: -SEVERITY_ORDER.index(finding.severity))
