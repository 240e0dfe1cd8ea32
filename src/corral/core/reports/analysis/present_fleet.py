"""Free GPUs and waiting jobs, as the scheduler sees them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from corral.core.model import WHOLE, Job
from corral.core.reports.analysis.model import AnalysisInput
from corral.core.snapshot.node_index import Domain, Fleet, Slot


def fleet_seen(seen: AnalysisInput) -> Fleet:
    """The fleet with the present allocations, which all readers share."""
    return seen.once("fleet", lambda: fleet_now(seen))


def fleet_now(seen: AnalysisInput) -> Fleet:
    """A new fleet with the present allocations, which the caller may change."""
    fleet = Fleet(seen.nodes)
    for job in seen.jobs:
        if job.allocation is not None:
            fleet.take(job.allocation)
    return fleet


def free_on(seen: AnalysisInput, slot: Slot, domain: Domain) -> list[str]:
    """Whole GPUs of a node that a job could get: neither held nor reserved."""
    return [gpu for gpu in slot.whole_gpus(domain) if gpu not in seen.reserved]


def unreserved(seen: AnalysisInput, job: Job) -> Job:
    """The job for a search that leaves reserved GPUs out."""
    return replace(job, avoid_gpus=(*job.avoid_gpus, *seen.reserved)) if seen.reserved else job


def gpu_domains(fleet: Fleet) -> list[Domain]:
    """Pools and models that have usable GPUs, in the order of their names."""
    return sorted(domain for domain, index in fleet.domains.items() if domain[1] and index.members)


def waiting_jobs(seen: AnalysisInput, domain: Domain) -> list[Job]:
    """Jobs that wait for GPUs of this pool and model, the oldest first."""
    pool, model = domain
    return seen.once(
        ("waiting", domain),
        lambda: [job for job in seen.waiting_in(pool) if not job.request.models or model in job.request.models],
    )


def typical_sizes(seen: AnalysisInput, domain: Domain) -> list[int]:
    """Whole GPUs on one node that jobs of this pool and model usually ask for, smallest first."""
    pool, model = domain
    counts = Counter(
        len(line.gpu_ids) // line.nodes
        for line in seen.usage
        if line.pool == pool and line.model == model and line.gpu_milli == len(line.gpu_ids) * WHOLE
    )
    total = sum(counts.values())
    return sorted(size for size, count in counts.items() if count >= seen.rules.typical_part * total)
