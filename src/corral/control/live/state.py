"""What the control layer keeps in memory: the picture, the last plan, and what has changed since the last journal
entry.

The store is the truth; this is a copy of its live part, kept current by every committed piece of work and thrown away
after a failed one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from corral.control.ports import Transaction
from corral.control.records import AttemptRecord, IdleWarning, JobRecord, JobSpec, ReceiptRecord, UnreadableRow
from corral.control.scheduling.request_mixes import mixes_kept
from corral.control.scheduling.run_times import run_times_known
from corral.control.system.policies import Policies
from corral.core.jobs.dependencies import Dependents
from corral.core.model import Allocation, GpuHealth, Job, JobState, Node, Taken
from corral.core.monitoring.health.model import Condition
from corral.core.people.membership import Membership
from corral.core.scheduling.forecast.run_time_model import RunTimes
from corral.core.scheduling.plan.plan import Plan
from corral.core.snapshot.changes import (
    Change,
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
)
from corral.core.snapshot.cluster_snapshot import ClusterSnapshot
from corral.core.snapshot.journal import Digest
from corral.core.snapshot.request_mix import MixCounter

#: Specs of recent jobs that are kept at hand, so that a start needs no read.
KEPT_SPECS = 5000


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanFailure:
    """Why a queue is not planned."""

    #: of the snapshot that was planned from
    digest: str
    error: str
    since: float


class State:
    def __init__(self, policies: Policies) -> None:
        self.policies = policies
        self.snapshot = ClusterSnapshot()
        self.plan = Plan(at=0.0)
        #: queues that cannot be planned; the empty name stands for all
        self.plan_failures: dict[str, PlanFailure] = {}
        #: rows that are damaged, and left out
        self.unreadable: tuple[UnreadableRow, ...] = ()
        #: what running attempts of jobs hold whose rows are damaged; nobody else gets it
        self.unreadable_held: dict[str, Allocation] = {}
        #: something happened that can change the plan
        self.needs_cycle = True
        self.digest = Digest()
        #: changes that no journal entry has yet; None until a base is written
        self.unjournaled: list[Change] | None = None
        #: what each pool is asked for, counted since its last mix
        self.mixes: dict[str, MixCounter] = {}
        #: how long jobs have run
        self.run_times = RunTimes()
        self.specs: OrderedDict[str, JobSpec] = OrderedDict()
        #: of every job that holds resources, its present attempt
        self.attempts: dict[str, AttemptRecord] = {}
        #: who waits for whose end; also jobs that are not started yet
        self.dependents = Dependents()
        #: of every GPU that is not healthy or was suspected lately
        self.conditions: dict[str, Condition] = {}
        #: GPUs that are being tested, with their conditions before
        self.testing: dict[str, Condition | None] = {}
        #: jobs that were told that they do nothing
        self.idle_warnings: dict[str, IdleWarning] = {}
        #: of jobs that gave way to others and are not back yet, by job
        self.receipts: dict[str, ReceiptRecord] = {}
        #: attempts that were told to stop since this server runs
        self.told_to_stop: set[str] = set()
        #: when an operator last spoke about a node: what was observed before says nothing about that
        self.spoken_at: dict[str, float] = {}
        #: the nodes that each cluster's engine reported last; a cluster that was not observed yet is absent
        self.observed: dict[str, frozenset[str]] = {}
        #: nodes that are left out, because another cluster has one of that name; by cluster
        self.left_out: dict[str, frozenset[str]] = {}

    def apply(self, changes: Iterable[Change]) -> None:
        changes = list(changes)
        self.snapshot.apply(changes)
        self.digest.add(changes)
        if self.unjournaled is not None:
            self.unjournaled.extend(changes)

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
    state.unreadable_held = _held_by_unreadable(tx)
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
        *(PutVolume(volume=record.picture) for record in tx.volumes.all()),
        *(PutMembership(user=user, membership=member) for user, member in memberships(tx).items()),
        *(PutScore(user=user, model=model, score=score) for (user, model), score in tx.scores.all().items()),
        *(PutJob(job=job) for job in jobs),
        PutLastNode(id=_last_node(jobs)),
        *mixes_kept(tx),
    ]
    state.apply(changes)
    state.run_times = run_times_known(tx)
    state.attempts = tx.attempts.get([job.attempt_id for job in jobs if job.state.holds_resources])
    state.conditions = _conditions(tx, state)
    state.idle_warnings = tx.health.idle_warnings()
    state.receipts = {receipt.job_id: receipt for receipt in tx.receipts.open()}
    state.unreadable = tuple(tx.unreadable)
    return state


def _held_by_unreadable(tx: Transaction) -> dict[str, Allocation]:
    """By attempt. The attempts have rows of their own, which say what they hold."""
    damaged = [f"j-{row.key}" for row in tx.unreadable if row.table == "jobs"]
    attempts = [attempt for job_id in damaged for attempt in tx.attempts.of_job(job_id)]
    return {attempt.id: attempt.allocation for attempt in attempts if attempt.ended_at is None}


def without_held(node: Node, held: Mapping[str, Allocation]) -> Node:
    """The node with what these attempts hold left to them, as if they were not corral's."""
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
    """With those of GPUs of which only the health is known, not the reason."""
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


def _last_node(jobs: Iterable[Job]) -> str:
    latest = max(
        (job for job in jobs if job.state is not JobState.QUEUED and job.allocation),
        key=lambda job: (job.allocated_at or 0.0, job.serial),
        default=None,
    )
    return latest.allocation.grants[-1].node if latest and latest.allocation else ""


def as_committed(state: State, answer: Any) -> Any:
    """A job that is told, as it is now: the cycle that the same commit holds may have started it."""
    match answer:
        case JobRecord():
            return replace(answer, job=state.snapshot.jobs.get(answer.job.id, answer.job))
        case [JobRecord(), *_]:
            return [as_committed(state, record) for record in answer]
        case _:
            return answer
