"""Ordering policies: which waiting job goes first. One file per policy, one line in the registry.

A policy orders in two steps, so that the whole order is always total. `own_key` orders one user's jobs: they are one
sequence. `merge_key` compares the first jobs of two users' sequences. In every policy pinned jobs come before both: an
operator's pin outranks any rule. Every key ends with the creation time and the id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from corral.core.model import Job
from corral.core.scheduling.ordering import fair_share, fcfs, priority, shortest, weighted
from corral.core.scheduling.ordering.cost import OrderingRules, Rank

#: Keys of one policy have the same number of elements.
SortKey = tuple[float | int, ...]


class OwnKey(Protocol):
    def __call__(self, job: Job, rules: OrderingRules) -> SortKey:
        """The sort key of a job among its user's jobs. Must depend on the arguments alone, not on time or other
        jobs."""


class MergeKey(Protocol):
    def __call__(self, job: Job, score: float, rules: OrderingRules) -> SortKey:
        """The sort key of a user with this next job and score."""


class PlaceText(Protocol):
    def __call__(self, job: Job, score: float, rules: OrderingRules) -> str:
        """Why a job has its position, as text for users."""


class RankOf(Protocol):
    def __call__(self, job: Job, rules: OrderingRules, now: float) -> Rank:
        """The rank of a job among waiting and running jobs. For a waiting job it is as strict as its own key and does
        not depend on time; while a job runs its rank may only move to the front, except when a job without a prediction
        runs longer than assumed. So a preempted job never preempts the job that it was preempted for."""


class RankText(Protocol):
    def __call__(self, job: Job, rules: OrderingRules, now: float) -> str:
        """The components of a job's rank, as text for users."""


def _no_rank(job: Job, rules: OrderingRules, now: float) -> str:
    return "no rank"


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderingPolicy:
    own_key: OwnKey
    merge_key: MergeKey
    place_text: PlaceText
    #: whether merge_key uses the score; if not, scores need not be computed
    uses_score: bool
    #: whether own_key uses the order that users give their own jobs
    uses_own_order: bool
    #: what the policy orders by, as text for users
    description: str
    #: None if the policy has no ranks, and so its queues cannot preempt by their order
    rank: RankOf | None = None
    rank_text: RankText = _no_rank
    #: whether the rank changes as a job runs
    looks_at_run_times: bool = False


#: every policy by the name that queues and settings use, the default one first
POLICIES: dict[str, OrderingPolicy] = {
    "fair-share": OrderingPolicy(
        own_key=fair_share.own_key,
        merge_key=fair_share.merge_key,
        place_text=fair_share.place_text,
        uses_score=True,
        uses_own_order=True,
        description="the user with the lower score of recent use first; users order their own jobs",
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
    "fcfs": OrderingPolicy(
        own_key=fcfs.own_key,
        merge_key=fcfs.merge_key,
        place_text=fcfs.place_text,
        uses_score=False,
        uses_own_order=False,
        description="first come, first served",
    ),
    "shortest": OrderingPolicy(
        own_key=shortest.own_key,
        merge_key=shortest.merge_key,
        place_text=shortest.place_text,
        uses_score=False,
        uses_own_order=False,
        description="the least expected GPU time first; the cost of a job falls while it waits",
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
