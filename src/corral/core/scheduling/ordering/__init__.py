"""Ordering policies: who goes first. One file per policy, one line in the registry.

A policy orders in two steps, so that the whole order is always total. `own_key` orders one user's jobs among
themselves: they are one sequence. `merge_key` compares the heads of two users' sequences. Pins come before both, in
every policy: an operator's word stands above any rule. Every key ends with the creation time and the id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from corral.core.model import Job
from corral.core.scheduling.ordering import fair_share, fcfs, priority, shortest, weighted
from corral.core.scheduling.ordering.cost import OrderingRules, Rank

#: Anything that sorts; keys of one policy have one shape.
SortKey = tuple[float | int, ...]


class OwnKey(Protocol):
    def __call__(self, job: Job, rules: OrderingRules) -> SortKey:
        """The place of a job among its user's own. Must depend on these alone: neither on the time nor on others."""


class MergeKey(Protocol):
    def __call__(self, job: Job, score: float, rules: OrderingRules) -> SortKey:
        """The place of a user whose next job and present score these are."""


class PlaceText(Protocol):
    def __call__(self, job: Job, score: float, rules: OrderingRules) -> str:
        """Why a job stands where it stands, for people."""


class RankOf(Protocol):
    def __call__(self, job: Job, rules: OrderingRules, now: float) -> Rank:
        """The place of a job among waiting and running ones. Of one that waits it is as strict as its own key, and does
        not depend on the time; while a job runs it may move to the front only, unless it outlives what is supposed of
        one that nothing is known of. So nobody who was preempted preempts back."""


class RankText(Protocol):
    def __call__(self, job: Job, rules: OrderingRules, now: float) -> str:
        """What the rank of a job comes from, for people."""


def _no_rank(job: Job, rules: OrderingRules, now: float) -> str:
    return "no rank"


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderingPolicy:
    own_key: OwnKey
    merge_key: MergeKey
    place_text: PlaceText
    #: whether merge_key looks at the score; without it scores need not be computed
    uses_score: bool
    #: whether own_key looks at the order that users give their own jobs
    uses_own_order: bool
    #: what it orders by, in words for people
    description: str
    #: None where the order says nothing about who should run at the expense of whom
    rank: RankOf | None = None
    rank_text: RankText = _no_rank
    #: whether the rank changes as a job runs
    looks_at_run_times: bool = False


#: every policy by the name that queues and settings use
POLICIES: dict[str, OrderingPolicy] = {
    "fcfs": OrderingPolicy(
        own_key=fcfs.own_key,
        merge_key=fcfs.merge_key,
        place_text=fcfs.place_text,
        uses_score=False,
        uses_own_order=False,
        description="first come, first served",
    ),
    "priority": OrderingPolicy(
        own_key=priority.own_key,
        merge_key=priority.merge_key,
        place_text=priority.place_text,
        uses_score=False,
        uses_own_order=False,
        description="priority, then age",
        rank=priority.rank,
        rank_text=priority.rank_text,
    ),
    "fair-share": OrderingPolicy(
        own_key=fair_share.own_key,
        merge_key=fair_share.merge_key,
        place_text=fair_share.place_text,
        uses_score=True,
        uses_own_order=True,
        description="lower score of recent use first, then the user's own order",
    ),
    "shortest": OrderingPolicy(
        own_key=shortest.own_key,
        merge_key=shortest.merge_key,
        place_text=shortest.place_text,
        uses_score=False,
        uses_own_order=False,
        description="least expected GPU-time first, less what its waiting makes up for",
        rank=shortest.rank,
        rank_text=shortest.rank_text,
        looks_at_run_times=True,
    ),
    "weighted": OrderingPolicy(
        own_key=weighted.own_key,
        merge_key=weighted.merge_key,
        place_text=weighted.place_text,
        uses_score=False,
        uses_own_order=False,
        description="weighted sum of priority, size, expected run time and age",
        rank=weighted.rank,
        rank_text=weighted.rank_text,
        looks_at_run_times=True,
    ),
}
