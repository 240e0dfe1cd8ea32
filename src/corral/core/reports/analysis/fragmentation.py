"""Stranded GPUs: too few are free on each node for the waiting jobs, or for the usual requests."""

from __future__ import annotations

from corral.core.alerts.model import Severity
from corral.core.counts import counted
from corral.core.model import Job
from corral.core.reports.analysis.defragmentation import plan_moves
from corral.core.reports.analysis.model import AnalysisInput, DefragmentationPlan, Finding, FindingKind
from corral.core.reports.analysis.present_fleet import (
    fleet_seen,
    free_on,
    gpu_domains,
    typical_sizes,
    unreserved,
    waiting_jobs,
)
from corral.core.scheduling.placement.search import could_ever_fit, find_place
from corral.core.snapshot.node_index import Domain, DomainIndex, Fleet, places


def find(seen: AnalysisInput) -> list[Finding]:
    fleet = fleet_seen(seen)
    found = []
    for domain in gpu_domains(fleet):
        index = fleet.domains[domain]
        free = _free_by_node(seen, fleet, index)
        blocked = _blocked(seen, fleet, domain, sum(free.values()))
        sizes = typical_sizes(seen, domain)
        waiting = {job.request.gpus for job in waiting_jobs(seen, domain) if job.request.gpus}
        wanted = blocked.request.gpus if blocked is not None else max(sizes, default=0)
        largest = max(free.values(), default=0)
        # Enough in total, but not on one node.
        if wanted <= largest or sum(free.values()) < wanted:
            continue
        smallest = min({*sizes, *waiting}, default=0)
        unusable = sum(count for count in free.values() if count < smallest)
        plan = plan_moves(seen, domain)
        found.append(_finding(domain, free, wanted, unusable, blocked, plan))
    return found


def _free_by_node(seen: AnalysisInput, fleet: Fleet, index: DomainIndex) -> dict[str, int]:
    found = {}
    for place in places(index.members):
        slot = fleet.slots[place]
        count = len(free_on(seen, slot, index.domain))
        if count:
            found[slot.node.id] = count
    return found


def _blocked(seen: AnalysisInput, fleet: Fleet, domain: Domain, free: int) -> Job | None:
    """The oldest waiting job for which enough GPUs are free in total, but not on one node."""
    for job in waiting_jobs(seen, domain):
        request = job.request
        if not request.gpus or request.is_gang or request.gpus > free:
            continue
        if find_place(fleet, unreserved(seen, job), domain[0], "pack") is None and could_ever_fit(
            fleet, job, domain[0]
        ):
            return job
    return None


def _finding(
    domain: Domain, free: dict[str, int], wanted: int, unusable: int, blocked: Job | None, plan: DefragmentationPlan
) -> Finding:
    pool, model = domain
    total, largest = sum(free.values()), max(free.values())
    evidence: dict[str, float | int | str] = {
        "free_gpus": total,
        "nodes_with_free_gpus": len(free),
        "most_free_on_one_node": largest,
        "wanted_gpus": wanted,
        "unusable_gpus": unusable,
        "moves": len(plan.moves),
        "freed_nodes": len(plan.frees),
    }
    if blocked is not None:
        evidence["waiting_job"] = blocked.id
    demand = f"{blocked.id} waits for" if blocked is not None else "jobs here usually ask for up to"
    text = (
        f"{total} {model} are free in pool {pool}, on {counted(len(free), 'node')}, and at most {largest} on one node;"
        f" {demand} {wanted} on one node."
    )
    if unusable:
        text += f" {unusable} of the free GPUs are of no use to any size that is asked for."
    return Finding(
        kind=FindingKind.FRAGMENTATION,
        severity=Severity.WARNING if blocked is not None else Severity.INFO,
        subject=f"{pool}/{model}",
        title=f"{total} free {model} of pool {pool} are scattered",
        evidence=evidence,
        text=text,
        proposal=_proposal(plan),
        weight=total,
    )


def _proposal(plan: DefragmentationPlan) -> str:
    if not plan.moves:
        return (
            "No small set of moves would help. Queues that fill nodes one after another keep free GPUs together:"
            " corral queue edit NAME --placement pack."
        )
    count = "1 move" if len(plan.moves) == 1 else f"{len(plan.moves)} moves"
    freed = ", ".join(node.node for node in plan.frees)
    return (
        f"{count} would free {freed} as a whole, at the cost of at most"
        f" {plan.lost_gpu_hours:.1f} GPU-hours. Look at them: corral analyse defragmentation."
    )
