"""Pools of the same GPU model, one whose queue waits while another's GPUs stand idle: which GPUs to move where.

Only GPUs that nobody holds are proposed, and never more than the giving pool can spare by what it held on average in
the period, what waits there, and what its queues are guaranteed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from corral.core.alerts.model import Severity
from corral.core.model import WHOLE
from corral.core.quantities import format_duration
from corral.core.reports.analysis.free_gpus import fleet_now, gpu_domains, waiting_jobs
from corral.core.reports.analysis.model import AnalysisInput, Finding, FindingKind
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
        """Free GPUs beyond what it is likely to need again."""
        if self.waiting_gpus:
            return 0
        kept = max(math.ceil(self.mean_held_gpus), self.guaranteed_gpus, self.gpus - self.free)
        return max(0, self.gpus - kept)


def find(seen: AnalysisInput) -> list[Finding]:
    fleet = fleet_now(seen)
    sides = [_side(seen, fleet, domain) for domain in gpu_domains(fleet)]
    found = []
    spared = {side.domain: side.spares for side in sides}
    for taker in sorted(sides, key=lambda side: -side.oldest_wait_seconds):
        if not taker.needs or taker.oldest_wait_seconds < seen.rules.pool_wait_seconds:
            continue
        model = taker.domain[1]
        givers = [side for side in sides if side.domain[1] == model and spared[side.domain]]
        giver = max(givers, key=lambda side: spared[side.domain], default=None)
        if giver is not None:
            count = min(taker.needs, spared[giver.domain])
            spared[giver.domain] -= count
            found.append(_finding(seen, giver, taker, _chosen(giver, count)))
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
        free_by_node={slot.node.id: free for slot in slots if (free := slot.whole_gpus(domain))},
        waiting_gpus=math.ceil(sum(job.request.total_gpu_milli for job in waiting) / WHOLE),
        oldest_wait_seconds=max((seen.until - (job.queued_at or job.created_at) for job in waiting), default=0.0),
        mean_held_gpus=held / span,
        guaranteed_gpus=sum(queue.guaranteed_gpus for queue in seen.queues.values() if queue.pool == pool),
    )


def _chosen(giver: _Side, count: int) -> list[str]:
    """Together on as few nodes as possible: scattered ones are of little use."""
    found: list[str] = []
    for _, gpus in sorted(giver.free_by_node.items(), key=lambda item: (-len(item[1]), item[0])):
        found += gpus[: count - len(found)]
    return found


def _finding(seen: AnalysisInput, giver: _Side, taker: _Side, gpus: list[str]) -> Finding:
    (giving, model), (taking, _) = giver.domain, taker.domain
    wait = format_duration(round(taker.oldest_wait_seconds / 60) * 60)
    return Finding(
        kind=FindingKind.POOL_BALANCE,
        severity=Severity.WARNING,
        subject=taking,
        title=f"Pool {taking} waits for {model} while pool {giving} has idle ones",
        evidence={
            "model": model,
            "waiting_gpus": taker.waiting_gpus,
            "oldest_wait_seconds": taker.oldest_wait_seconds,
            "from_pool": giving,
            "from_pool_gpus": giver.gpus,
            "from_pool_free_gpus": giver.free,
            "from_pool_mean_held_gpus": giver.mean_held_gpus,
            "to_pool": taking,
            "to_pool_gpus": taker.gpus,
            "move_gpus": len(gpus),
        },
        text=(
            f"Jobs in pool {taking} wait for {taker.waiting_gpus} {model}, the oldest for {wait}, and {taker.free} are"
            f" free there. Pool {giving} has {giver.free} of {giver.gpus} free, held {giver.mean_held_gpus:.1f} on"
            " average in the period, and nothing waits there."
        ),
        proposal=f"Move {len(gpus)} idle GPUs: corral pool move-gpus {taking} {' '.join(gpus)}",
        weight=len(gpus),
    )
