"""Long and dense histories: thousands of jobs of all shapes on a crowded cluster that fails now and then.

A seed makes a history. Unlike those of `strategies` it is not made to shrink: it is made to get far, into states that
short histories never reach. Every plan is checked before it happens.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from random import Random

from corral.core.jobs.lifecycle import (
    Ended,
    MoveRequested,
    Planned,
    ResizeRequested,
    StartRequested,
    StopRequested,
    Up,
    advance,
)
from corral.core.model import (
    WHOLE,
    Blocking,
    Elastic,
    EndReason,
    Gpu,
    GpuHealth,
    Job,
    JobKind,
    JobState,
    Node,
    NodeState,
    Prediction,
    Queue,
    Request,
)
from corral.core.scheduling.cycle.scheduler import schedule
from corral.core.scheduling.plan.plan import Plan
from corral.core.scheduling.plan.plan_check import check_plan
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.snapshot.changes import DropJob, PutJob, PutNode, PutQueue, PutReservation, PutRules
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.installation import BackfillRules, Limits, PreemptionRules, ScalingRules

USERS = tuple(f"user-{number}" for number in range(6))


@dataclass
class DenseHistory:
    seed: int
    jobs: int
    nodes: int = 10
    moves: int = 0
    preemptions: int = 0
    resizes: int = 0
    starts: int = 0
    failures: int = 0
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.now = 0.0
        self.snapshot = ClusterSnapshot()
        #: when, a number, the job and the attempt: its program ends by itself, or has saved
        self._ends: list[tuple[float, int, str, int]] = []
        self._count = 0
        self._broken: list[tuple[float, str]] = []
        self._build()

    # ---------------------------------------------------------------- the cluster

    def _build(self) -> None:
        random = self.random
        #: half of all clusters have one queue in which short jobs preempt and many ask for whole nodes
        self._is_cramped = random.random() < 0.5
        min_run = random.choice((0.0, 30.0, 600.0))
        moves = self._is_cramped or random.random() < 0.8
        preemption = PreemptionRules(enabled=True, min_run_seconds=min_run, moves=moves)
        self.snapshot.apply(
            [
                PutRules(
                    limits=Limits(max_gpus_per_user=random.choice((None, None, 40))),
                    score_time_constant=3600.0,
                    preemption=preemption,
                    scaling=ScalingRules(enabled=random.random() < 0.7, interval_seconds=60.0),
                    backfill=BackfillRules(protected=random.choice((1, 1, 4))),
                )
            ]
        )
        for number in range(self.nodes):
            count = 8 if self._is_cramped else random.choice((4, 8, 8))
            gpus = tuple(Gpu(id=f"n{number}/{index}", index=index, model="A100") for index in range(count))
            self.snapshot.apply(
                [PutNode(node=Node(id=f"n{number}", cpu_milli=64 * WHOLE, memory_bytes=1 << 38, gpus=gpus))]
            )
        policies = ("shortest", "shortest", "priority", "weighted", "fair-share")
        for name in ("main", "side"):
            queue = Queue(
                name=name,
                policy=random.choice(policies),
                preempts=random.random() < 0.85,
                blocking=random.choice((Blocking.BACKFILL, Blocking.BACKFILL, Blocking.STRICT)),
                guaranteed_gpus=random.choice((0, 0, 8)),
                placement=random.choice(("pack", "spread", "fragmentation")),
            )
            if self._is_cramped:
                queue = replace(queue, policy="shortest", preempts=True, guaranteed_gpus=0)
            self.snapshot.apply([PutQueue(queue=queue)])
        if random.random() < 0.3:
            reserved = Reservation(name="r", pool="default", gpus=("n0/0", "n0/1", "n1/0"), users=USERS[:1])
            self.snapshot.apply([PutReservation(reservation=reserved)])

    # ---------------------------------------------------------------- what happens

    def run(self) -> None:
        """Runs until all jobs have arrived and most are over, or a plan has a problem."""
        random = self.random
        while self._count < self.jobs or self._ends:
            for _ in range(random.choice((0, 1, 1, 2, 5)) if self._count < self.jobs else 0):
                self._arrive()
            if random.random() < 0.02:
                self._break_something()
            self._mend()
            plan = schedule(self.snapshot, self.now)
            self.problems = check_plan(self.snapshot, plan)
            if self.problems:
                return
            self._apply(plan)
            if self._count >= self.jobs and not plan.starts and not self._ends:
                return
            crowd = self.snapshot.count(JobState.QUEUED)
            self.now += random.choice((0.0, 1.0, 20.0, 60.0, 300.0)) * (1 + crowd // 40)
            self._end_until(self.now)

    def _arrive(self) -> None:
        random = self.random
        self._count += 1
        shape = random.random()
        gpus = random.choice((1, 1, 2, 2, 4, 8, 8) if self._is_cramped else (1, 1, 1, 2, 2, 4, 8))
        request, elastic, kind = Request(gpus=gpus), None, JobKind.TRAINING
        if self._is_cramped and shape < 0.45:
            pass
        elif shape < 0.25:
            request = Request(gpu_milli=random.choice((10, 100, 250, 500)), cpu_milli=random.choice((0, 2000)))
        elif shape < 0.35:
            request, kind = Request(nodes=random.choice((2, 2, 3)), gpus=random.choice((1, 4))), JobKind.DISTRIBUTED
        elif shape < 0.5:
            request, elastic = Request(gpus=1), Elastic(min_gpus=1, max_gpus=random.choice((2, 4, 8)))
        elif shape < 0.53:
            request = Request(cpu_milli=4000)
        seconds = random.choice((20.0, 200.0, 2_000.0, 20_000.0))
        job = Job(
            id=f"j-{self._count}",
            name=f"job-{self._count}",
            user=random.choice(USERS),
            kind=kind,
            queue="main" if self._is_cramped else random.choice(("main", "main", "side")),
            request=request,
            elastic=elastic,
            priority=random.choice((1, 5, 5, 9)),
            created_at=self.now,
            time_limit_seconds=random.choice((None, None, seconds * 2)),
            grace_seconds=random.choice((0.0, 30.0)),
            preemptible=random.random() < 0.9,
            predicted=None
            if random.random() < 0.3
            else Prediction(p50_seconds=seconds, p90_seconds=seconds * 1.5, samples=3),
            max_retries=1_000,
        )
        self._put(advance(job, StartRequested(at=self.now)).job)

    def _put(self, job: Job) -> None:
        self.snapshot.apply([PutJob(job=job)])

    def _apply(self, plan: Plan) -> None:
        for start in plan.starts:
            self.starts += 1
            planned = advance(self.snapshot.jobs[start.job_id], Planned(at=self.now, allocation=start.allocation)).job
            self._up(planned)
        for resize in plan.resizes:
            self.resizes += 1
            job = self.snapshot.jobs[resize.job_id]
            resizing = advance(
                job, ResizeRequested(at=self.now, allocation=resize.allocation, ceiling=resize.ceiling)
            ).job
            self._put(resizing)
            if not job.is_resizing:
                self._expect(resizing, self.random.choice((0.0, 5.0, 200.0)))
        for preemption in plan.preemptions:
            job = self.snapshot.jobs[preemption.job_id]
            if preemption.to is None:
                self.preemptions += 1
                stop = StopRequested(at=self.now, reason=EndReason.PREEMPTED, for_job=preemption.for_job)
                leaving = advance(job, stop).job
            else:
                self.moves += 1
                move = MoveRequested(at=self.now, allocation=preemption.to, for_job=preemption.for_job)
                leaving = advance(job, move).job
            self._put(leaving)
            self._expect(leaving, self.random.choice((0.0, 5.0, 30.0, 400.0)))

    def _up(self, job: Job) -> None:
        """Most are up at once, and know how to save; what an elastic one uses is measured."""
        random = self.random
        up = advance(job, Up(at=self.now)).job
        saved = self.now if random.random() < 0.7 else up.checkpointed_at
        used = random.choice((None, 0.05, 0.95)) if up.elastic is not None else None
        self._put(replace(up, checkpointed_at=saved, utilization=used))
        self._expect(up, random.choice((5.0, 100.0, 1_000.0, 10_000.0)))

    def _expect(self, job: Job, seconds: float) -> None:
        heapq.heappush(self._ends, (self.now + seconds, job.serial, job.id, job.attempt))

    def _end_until(self, now: float) -> None:
        while self._ends and self._ends[0][0] <= now:
            _, _, job_id, attempt = heapq.heappop(self._ends)
            job = self.snapshot.jobs.get(job_id)
            if job is not None and job.attempt == attempt and job.state.holds_resources:
                self._end(job, Ended(at=now, reason=EndReason.EXIT_CODE, exit_code=0))

    def _end(self, job: Job, ended: Ended) -> None:
        after = advance(job, ended).job
        if after.state.is_ended:
            self.snapshot.apply([DropJob(id=job.id)])
        elif after.allocation is not None:
            self._up(after)
        else:
            self._put(after)

    # ---------------------------------------------------------------- what fails

    def _break_something(self) -> None:
        random = self.random
        self.failures += 1
        node = self.snapshot.nodes[f"n{random.randrange(self.nodes)}"]
        kind = random.random()
        if kind < 0.4:
            self.snapshot.apply([PutNode(node=replace(node, state=NodeState.DOWN))])
            self._lose({node.id}, EndReason.NODE_LOST)
        elif kind < 0.7:
            gpu = random.choice(node.gpus)
            gpus = tuple(replace(one, health=GpuHealth.FAILED) if one is gpu else one for one in node.gpus)
            self.snapshot.apply([PutNode(node=replace(node, gpus=gpus))])
            self._lose({gpu.id}, EndReason.GPU_FAILED)
        elif kind < 0.85:
            self.snapshot.apply([PutNode(node=replace(node, state=NodeState.CORDONED))])
        else:
            holding = sorted(job.id for job in self.snapshot.jobs.values() if job.state.holds_resources)
            for job_id in random.sample(holding, min(3, len(holding))):
                self._end(self.snapshot.jobs[job_id], Ended(at=self.now, reason=EndReason.LOST))
        self._broken.append((self.now + random.choice((100.0, 3_000.0)), node.id))

    def _lose(self, names: set[str], reason: EndReason) -> None:
        for job in list(self.snapshot.jobs.values()):
            held = job.allocation.grants if job.allocation is not None else ()
            if any(grant.node in names or names & {*grant.gpus} for grant in held):
                self._end(job, Ended(at=self.now, reason=reason, failed=tuple(names)))

    def _mend(self) -> None:
        due = [name for at, name in self._broken if at <= self.now]
        self._broken = [(at, name) for at, name in self._broken if at > self.now]
        for name in due:
            node = self.snapshot.nodes[name]
            gpus = tuple(replace(gpu, health=GpuHealth.HEALTHY) for gpu in node.gpus)
            self.snapshot.apply([PutNode(node=replace(node, state=NodeState.READY, gpus=gpus))])
            for job in list(self.snapshot.jobs.values()):
                if job.state is JobState.QUEUED and (job.avoid_nodes or job.avoid_gpus):
                    self._put(replace(job, avoid_nodes=(), avoid_gpus=()))
