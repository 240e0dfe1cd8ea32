"""The changes of a cluster snapshot.

A list of changes is the history of a snapshot, and can be stored and replayed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from corral.core.model import Allocation, Job, JobKind, Node, Queue
from corral.core.people.budgets import Account, Budget, Unit
from corral.core.people.membership import Membership
from corral.core.people.quota import Quota
from corral.core.people.scores import Score
from corral.core.scheduling.ordering.cost import OrderingRules
from corral.core.scheduling.reservations.reservation import Reservation
from corral.core.snapshot.installation import AllocationRules, BackfillRules, Limits, PreemptionRules, ScalingRules
from corral.core.snapshot.request_mix import Mix
from corral.core.storage.volumes import Volume


@dataclass(frozen=True, kw_only=True, slots=True)
class PutNode:
    node: Node


@dataclass(frozen=True, kw_only=True, slots=True)
class DropNode:
    id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PutJob:
    """A live job was added or changed. A job that is not live any more leaves the snapshot with DropJob."""

    job: Job


@dataclass(frozen=True, kw_only=True, slots=True)
class DropJob:
    id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PutQueue:
    queue: Queue


@dataclass(frozen=True, kw_only=True, slots=True)
class DropQueue:
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PutQuota:
    """A quota without any limit removes the quota."""

    user: str
    kind: JobKind
    quota: Quota


@dataclass(frozen=True, kw_only=True, slots=True)
class PutBudget:
    budget: Budget


@dataclass(frozen=True, kw_only=True, slots=True)
class DropBudget:
    account: Account
    unit: Unit


@dataclass(frozen=True, kw_only=True, slots=True)
class PutMembership:
    user: str
    membership: Membership


@dataclass(frozen=True, kw_only=True, slots=True)
class DropMembership:
    """The user was deleted."""

    user: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PutScore:
    user: str
    model: str
    score: Score


@dataclass(frozen=True, kw_only=True, slots=True)
class PutRules:
    """Settings of the whole installation that can change a decision."""

    limits: Limits
    score_time_constant: float
    scaling: ScalingRules = field(default_factory=ScalingRules)
    ordering: OrderingRules = field(default_factory=OrderingRules)
    preemption: PreemptionRules = field(default_factory=PreemptionRules)
    allocation: AllocationRules = field(default_factory=AllocationRules)
    backfill: BackfillRules = field(default_factory=BackfillRules)


@dataclass(frozen=True, kw_only=True, slots=True)
class PutLastNode:
    """The node and the GPU of the last allocation, for the placement policy round-robin."""

    id: str
    #: "" for an allocation without GPUs
    gpu: str = ""


def last_node_of(allocation: Allocation) -> PutLastNode:
    last = allocation.grants[-1]
    return PutLastNode(id=last.node, gpu=last.gpus[-1] if last.gpus else "")


@dataclass(frozen=True, kw_only=True, slots=True)
class PutMix:
    """The mix of requests that a pool has seen lately; an empty mix removes it."""

    pool: str
    mix: Mix


@dataclass(frozen=True, kw_only=True, slots=True)
class PutReservation:
    reservation: Reservation


@dataclass(frozen=True, kw_only=True, slots=True)
class DropReservation:
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PutVolume:
    volume: Volume


@dataclass(frozen=True, kw_only=True, slots=True)
class DropVolume:
    id: str


Change = (
    PutNode
    | DropNode
    | PutJob
    | DropJob
    | PutQueue
    | DropQueue
    | PutQuota
    | PutBudget
    | DropBudget
    | PutMembership
    | DropMembership
    | PutScore
    | PutRules
    | PutLastNode
    | PutMix
    | PutReservation
    | DropReservation
    | PutVolume
    | DropVolume
)
