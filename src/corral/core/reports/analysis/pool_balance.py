"""Pools of the same GPU model where jobs wait in one pool while GPUs of another are idle: which GPUs to move.

Only free GPUs are proposed, and never more than the source pool can spare: what it held on average in the period, what
waits there, and what its queues are guaranteed stays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from corral.core.alerts.model import Severity
from corral.core.model import WHOLE
from corral.core.quantities import format_duration
from corral.core.reports.analysis.model import AnalysisInput, Finding, FindingKind
from corral.core.reports.analysis.present_fleet import fleet_seen, free_on, gpu_domains, waiting_jobs
from corral.core.snapshot.node_index import Domain, Fleet, places


@dataclass(frozen=True, kw_only=True, slots=True)
class _Side:
    """One pool's GPUs of one model."""

    domain: Domain
    gpus: int
    free_by_node: dict[str, list[str]]
    waiting_gpus: int
    oldest_wait_seconds: float
    mean_held_gpus: float
    guaranteed_gpus: int

    @property
    def free(self) -> int:
        return sum(len(gpus) for gpus in self.free_by_node.values())

    @property
    def needs(self) -> int:
        return max(0, self.waiting_gpus - self.free)

    @property
    def spares(self) -> int:
        """Free GPUs beyond the likely need of the pool."""
        if self.waiting_gpus:
            return 0
        kept = max(math.ceil(self.mean_held_gpus), self.guaranteed_gpus, self.gpus - self.free)
        return max(0, self.gpus - kept)


def find(seen: AnalysisInput) -> list[Finding]:
    fleet = fleet_seen(seen)
    sides = [_side(seen, fleet, domain) for domain in gpu_domains(fleet)]
    found = []
    spared = {side.domain: side.spares for side in sides}
    for target in sorted(sides, key=lambda side: -side.oldest_wait_seconds):
        if not target.needs or target.oldest_wait_seconds < seen.rules.pool_wait_seconds:
            continue
        model = target.domain[1]
        sources = [side for side in sides if side.domain[1] == model and spared[side.domain]]
        source = max(sources, key=lambda side: spared[side.domain], default=None)
        if source is not None:
            count = min(target.needs, spared[source.domain])
            spared[source.domain] -= count
            found.append(_finding(seen, source, target, _chosen(source, count)))
    return found


def _side(seen: AnalysisInput, fleet: Fleet, domain: Domain) -> _Side:
    pool, model = domain
    index = fleet.domains[domain]
    slots = [fleet.slots[place] for place in places(index.members)]
    waiting = waiting_jobs(seen, domain)
    span = max(1.0, seen.until - seen.since)
    held = sum(
        line.gpu_seconds(seen.since, seen.until) for line in seen.usage if line.pool == pool and line.model == model
    )
    return _Side(
        domain=domain,
        gpus=sum(len(slot.domains[domain]) for slot in slots),
        free_by_node={slot.node.id: free for slot in slots if (free := free_on(seen, slot, domain))},
        waiting_gpus=math.ceil(sum(job.request.total_gpu_milli for job in waiting) / WHOLE),
        oldest_wait_seconds=max((seen.until - (job.queued_at or job.created_at) for job in waiting), default=0.0),
        mean_held_gpus=held / span,
        guaranteed_gpus=sum(queue.guaranteed_gpus for queue in seen.queues.values() if queue.pool == pool),
    )


def _chosen(source: _Side, count: int) -> list[str]:
    """Chooses GPUs on as few nodes as possible: scattered GPUs are of little use."""
    found: list[str] = []
    for _, gpus in sorted(source.free_by_node.items(), key=lambda item: (-len(item[1]), item[0])):
        found += gpus[: count - len(found)]
    return found


def _finding(seen: AnalysisInput, source: _Side, target: _Side, gpus: list[str]) -> Finding:
    (from_pool, model), (to_pool, _) = source.domain, target.domain
    wait = format_duration(round(target.oldest_wait_seconds / 60) * 60)
    return Finding(
        kind=FindingKind.POOL_BALANCE,
        severity=Severity.WARNING,
        subject=to_pool,
        title=f"Pool {to_pool} waits for {model} while pool {from_pool} has idle ones",
        evidence={
            "model": model,
            "waiting_gpus": target.waiting_gpus,
            "oldest_wait_seconds": target.oldest_wait_seconds,
            "from_pool": from_pool,
            "from_pool_gpus": source.gpus,
            "from_pool_free_gpus": source.free,
            "from_pool_mean_held_gpus": source.mean_held_gpus,
            "to_pool": to_pool,
            "to_pool_gpus": target.gpus,
            "move_gpus": len(gpus),
        },
        text=(
            f"Jobs in pool {to_pool} wait for {target.waiting_gpus} {model}, the oldest for {wait}, and {target.free} "
            f"are free there. Pool {from_pool} has {source.free} of {source.gpus} free, held "
            f"{source.mean_held_gpus:.1f} on average in the period, and nothing waits there."
        ),
        proposal=f"Move {len(gpus)} idle GPUs: corral pool move-gpus {to_pool} {' '.join(gpus)}",
        weight=len(gpus),
    )
