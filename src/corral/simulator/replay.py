"""A replay: a workload on a fleet with a set of policies, decided by the live scheduler."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from corral.core.model import DEFAULT_QUEUE, Blocking, Node, Queue
from corral.core.scheduling.ordering.cost import OrderingRules
from corral.core.snapshot.changes import Change, PutNode, PutQueue, PutRules
from corral.core.snapshot.cluster_snapshot import DEFAULT_TIME_CONSTANT, ClusterSnapshot
from corral.core.snapshot.installation import (
    DEFAULT_BACKFILL,
    DEFAULT_PREEMPTION,
    BackfillRules,
    Limits,
    PreemptionRules,
)
from corral.simulator.outcome import Held, Outcome, Ran
from corral.simulator.simulation import Simulation
from corral.simulator.workload import Workload


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """The settings that are compared: order, blocking, placement and preemption of the only queue. By default they are
    those of a fresh installation."""

    policy: str = "fair-share"
    blocking: Blocking = Blocking.BACKFILL
    placement: str = "fragmentation"
    score_time_constant: float = DEFAULT_TIME_CONSTANT
    ordering: OrderingRules = field(default_factory=OrderingRules)
    #: whether waiting jobs preempt running jobs behind them, and when
    preempts: bool = False
    preemption: PreemptionRules = DEFAULT_PREEMPTION
    #: seconds that each preemption adds to the remaining time of its victim
    preemption_cost: float = 0.0
    backfill: BackfillRules = DEFAULT_BACKFILL


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    #: virtual seconds since the first arrival
    at: float
    ended_jobs: int


def _no_progress(progress: Progress) -> None:
    """The progress is not reported."""


def _no_details(event: Ran | Held) -> None:
    """The details are not reported."""


def replay(
    workload: Workload,
    rules: Rules,
    *,
    until: float = math.inf,
    on_detail: Callable[[Ran | Held], None] = _no_details,
    on_progress: Callable[[Progress], None] = _no_progress,
) -> Outcome:
    """Run the workload to its end, or until a time of the trace."""
    since = workload.since
    outcome = Outcome(gpus=workload.gpus, since=since, group_of=workload.groups, on_detail=on_detail)
    simulation = Simulation(
        snapshot=ClusterSnapshot(cluster_of(workload.nodes, rules)),
        arrivals=workload.arrivals(),
        in_order=True,
        until=until,
        watcher=outcome,
        preemption_cost=rules.preemption_cost,
    )
    for step in simulation:
        on_progress(Progress(at=step.at - since, ended_jobs=outcome.ended_jobs))
    outcome.unfinished_jobs = len(simulation.snapshot.jobs)
    return outcome


def cluster_of(nodes: Sequence[Node], rules: Rules) -> list[Change]:
    """The fleet with one queue that has these rules."""
    queue = Queue(
        name=DEFAULT_QUEUE,
        policy=rules.policy,
        blocking=rules.blocking,
        placement=rules.placement,
        preempts=rules.preempts,
    )
    return [
        PutRules(
            limits=Limits(),
            score_time_constant=rules.score_time_constant,
            ordering=rules.ordering,
            preemption=rules.preemption,
            backfill=rules.backfill,
        ),
        PutQueue(queue=queue),
        *(PutNode(node=node) for node in nodes),
    ]
