"""Analysis: possible improvements and the usage of users. Loads the data and calls the core.

Nothing is changed. What was measured lately comes from the history; when the history is unavailable, the rest is shown
all the same, with a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

from corral.control.live.state import State
from corral.control.monitoring.usage_summary import UsageSummary, summarize_usage
from corral.control.ports import History, HistoryUnavailable, Metric, Transaction
from corral.control.records import FlavorRecord, PackageRecord, UsageRecord
from corral.core.fleet.free_gpus import closed_gpus
from corral.core.model import Job, Node, Queue
from corral.core.reports.analysis import analyse
from corral.core.reports.analysis.defragmentation import plan_everywhere
from corral.core.reports.analysis.model import (
    AnalysisInput,
    AnalysisRules,
    DefragmentationPlan,
    Finding,
    PackageSize,
    UsageLine,
)

#: How far back "lately" reaches.
RECENT_SECONDS = 1800.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """The live part, copied from the controller's state: all of it is immutable."""

    nodes: tuple[Node, ...]
    jobs: tuple[Job, ...]
    queues: dict[str, Queue]
    reserved: Set[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class Past:
    """The stored records of the period."""

    usage: tuple[UsageRecord, ...]
    packages: tuple[PackageSize, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Analysis:
    since: float
    until: float
    findings: tuple[Finding, ...]
    usage: UsageSummary
    #: what could not be looked at
    notes: tuple[str, ...] = ()


def snapshot_of(state: State, now: float) -> Snapshot:
    """Quick, as the controller waits for it."""
    snapshot = state.snapshot
    return Snapshot(
        nodes=tuple(snapshot.nodes.values()),
        jobs=tuple(snapshot.jobs.values()),
        queues=dict(snapshot.queues),
        reserved=closed_gpus(snapshot, now),
    )


def past_of(tx: Transaction, since: float, until: float) -> Past:
    flavors = {flavor.name: flavor for flavor in tx.catalog.flavors()}
    return Past(
        usage=tuple(tx.usage.between(since, until)),
        packages=tuple(_package_size(package, flavors) for package in tx.catalog.packages()),
    )


def run_analysis(
    snapshot: Snapshot, past: Past, history: History, since: float, now: float, rules: AnalysisRules
) -> Analysis:
    utilization, temperature, notes = _measured_lately(history, now)
    seen = AnalysisInput(
        since=since,
        until=now,
        nodes=snapshot.nodes,
        jobs=snapshot.jobs,
        queues=snapshot.queues,
        reserved=snapshot.reserved,
        usage=tuple(usage_lines(past.usage)),
        recent_utilization=utilization,
        recent_temperature=temperature,
        recent_seconds=RECENT_SECONDS,
        packages=past.packages,
        rules=rules,
    )
    return Analysis(
        since=since,
        until=now,
        findings=tuple(analyse(seen)),
        usage=summarize_usage(past.usage, since, now, now),
        notes=notes,
    )


def preview_defragmentation(snapshot: Snapshot, now: float, rules: AnalysisRules) -> DefragmentationPlan:
    seen = AnalysisInput(
        since=now,
        until=now,
        nodes=snapshot.nodes,
        jobs=snapshot.jobs,
        queues=snapshot.queues,
        reserved=snapshot.reserved,
        rules=rules,
    )
    return plan_everywhere(seen)


def usage_lines(records: Iterable[UsageRecord]) -> list[UsageLine]:
    """The part of usage records that a decision can be made from."""
    return [
        UsageLine(
            attempt_id=record.attempt_id,
            job_id=record.job_id,
            job_name=record.job_name,
            user=record.user,
            kind=record.kind,
            queue=record.queue,
            pool=record.pool,
            model=record.model,
            nodes=record.nodes,
            gpu_milli=record.gpu_milli,
            gpu_ids=record.gpu_ids,
            queued_at=record.queued_at,
            planned_at=record.planned_at,
            ended_at=record.ended_at,
            measured=record.measured,
        )
        for record in records
    ]


def _measured_lately(history: History, now: float) -> tuple[dict[str, float], dict[str, float], tuple[str, ...]]:
    try:
        utilization = history.means(Metric.GPU_UTILIZATION, now - RECENT_SECONDS, now)
        temperature = history.means(Metric.GPU_TEMPERATURE, now - RECENT_SECONDS, now)
    except HistoryUnavailable as error:
        return {}, {}, (f"Idle jobs and hot GPUs were not looked for: the history cannot be asked ({error}).",)
    return utilization, temperature, ()


def _package_size(package: PackageRecord, flavors: dict[str, FlavorRecord]) -> PackageSize:
    flavor = flavors.get(package.flavor) if package.flavor is not None else None
    return PackageSize(
        name=package.name,
        gpus=package.gpus,
        gpu_milli=package.gpu_milli,
        models=flavor.models if flavor is not None else (),
    )
