"""The cluster snapshot: everything that can change a scheduling decision, indexed and kept current by changes.

It holds the nodes, the live jobs (queued, or holding resources), queues, quotas, scores, reservations, volumes and the
settings of the installation. From these it keeps indexes: free resources by node (`fleet`), waiting jobs in order
(`lines`), ends of allocations (`releases`), and counters for limits and quotas (`held`). `schedule(snapshot, now)`,
explanations, estimated starts and simulations read nothing else, so that the same content always leads to the same
decisions, whatever the order of the changes was.

`apply` is the only way to change a snapshot permanently; `trial` changes it within a `with` block and undoes the
changes at the end. Both cost what changed, not the size of the cluster.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from corral.core.fleet.resources import at_least
from corral.core.model import Job, JobKind, JobState, Node, Queue
from corral.core.people.budgets import Account, Budget, Unit
from corral.core.people.membership import Membership
from corral.core.people.quota import Quota
from corral.core.people.scores import Score, score_at
from corral.core.scheduling.ordering.cost import OrderingRules
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.snapshot.changes import (
    Change,
    DropBudget,
    DropJob,
    DropMembership,
    DropNode,
    DropQueue,
    DropReservation,
    DropVolume,
    PutBudget,
    PutJob,
    PutLastNode,
    PutMembership,
    PutMix,
    PutNode,
    PutQueue,
    PutQuota,
    PutReservation,
    PutRules,
    PutScore,
    PutVolume,
)
from corral.core.snapshot.expected_releases import AllocationEnds, Release
from corral.core.snapshot.held_resources import Usage
from corral.core.snapshot.installation import AllocationRules, BackfillRules, Limits, PreemptionRules, ScalingRules
from corral.core.snapshot.node_index import Fleet
from corral.core.snapshot.request_mix import Mix
from corral.core.snapshot.running_order import Ranking
from corral.core.snapshot.trial import Trial
from corral.core.snapshot.waiting_lines import Line, LineKey, line_of
from corral.core.storage.volume_use import Mounted
from corral.core.storage.volumes import Volume

DEFAULT_TIME_CONSTANT = 6 * 3600.0


class ClusterSnapshot:
    def __init__(self, changes: Iterable[Change] = ()) -> None:
        self.nodes: dict[str, Node] = {}
        #: live jobs: queued ones and those that hold resources
        self.jobs: dict[str, Job] = {}
        self.queues: dict[str, Queue] = {}
        self.quotas: dict[tuple[str, JobKind], Quota] = {}
        self.budgets: dict[tuple[Account, Unit], Budget] = {}
        #: by user; a simulation may have none, and then all queues are open to all users
        self.memberships: dict[str, Membership] = {}
        self.scores: dict[tuple[str, str], Score] = {}
        self.limits = Limits()
        self.score_time_constant = DEFAULT_TIME_CONSTANT
        self.scaling = ScalingRules()
        self.ordering = OrderingRules()
        self.preemption = PreemptionRules()
        self.allocation = AllocationRules()
        self.backfill = BackfillRules()
        self.reservations: dict[str, Reservation] = {}
        #: by id
        self.volumes: dict[str, Volume] = {}
        self.last_node = ""
        self.last_gpu = ""
        #: by pool: the mix of recent requests
        self.mixes: dict[str, Mix] = {}
        self.lines: dict[LineKey, Line] = {}
        #: resources that jobs hold now, and that all live jobs hold or ask for; of elastic jobs the latter counts the
        #: minimum, because they give back the rest when other jobs need it
        self.held = Usage()
        self.active = Usage()
        #: by GPU model, "" for none: how many jobs hold resources
        self.holders: Counter[str] = Counter()
        #: elastic jobs that hold resources
        self.elastic: set[str] = set()
        #: by the job that they were preempted for: victims that are stopping, and victims that wait for their next
        #: start
        self.victims_stopping: dict[str, set[str]] = {}
        self.victims_requeued: dict[str, set[str]] = {}
        #: jobs that hold resources, by their queue
        self.holding: dict[str, set[str]] = {}
        #: queues that have GPUs guaranteed, by their pool
        self.guaranteeing: dict[str, set[str]] = {}
        self._ends = AllocationEnds(self.jobs)
        #: ends of allocations, soonest first; see `ends`
        self.releases = self._ends.known
        #: grows with every applied change
        self.revision = 0
        #: the latest changes, for a reader that keeps sums of its own; None without such a reader
        self.unread: deque[Change] | None = None
        #: grows with every change that decides which users may start on which GPUs: reservations, groups, rules, GPUs
        self.reserving_revision = 0
        #: a cache of `windows` between cycles
        self.reserving: object = None
        self._fleet: Fleet | None = None
        self._scored_models: dict[str, set[str]] = {}
        self._by_state: dict[JobState, int] = dict.fromkeys(JobState, 0)
        self._queued_in: dict[str, int] = {}
        #: by queue whose order preempts; built when first asked for
        self._rankings: dict[str, Ranking] = {}
        #: a cache: see `last_requeued_at`
        self._last_requeued: dict[str, float] = {}
        self.apply(changes)

    # ---------------------------------------------------------------- reading

    @property
    def fleet(self) -> Fleet:
        """Free resources. Rebuilt only after nodes were added or removed."""
        if self._fleet is None:
            self._fleet = Fleet(self.nodes.values())
            self._fleet.rack_label = self.allocation.rack_label
            for _, _, job_id in self.releases:
                allocation = self.jobs[job_id].allocation
                assert allocation is not None
                self._fleet.take(allocation)
            self._fleet.put_last(self.last_node, self.last_gpu)
            for pool, mix in self.mixes.items():
                self._fleet.put_mix(pool, mix)
        return self._fleet

    def score(self, user: str, model: str, now: float) -> float:
        """A user's score for a line's model: of that model, of several added up, or of all ("any")."""
        if model == "cpu":
            return 0.0
        models = self._scored_models.get(user, ()) if model == "any" else model.split("|")
        return math.fsum(
            score_at(self.scores[user, model], now, self.score_time_constant)
            for model in models
            if (user, model) in self.scores
        )

    @property
    def mounted(self) -> Mounted:
        """The volumes that jobs with resources write and read."""
        return self.held.mounted

    def count(self, state: JobState) -> int:
        return self._by_state[state]

    def queued_in(self, queue: str) -> int:
        """How many jobs wait in a queue: those in its lines, and those that wait for other jobs."""
        return self._queued_in.get(queue, 0)

    def ranking(self, queue: Queue) -> Ranking:
        """The jobs of a queue that may be preempted by its order."""
        found = self._rankings.get(queue.name)
        if found is None:
            jobs = (self.jobs[job_id] for job_id in self.holding.get(queue.name, ()))
            found = self._rankings[queue.name] = Ranking(queue.policy, self.ordering, jobs)
        return found

    def ends(self, now: float) -> Iterator[Release]:
        """The ends of allocations from now on, soonest first. A job that runs longer than predicted gets a new expected
        end; a job beyond its time limit is about to end."""
        return self._ends.coming(now, self.revision)

    def overrunning(self, now: float) -> list[Job]:
        """Running jobs without a time limit that run longer than predicted."""
        return self._ends.overrunning(now, self.revision)

    def next_likely_end(self, now: float) -> float | None:
        """The next end that is a prediction, if it is among the next 100 ends."""
        return self._ends.next_likely(now, self.revision)

    def last_requeued_at(self, job_id: str) -> float:
        """When the last of the victims of a job was requeued that wait for their next start."""
        known = self._last_requeued.get(job_id)
        if known is None:
            gone = (self.jobs[other].queued_at or 0.0 for other in self.victims_requeued.get(job_id, ()))
            known = self._last_requeued[job_id] = max(gone, default=-math.inf)
        return known

    # ---------------------------------------------------------------- changing

    def apply(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self.revision += 1
            if self.unread is not None:
                self.unread.append(change)
            match change:
                case PutJob(job=job):
                    self._put_job(job)
                case DropJob(id=job_id):
                    self._drop_job(job_id)
                case PutScore(user=user, model=model, score=score):
                    self.scores[user, model] = score
                    self._scored_models.setdefault(user, set()).add(model)
                case PutNode(node=node):
                    self._put_node(node)
                case DropNode(id=node_id):
                    self.nodes.pop(node_id, None)
                    self._fleet = None
                    self.reserving_revision += 1
                case PutQueue(queue=queue):
                    self._put_queue(queue)
                case DropQueue(name=name):
                    gone = self.queues.pop(name, None)
                    if gone is not None:
                        _leave(self.guaranteeing, gone.pool, name)
                    self._rebuild_lines(name)
                case PutQuota(user=user, kind=kind, quota=quota):
                    if quota == Quota():
                        self.quotas.pop((user, kind), None)
                    else:
                        self.quotas[user, kind] = quota
                case PutBudget(budget=budget):
                    self.budgets[budget.account, budget.unit] = budget
                case DropBudget(account=account, unit=unit):
                    self.budgets.pop((account, unit), None)
                case PutMembership(user=user, membership=membership):
                    self.memberships[user] = membership
                    self.reserving_revision += 1
                case DropMembership(user=user):
                    self.memberships.pop(user, None)
                    self.reserving_revision += 1
                case PutRules() as rules:
                    self._put_rules(rules)
                case PutLastNode(id=node_id, gpu=gpu_id):
                    self.last_node, self.last_gpu = node_id, gpu_id
                    if self._fleet is not None:
                        self._fleet.put_last(node_id, gpu_id)
                case PutMix(pool=pool, mix=mix):
                    self._put_mix(pool, mix)
                case PutReservation(reservation=reservation):
                    self.reservations[reservation.name] = reservation
                    self.reserving_revision += 1
                case DropReservation(name=name):
                    self.reservations.pop(name, None)
                    self.reserving_revision += 1
                case PutVolume(volume=volume):
                    self.volumes[volume.id] = volume
                case DropVolume(id=volume_id):
                    self.volumes.pop(volume_id, None)

    def contents(self) -> Iterator[Change]:
        """Changes that make an empty snapshot equal to this one."""
        yield from self.settings()
        yield from (PutNode(node=node) for node in self.nodes.values())
        yield from (PutScore(user=user, model=model, score=score) for (user, model), score in self.scores.items())
        yield from (PutJob(job=job) for job in self.jobs.values())

    def settings(self) -> Iterator[Change]:
        """All content except nodes, jobs and scores: it is small and seldom changes."""
        yield PutRules(
            limits=self.limits,
            score_time_constant=self.score_time_constant,
            scaling=self.scaling,
            ordering=self.ordering,
            preemption=self.preemption,
            allocation=self.allocation,
            backfill=self.backfill,
        )
        yield PutLastNode(id=self.last_node, gpu=self.last_gpu)
        yield from (PutMix(pool=pool, mix=mix) for pool, mix in self.mixes.items())
        yield from (PutQueue(queue=queue) for queue in self.queues.values())
        yield from (PutReservation(reservation=reservation) for reservation in self.reservations.values())
        yield from (PutQuota(user=user, kind=kind, quota=quota) for (user, kind), quota in self.quotas.items())
        yield from (PutBudget(budget=budget) for budget in self.budgets.values())
        yield from (PutMembership(user=user, membership=member) for user, member in self.memberships.items())
        yield from (PutVolume(volume=volume) for volume in self.volumes.values())

    @contextmanager
    def trial(self) -> Iterator[Trial]:
        """Try out starts, holds and resizes; all of them are undone when the block ends."""
        trial = Trial(self.fleet, self.held)
        try:
            yield trial
        finally:
            trial.undo()

    # ---------------------------------------------------------------- inside

    def _put_job(self, job: Job) -> None:
        if not job.state.is_active:
            raise ValueError(f"job {job.id} is {job.state}: only live jobs are part of the snapshot")
        self._drop_job(job.id)
        self.jobs[job.id] = job
        self._by_state[job.state] += 1
        self.active.add(at_least(job))
        if job.state is JobState.QUEUED:
            self._queued_in[job.queue] = self._queued_in.get(job.queue, 0) + 1
            _enter(self.victims_requeued, job.preempted_for, job.id)
            self._last_requeued.pop(job.preempted_for or "", None)
            # A job that waits for other jobs stands in no line: thousands of them cost a cycle nothing.
            if not job.after:
                self._line(line_of(job)).add(job)
            return
        if job.allocation is None:
            raise ValueError(f"job {job.id} is {job.state} without an allocation")
        self.held.add(job)
        self.holders[job.allocation.model] += 1
        if job.elastic is not None:
            self.elastic.add(job.id)
        _enter(self.victims_stopping, job.preempted_for, job.id)
        _enter(self.holding, job.queue, job.id)
        if job.queue in self._rankings:
            self._rankings[job.queue].add(job)
        self._ends.add(job)
        if self._fleet is not None:
            self._fleet.take(job.allocation)

    def _drop_job(self, job_id: str) -> None:
        job = self.jobs.pop(job_id, None)
        if job is None:
            return
        self._by_state[job.state] -= 1
        self.active.remove(at_least(job))
        if job.state is JobState.QUEUED:
            self._leave_queue(job)
            return
        assert job.allocation is not None
        self.held.remove(job)
        self.holders[job.allocation.model] -= 1
        self.elastic.discard(job.id)
        _leave(self.victims_stopping, job.preempted_for, job.id)
        _leave(self.holding, job.queue, job.id)
        if job.queue in self._rankings:
            self._rankings[job.queue].remove(job.id)
        self._ends.remove(job)
        if self._fleet is not None:
            self._fleet.give_back(job.allocation)

    def _leave_queue(self, job: Job) -> None:
        self._queued_in[job.queue] -= 1
        if not self._queued_in[job.queue]:
            del self._queued_in[job.queue]
        _leave(self.victims_requeued, job.preempted_for, job.id)
        self._last_requeued.pop(job.preempted_for or "", None)
        if job.after:
            return
        key = line_of(job)
        self.lines[key].remove(job)
        if not self.lines[key].jobs:
            del self.lines[key]

    def _put_node(self, node: Node) -> None:
        known = self.nodes.get(node.id)
        self.nodes[node.id] = node
        if known is None or _pools_on(known) != _pools_on(node):
            self.reserving_revision += 1
        if self._fleet is None:
            return
        if known is None or {gpu.id for gpu in known.gpus} != {gpu.id for gpu in node.gpus}:
            self._fleet = None
        else:
            self._fleet.replace_node(node)

    def _put_rules(self, rules: PutRules) -> None:
        self.reserving_revision += 1
        self.limits = rules.limits
        self.score_time_constant = rules.score_time_constant
        self.scaling = rules.scaling
        self.allocation = rules.allocation
        if self._fleet is not None:
            self._fleet.rack_label = rules.allocation.rack_label
        self.backfill = rules.backfill
        if (self.ordering, self.preemption) != (rules.ordering, rules.preemption):
            self.ordering, self.preemption = rules.ordering, rules.preemption
            self._rankings.clear()
            for name in {key.queue for key in self.lines}:
                self._rebuild_lines(name)

    def _put_mix(self, pool: str, mix: Mix) -> None:
        if mix.portions:
            self.mixes[pool] = mix
        else:
            self.mixes.pop(pool, None)
        if self._fleet is not None:
            self._fleet.put_mix(pool, mix)

    def _put_queue(self, queue: Queue) -> None:
        known = self.queues.get(queue.name)
        if known is not None:
            _leave(self.guaranteeing, known.pool, known.name)
        if queue.guaranteed_gpus:
            _enter(self.guaranteeing, queue.pool, queue.name)
        self.queues[queue.name] = queue
        # Jobs may have been added before their queue, and were ordered by age so far.
        if known is None or (known.policy, known.preempts) != (queue.policy, queue.preempts):
            self._rebuild_lines(queue.name)

    def _rebuild_lines(self, queue_name: str) -> None:
        self._rankings.pop(queue_name, None)
        for key in [key for key in self.lines if key.queue == queue_name]:
            for job in self.lines.pop(key).jobs.values():
                self._line(key).add(job)

    def _line(self, key: LineKey) -> Line:
        line = self.lines.get(key)
        if line is None:
            queue = self.queues.get(key.queue)
            # A line of a deleted queue keeps its jobs in order of age until they are moved to another queue.
            line = self.lines[key] = Line(
                key,
                queue.policy if queue else "fcfs",
                self.ordering,
                is_ranked=self.preemption.enabled and queue is not None and queue.preempts,
                passes_from=self.preemption.min_run_seconds if self.preemption.enabled else None,
            )
        return line


def _enter(sets: dict[str, set[str]], key: str | None, member: str) -> None:
    if key is not None:
        sets.setdefault(key, set()).add(member)


def _leave(sets: dict[str, set[str]], key: str | None, member: str) -> None:
    members = sets.get(key) if key is not None else None
    if members is None or key is None:
        return
    members.discard(member)
    if not members:
        del sets[key]


def _pools_on(node: Node) -> list[tuple[str, str]]:
    return [(gpu.id, gpu.pool) for gpu in node.gpus]
