"""The state that the controller keeps in memory: the snapshot, the last plan, and the changes since the last journal
entry.

The store is the source of truth. The state is a copy of the store's live part: every unit of work updates it, and after
a unit of work that failed it is loaded again.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from corral.control.fleet.draining.drain_records import Drain, stored_drains
from corral.control.fleet.live_fleet import LiveFleet
from corral.control.fleet.live_jobs import LiveJobs
from corral.control.fleet.live_views import LiveViews
from corral.control.live.changes.counted import Counted
from corral.control.ports import Holder, Transaction
from corral.control.records import (
    AttemptRecord,
    BudgetRecord,
    IdleWarning,
    JobRecord,
    JobSpec,
    MaintenanceRecord,
    ReceiptRecord,
    UnreadableRow,
)
from corral.control.scheduling.request_mixes import mixes_kept
from corral.control.scheduling.run_times import run_times_known
from corral.control.system.policies import Policies
from corral.core.jobs.dependencies import Dependents
from corral.core.model import WHOLE, Allocation, GpuHealth, Job, JobState, Node, Taken
from corral.core.monitoring.health.model import Condition
from corral.core.people.budgets import Budget, Price, period_at
from corral.core.people.membership import Membership
from corral.core.people.scores import Score, with_unrecorded
from corral.core.scheduling.forecast.run_time_model import RunTimes
from corral.core.scheduling.plan.plan import Plan
from corral.core.snapshot.changes import (
    Change,
    PutBudget,
    PutJob,
    PutLastNode,
    PutMembership,
    PutNode,
    PutQueue,
    PutQuota,
    PutReservation,
    PutRules,
    PutScore,
    PutVolume,
    last_node_of,
)
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.journal import Digest
from corral.core.snapshot.request_mix import MixCounter

#: Specs of recent jobs that are kept at hand, so that a start needs no read.
KEPT_SPECS = 5000
#: The named value of the store that says since when attempts are charged.
ACCOUNTING_SINCE = "accounting-since"
#: Later than every time.
FOREVER = 1e18


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanFailure:
    """Why a queue is not planned."""

    #: the digest of the snapshot that was planned from
    digest: str
    error: str
    since: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Unstored:
    """The parts of a state that the store does not have, as they were at one moment."""

    testing: Mapping[str, Condition | None]
    stops_sent: Mapping[str, None]
    spoken_at: Mapping[str, float]
    observed: Mapping[str, frozenset[str]]
    left_out: Mapping[str, frozenset[str]]
    #: the last allocation, also of a job that has ended since
    last: PutLastNode


class State:
    def __init__(self, policies: Policies) -> None:
        self.policies = policies
        self.snapshot = ClusterSnapshot()
        self.plan = Plan(at=0.0)
        #: queues that cannot be planned; the empty name stands for all
        self.plan_failures: dict[str, PlanFailure] = {}
        #: rows that are damaged, and left out
        self.unreadable: tuple[UnreadableRow, ...] = ()
        #: allocations of running attempts of jobs whose rows are damaged; no other job gets these GPUs
        self.unreadable_held: Counted[str, Allocation] = Counted()
        #: a change can change the plan
        self.needs_cycle = True
        #: digest of the snapshot, from the first base of the journal on: before, nothing is compared with it, and the
        #: text of every waiting job would delay each start
        self.digest: Digest | None = None
        #: changes that no journal entry has yet; None until a base is written
        self.unjournaled: list[Change] | None = None
        #: what the digest returned for each of them
        self.unjournaled_texts: list[str | None] = []
        #: submissions to each pool, counted since the last mix
        self.mixes: dict[str, MixCounter] = {}
        #: run times of past jobs, for predictions
        self.run_times = RunTimes()
        self.specs: OrderedDict[str, JobSpec] = OrderedDict()
        #: the present attempt of every job that holds resources
        self.attempts: Counted[str, AttemptRecord] = Counted()
        #: since when attempts are charged; None while there are neither prices nor budgets
        self.accounting_since: float | None = None
        #: the price of one hour of a GPU, by model
        self.prices: Counted[str, Price] = Counted()
        #: the time until which running attempts were charged
        self.charged_until: Counted[str, float] = Counted()
        #: which jobs wait for which; also jobs that are not started yet
        self.dependents = Dependents()
        #: the condition of every GPU that is not healthy or was suspected lately
        self.conditions: Counted[str, Condition] = Counted()
        #: GPUs that are being tested, with their conditions before
        self.testing: Counted[str, Condition | None] = Counted()
        #: warnings to owners of jobs that leave their GPUs idle, by job
        self.idle_warnings: Counted[str, IdleWarning] = Counted()
        #: drains under way, by node
        self.drains: Counted[str, Drain] = Counted()
        #: maintenance windows by name, those that are over lately too
        self.maintenance: Counted[str, MaintenanceRecord] = Counted()
        #: open receipts of preempted jobs, by job
        self.receipts: Counted[str, ReceiptRecord] = Counted()
        #: attempts that this server has sent a stop for since it was started
        self.stops_sent: Counted[str, None] = Counted()
        #: when an operator last acted on a node: observations from before that are outdated
        self.spoken_at: Counted[str, float] = Counted()
        #: the nodes that each cluster's engine reported last; a cluster that was not observed yet is absent
        self.observed: Counted[str, frozenset[str]] = Counted()
        #: nodes that are left out, because another cluster has one of that name; by cluster
        self.left_out: Counted[str, frozenset[str]] = Counted()
        #: by node: what its engine reported last, and the node of the snapshot that agrees with it
        self.compared: dict[str, tuple[Node, Node]] = {}
        #: a cache of `gpu_holders`, as of a number of changes
        self.held_by: tuple[int, Mapping[str, Sequence[Holder]]] = (-1, {})
        #: how many jobs the store has in each state; None if that is not known here
        self.job_counts: Counter[JobState] | None = None
        self._views = LiveViews()

    def fleet(self, now: float | None = None) -> LiveFleet:
        """Nodes and GPUs with what is on them. Without a time, reservations are those of the last read."""
        return self._views.fleet(self.snapshot, self.conditions, self.conditions.changes, now)

    def job_sums(self) -> LiveJobs:
        """Sums over the live jobs."""
        return self._views.jobs(self.snapshot)

    def count_job(self, before: Job | None, after: Job | None) -> None:
        """A job was added, changed or deleted."""
        if self.job_counts is not None:
            if before is not None:
                self.job_counts[before.state] -= 1
            if after is not None:
                self.job_counts[after.state] += 1

    @property
    def changes(self) -> int:
        """How many changes were made so far to the snapshot and to everything else that a use case may change."""
        tables: tuple[Counted[Any, Any], ...] = (
            self.attempts,
            self.stops_sent,
            self.receipts,
            self.conditions,
            self.testing,
            self.idle_warnings,
            self.drains,
            self.maintenance,
            self.spoken_at,
            self.observed,
            self.left_out,
            self.unreadable_held,
            self.prices,
            self.charged_until,
        )
        return self.snapshot.revision + sum(table.changes for table in tables)

    def change(self, *changes: Change, needs_cycle: bool = True) -> None:
        self.apply(changes)
        self.needs_cycle |= needs_cycle

    def apply(self, changes: Iterable[Change]) -> None:
        changes = list(changes)
        self.snapshot.apply(changes)
        self.note(changes)

    def note(self, changes: Sequence[Change]) -> None:
        """Add changes that were made to the snapshot to its digest and to the next entry of the journal."""
        if self.digest is not None and self.unjournaled is not None:
            self.unjournaled.extend(changes)
            self.unjournaled_texts.extend(self.digest.add(changes))

    def digest_text(self) -> str:
        """The digest of the snapshot; empty if the journal has no base of it."""
        return "" if self.digest is None else self.digest.hex()

    def unstored(self) -> Unstored:
        return Unstored(
            testing=dict(self.testing),
            stops_sent=dict(self.stops_sent),
            spoken_at=dict(self.spoken_at),
            observed=dict(self.observed),
            left_out=dict(self.left_out),
            last=PutLastNode(id=self.snapshot.last_node, gpu=self.snapshot.last_gpu),
        )

    def restore(self, unstored: Unstored) -> None:
        """Add to a state that was loaded from the store what the store does not have."""
        self.testing = Counted(unstored.testing)
        self.stops_sent = Counted(unstored.stops_sent)
        self.spoken_at = Counted(unstored.spoken_at)
        self.observed = Counted(unstored.observed)
        self.left_out = Counted(unstored.left_out)
        self.apply([unstored.last])

    def keep_spec(self, job_id: str, spec: JobSpec) -> None:
        self.specs[job_id] = spec
        if len(self.specs) > KEPT_SPECS:
            self.specs.popitem(last=False)


def load_state(tx: Transaction, policies: Policies) -> State:
    """The state as the store has it."""
    state = State(policies)
    live = tx.jobs.live()
    for job in live:
        state.dependents.follow(None, job)
    jobs = [job for job in live if job.state.is_active]
    state.unreadable_held = Counted(_held_by_unreadable(tx))
    state.attempts = Counted(tx.attempts.get([job.attempt_id for job in jobs if job.state.holds_resources]))
    scores = _scores(tx, jobs, state.attempts, policies.score_time_constant)
    changes: list[Change] = [
        PutRules(
            limits=policies.limits,
            score_time_constant=policies.score_time_constant,
            scaling=policies.scaling.rules,
            ordering=policies.ordering_rules,
            preemption=policies.preemption,
            backfill=policies.backfill,
            allocation=policies.allocation,
        ),
        *(PutNode(node=without_held(node, state.unreadable_held)) for node in tx.fleet.nodes()),
        *(PutQueue(queue=queue) for queue in tx.fleet.queues()),
        *(PutReservation(reservation=record.reservation) for record in tx.reservations.all() if not record.is_over),
        *(PutQuota(user=record.user, kind=record.kind, quota=record.quota) for record in tx.people.quotas()),
        *(PutBudget(budget=budget_now(tx, record)) for record in tx.budgets.all()),
        *(PutVolume(volume=record.snapshot_volume) for record in tx.volumes.all()),
        *(PutMembership(user=user, membership=member) for user, member in memberships(tx).items()),
        *(PutScore(user=user, model=model, score=score) for (user, model), score in scores.items()),
        *(PutJob(job=job) for job in jobs),
        _last_node(jobs),
        *mixes_kept(tx),
    ]
    state.apply(changes)
    _load_accounting(tx, state)
    state.run_times = run_times_known(tx)
    state.conditions = Counted(_conditions(tx, state))
    state.idle_warnings = Counted(tx.health.idle_warnings())
    state.drains = Counted(stored_drains(tx))
    state.maintenance = Counted({record.name: record for record in tx.maintenance.all()})
    state.receipts = Counted({receipt.job_id: receipt for receipt in tx.receipts.open()})
    state.unreadable = tuple(tx.unreadable)
    stored = tx.jobs.counts()
    state.job_counts = Counter({known: stored.get(known.value, 0) for known in JobState})
    return state


def _load_accounting(tx: Transaction, state: State) -> None:
    since = tx.meta.get(ACCOUNTING_SINCE)
    if since:
        state.accounting_since = float(since)
        state.prices = Counted(tx.budgets.prices())
        state.charged_until = Counted(tx.budgets.charged_until(state.attempts))


def budget_now(tx: Transaction, record: BudgetRecord) -> Budget:
    """The budget with what is spent in its period so far."""
    begin, end = period_at(record.period, record.begin)
    sums = tx.budgets.sums(record.account, record.unit, begin, FOREVER if end is None else end)
    return Budget(
        account=record.account,
        unit=record.unit,
        period=record.period,
        soft_micro=record.soft_micro,
        hard_micro=record.hard_micro,
        spent_micro=-sum(sums.values()),
        begin=begin,
        end=end,
    )


def _held_by_unreadable(tx: Transaction) -> dict[str, Allocation]:
    """The allocations, by attempt. Attempts have rows of their own, which are readable."""
    damaged = [f"j-{row.key}" for row in tx.unreadable if row.table == "jobs"]
    attempts = [attempt for job_id in damaged for attempt in tx.attempts.of_job(job_id)]
    return {attempt.id: attempt.allocation for attempt in attempts if attempt.ended_at is None}


def _scores(
    tx: Transaction, jobs: Iterable[Job], attempts: Mapping[str, AttemptRecord], time_constant: float
) -> dict[tuple[str, str], Score]:
    """The stored scores, with running attempts that no score has: of a store that was made without scores, or that
    lost them. They are stored with the next change of their user's usage, and computed the same until then."""
    held: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for job in jobs:
        attempt = attempts.get(job.attempt_id)
        if attempt is not None and attempt.allocation.total_gpu_milli:
            of_user = held.setdefault((job.user, attempt.allocation.model), [])
            of_user.append((attempt.planned_at, attempt.allocation.total_gpu_milli / WHOLE))
    scores = tx.scores.all()
    return scores | {key: with_unrecorded(scores.get(key), running, time_constant) for key, running in held.items()}


def without_held(node: Node, held: Mapping[str, Allocation]) -> Node:
    """The node with the GPUs of these attempts marked as taken by other programs."""
    grants = [grant for allocation in held.values() for grant in allocation.grants if grant.node == node.id]
    if not grants:
        return node
    gpus = dict.fromkeys([*node.taken.gpus, *(gpu for grant in grants for gpu in grant.gpus)])
    taken = Taken(
        gpus=tuple(gpus),
        cpu_milli=node.taken.cpu_milli + sum(grant.cpu_milli for grant in grants),
        memory_bytes=node.taken.memory_bytes + sum(grant.memory_bytes for grant in grants),
    )
    return replace(node, taken=taken)


def _conditions(tx: Transaction, state: State) -> dict[str, Condition]:
    """Including GPUs of which only the health is stored, not the reason."""
    known = tx.health.conditions()
    for node in state.snapshot.nodes.values():
        for gpu in node.gpus:
            if gpu.health is not GpuHealth.HEALTHY and gpu.id not in known:
                known[gpu.id] = Condition(gpu_id=gpu.id, health=gpu.health)
    return known


def memberships(tx: Transaction) -> dict[str, Membership]:
    """Every user's group, and the pool that it has."""
    pool_of = {group.name: group.pool for group in tx.people.groups()}
    return {
        user.name: Membership(group=user.group, pool=pool_of.get(user.group) if user.group else None)
        for user in tx.people.users()
    }


def _last_node(jobs: Iterable[Job]) -> PutLastNode:
    latest = max(
        (job for job in jobs if job.state is not JobState.QUEUED and job.allocation),
        key=lambda job: (job.allocated_at or 0.0, job.serial),
        default=None,
    )
    return last_node_of(latest.allocation) if latest and latest.allocation else PutLastNode(id="")


def as_committed(state: State, answer: Any) -> Any:
    """The answer with the present job: the cycle of the same commit may have started it."""
    match answer:
        case JobRecord():
            return replace(answer, job=state.snapshot.jobs.get(answer.job.id, answer.job))
        case [JobRecord(), *_]:
            return [as_committed(state, record) for record in answer]
        case _:
            return answer
