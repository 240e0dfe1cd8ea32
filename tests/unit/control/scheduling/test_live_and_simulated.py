"""The live system and the simulator decide alike: the same jobs at the same times, through the use cases of the server
and a store on one side, and in a simulation on the other, start, are preempted and continue at the same moments on the
same GPUs."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from corral.control.jobs.checkpoints import Saved, note_saved
from corral.control.live.cycle import run_cycle
from corral.control.live.unit_of_work import Caller
from corral.control.ports import AttemptPhase, Store
from corral.control.system.policies import Policies
from corral.core.model import EndReason, Job, JobKind, Queue, Request
from corral.core.scheduling.plan.plan import Plan
from corral.core.snapshot.changes import PutQueue
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import BackfillRules, PreemptionRules
from corral.simulator.replay import Rules, cluster_of
from corral.simulator.simulation import Arrival, Simulation
from tests.unit.control.world import TWO_NODES, Desk, draft

JOBS = 60
BEGIN = 1000.0
PREEMPTION = PreemptionRules(
    enabled=True, min_run_seconds=60.0, patience_seconds=30.0, gang_patience_seconds=1500.0, margin=0.1
)
BACKFILL = BackfillRules(protected=1, hold_after_seconds=3600.0)

#: what was decided: when, for which job, and on which GPUs; a preemption has none
Decision = tuple[float, str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """A job of the trace."""

    user: str
    at: float
    seconds: float
    nodes: int
    gpus: int


def trace(seed: int) -> list[Wanted]:
    """Small jobs, whole nodes and gangs of three users, who ask for a fifth more than the eight GPUs can do."""
    draw = random.Random(seed)
    jobs, at = [], BEGIN
    for _ in range(JOBS):
        nodes, gpus = draw.choice([(1, 1), (1, 1), (1, 2), (1, 4), (2, 4)])
        seconds = float(round(draw.lognormvariate(6.0, 1.0)) + 1)
        jobs.append(Wanted(user=draw.choice(["ann", "bob", "cho"]), at=at, seconds=seconds, nodes=nodes, gpus=gpus))
        at += float(round(draw.expovariate(1.2 * 8 / (nodes * gpus * 650))))
    return jobs


def decided(plan: Plan) -> list[Decision]:
    starts = [(plan.at, start.job_id, start.allocation.gpus) for start in plan.starts]
    return [*starts, *((plan.at, preemption.job_id, ()) for preemption in plan.preemptions)]


def simulated(wanted: Sequence[Wanted], queue: Queue) -> list[Decision]:
    arrivals = [
        Arrival(
            job=Job(
                id=f"j-{number}",
                name=f"train-{number}",
                user=one.user,
                kind=JobKind.DISTRIBUTED if one.nodes > 1 else JobKind.TRAINING,
                request=Request(nodes=one.nodes, gpus=one.gpus),
                created_at=one.at,
                grace_seconds=0.0,
            ),
            run_seconds=one.seconds,
        )
        for number, one in enumerate(wanted, start=1)
    ]
    rules = Rules(policy=queue.policy, preempts=queue.preempts, preemption=PREEMPTION, backfill=BACKFILL)
    steps = Simulation(snapshot=ClusterSnapshot(cluster_of(TWO_NODES, rules)), arrivals=arrivals)
    return [decision for step in steps for decision in decided(step.plan)]


@dataclass(slots=True)
class Live:
    """The same jobs through the use cases. Programs save when they are warned; the server finds that afterwards."""

    desk: Desk
    wanted: Sequence[Wanted]
    decisions: list[Decision] = field(default_factory=list)
    left: dict[str, float] = field(default_factory=dict)
    #: time, job and number of the attempt
    ends: list[tuple[float, str, int]] = field(default_factory=list)

    def run(self) -> None:
        coming, wake_at = list(self.wanted)[::-1], math.inf
        while coming or self.ends or wake_at < math.inf:
            now = min(coming[-1].at if coming else math.inf, self.ends[0][0] if self.ends else math.inf, wake_at)
            self.desk.now = now
            self._end_until(now)
            while coming and coming[-1].at <= now:
                self._submit(coming.pop())
            plan = self.desk.do(run_cycle, self.desk.journal)
            self.decisions += decided(plan)
            for start in plan.starts:
                self._begin(self.desk.job(start.job_id))
            for preemption in plan.preemptions:
                self._preempt(self.desk.job(preemption.job_id))
            # What a start or a preemption changed is planned at once, as by the server.
            changed = bool(plan.starts or plan.preemptions) and self._is_waiting()
            wake_at = now if changed else math.inf if plan.wake_at is None else plan.wake_at

    def _is_waiting(self) -> bool:
        return any(job.allocation is None for job in self.desk.state.snapshot.jobs.values())

    def _submit(self, one: Wanted) -> None:
        name = f"train-{len(self.left) + 1}"
        asked = draft(name, one.gpus, one.nodes, grace_seconds=0.0)
        (job,) = self.desk.submit(asked, caller=Caller(name=one.user))
        self.left[job.id] = one.seconds

    def _begin(self, job: Job) -> None:
        self.desk.hear(job, AttemptPhase.RUNNING)
        # A first checkpoint at once, as in the simulation: a preemption costs this job little.
        self.desk.do(note_saved, [Saved(job_id=job.id, at=self.desk.now)])
        heapq.heappush(self.ends, (self.desk.now + self.left[job.id], job.id, job.attempt))

    def _preempt(self, job: Job) -> None:
        assert job.started_at is not None
        self.left[job.id] -= self.desk.now - job.started_at
        self.desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=143)
        self.desk.do(note_saved, [Saved(job_id=job.id, at=self.desk.now)])

    def _end_until(self, now: float) -> None:
        while self.ends and self.ends[0][0] <= now:
            _, job_id, attempt = heapq.heappop(self.ends)
            job = self.desk.job(job_id)
            if job.attempt == attempt and job.started_at is not None:
                self.desk.hear(job, AttemptPhase.ENDED, EndReason.EXIT_CODE, exit_code=0)


@pytest.mark.parametrize(
    ("policy", "preempts"), [("fcfs", False), ("fair-share", False), ("weighted", False), ("shortest", True)]
)
def test_live_and_simulated_decisions_are_equal(store: Store, policy: str, preempts: bool) -> None:
    queue = Queue(name="default", policy=policy, placement="fragmentation", preempts=preempts)
    wanted = trace(seed=7)
    desk = Desk(store, Policies(preemption=PREEMPTION, backfill=BACKFILL))
    desk.do(lambda work: work.change(PutQueue(queue=queue)))
    live = Live(desk, wanted)
    live.run()
    expected = simulated(wanted, queue)
    assert live.decisions == expected
    assert sum(not gpus for _, _, gpus in expected) >= (5 if preempts else 1), "jobs are preempted and come back"
