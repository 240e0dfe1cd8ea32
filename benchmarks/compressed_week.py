"""A part of a real week in compressed time: its jobs, the settings of the scheduler, its replay by the simulator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import real_weeks
from benchmarks.real_weeks import COST_SECONDS
from corral.core.scheduling.ordering.cost import OrderingRules
from corral.core.snapshot.cluster_snapshot import DEFAULT_TIME_CONSTANT
from corral.core.snapshot.installation import DEFAULT_BACKFILL, DEFAULT_PREEMPTION
from corral.simulator.outcome import HOUR, Held, Ran
from corral.simulator.replay import Rules, replay
from corral.simulator.traces.job import TraceJob
from corral.simulator.workload import TimeLimits, Workload


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """A policy of the default queue."""

    name: str
    policy: str
    preempts: bool = False


SETTINGS = (
    Setting(name="fcfs", policy="fcfs"),
    Setting(name="fair-share (default)", policy="fair-share"),
    Setting(name="shortest, preempts", policy="shortest", preempts=True),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Completed:
    """Completion times in seconds of the week, and the number of preemptions."""

    times: Sequence[float]
    preemptions: int

    @property
    def mean(self) -> float:
        return sum(self.times) / len(self.times)


@dataclass(frozen=True, kw_only=True, slots=True)
class Compressed:
    """A part of a week whose hours take `hour` seconds."""

    nodes: int
    node_gpus: int
    jobs: tuple[TraceJob, ...]
    hour: float
    work: Workload

    @property
    def factor(self) -> float:
        return HOUR / self.hour


def compressed(path: Path, since: float, until: float, hour: float) -> Compressed:
    """The jobs that are submitted between two hours of the trace; the first hour is the beginning."""
    whole = real_weeks.workload(path, TimeLimits.NONE)
    factor = HOUR / hour
    jobs = tuple(
        replace(
            job,
            # Digits alone say as little as in the trace.
            name=f"{number:06d}",
            submitted_at=(job.submitted_at - since * HOUR) / factor,
            run_seconds=job.run_seconds / factor,
        )
        for number, (job, _) in enumerate(whole.jobs, start=1)
        if since * HOUR <= job.submitted_at < until * HOUR
    )
    work = Workload(whole.nodes, jobs, Counter(), time_limits=TimeLimits.NONE)
    return Compressed(nodes=len(whole.nodes), node_gpus=whole.gpus // len(whole.nodes), jobs=jobs, hour=hour, work=work)


def rules_of(setting: Setting, factor: float, cost_seconds: float) -> Rules:
    """The settings of a fresh installation, with all times compressed. `cost_seconds` is for each preemption."""
    ordering, preemption, backfill = OrderingRules(), DEFAULT_PREEMPTION, DEFAULT_BACKFILL
    assert preemption.gang_patience_seconds is not None
    return Rules(
        policy=setting.policy,
        preempts=setting.preempts,
        preemption_cost=cost_seconds,
        score_time_constant=DEFAULT_TIME_CONSTANT / factor,
        ordering=replace(ordering, unknown_seconds=ordering.unknown_seconds / factor),
        preemption=replace(
            preemption,
            min_run_seconds=preemption.min_run_seconds / factor,
            patience_seconds=preemption.patience_seconds / factor,
            gang_patience_seconds=preemption.gang_patience_seconds / factor,
        ),
        backfill=replace(backfill, hold_after_seconds=backfill.hold_after_seconds / factor),
    )


def simulated(week: Compressed, setting: Setting, jobs: Sequence[TraceJob], beside_seconds: float = 0.0) -> Completed:
    """The replay of these jobs; each attempt takes `beside_seconds` more than its work."""
    jobs = [replace(job, run_seconds=job.run_seconds + beside_seconds) for job in jobs]
    work = Workload(week.work.nodes, jobs, Counter(), time_limits=TimeLimits.NONE)
    times: list[float] = []
    preemptions: list[int] = []

    def note(event: Held | Ran) -> None:
        if isinstance(event, Ran):
            times.append(event.completion_seconds * week.factor)
            preemptions.append(event.preemptions)

    replay(work, rules_of(setting, week.factor, COST_SECONDS / week.factor + beside_seconds), on_detail=note)
    return Completed(times=times, preemptions=sum(preemptions))
