"""The ways in which a cluster's picture changes.

A list of changes is a picture's history, and can be kept and replayed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from corral.core.model import Job, JobKind, Node, Queue
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
    """A live job appeared or changed; an ended or created one leaves the picture with DropJob."""

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
    """A quota without any limit is the same as none."""

    user: str
    kind: JobKind
    quota: Quota


@dataclass(frozen=True, kw_only=True, slots=True)
class PutMembership:
    user: str
    membership: Membership


@dataclass(frozen=True, kw_only=True, slots=True)
class DropMembership:
    """Nothing is known of the user any more: a former one."""

    user: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PutScore:
    user: str
    model: str
    score: Score


@dataclass(frozen=True, kw_only=True, slots=True)
class PutRules:
    """Settings of the whole installation that decide."""

    limits: Limits
    score_time_constant: float
    scaling: ScalingRules = field(default_factory=ScalingRules)
    ordering: OrderingRules = field(default_factory=OrderingRules)
    preemption: PreemptionRules = field(default_factory=PreemptionRules)
    allocation: AllocationRules = field(default_factory=AllocationRules)
    backfill: BackfillRules = field(default_factory=BackfillRules)


@dataclass(frozen=True, kw_only=True, slots=True)
class PutLastNode:
    """The node that was given out last, for policies that go round."""

    id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PutMix:
    """What a pool has been asked for lately; a mix of nothing is the same as none."""

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
