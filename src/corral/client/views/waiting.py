"""Why jobs wait, and in which order, as the server shows it."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from corral.client.views.estimates import EstimatedStartView, EstimateView, ExplainedEstimateView


class ReasonView(TypedDict):
    rule: str
    detail: str
    numbers: dict[str, Any]
    jobs: list[str]


class JobRefView(TypedDict):
    """Without id and name where the caller may not see the job."""

    id: str | None
    name: str | None
    user: str


class EffectView(TypedDict):
    outcome: str
    start_at: str


class ChangeView(TypedDict):
    operation: str
    body: dict[str, Any]


class SuggestionView(TypedDict):
    title: str
    detail: str
    effect: EffectView
    change: ChangeView


class CycleView(TypedDict):
    id: int
    at: str
    exact: bool
    known_until: str
    words: str


class WhyView(TypedDict):
    job_id: str
    state: str
    summary: str
    reasons: list[ReasonView]
    position: int | None
    place: NotRequired[str]
    ahead: list[JobRefView]
    ahead_count: int
    planned_start: str | None
    planned_nodes: list[str]
    estimate: NotRequired[ExplainedEstimateView | None]
    suggestions: NotRequired[list[SuggestionView]]
    at: NotRequired[str | None]
    cycle: NotRequired[CycleView | None]


class PreemptingView(TypedDict):
    #: None where the caller may not see it
    job: str | None
    rule: str
    lost_gpu_seconds: float


class WouldStartView(TypedDict):
    at: str | None
    nodes: list[str]
    after: list[str]
    preempting: list[PreemptingView]


class PlanView(TypedDict):
    outcome: str
    detail: str
    start_at: str | None
    nodes: list[str]
    reasons: list[ReasonView]
    ahead_count: int
    estimate: NotRequired[EstimateView | None]
    would_start: NotRequired[WouldStartView | None]


class QueueView(TypedDict):
    name: str
    pool: str
    policy: str
    blocking: str
    placement: str
    weight: float
    guaranteed_gpus: int
    preempts: bool
    max_gpus: int | None
    max_length: int | None
    max_seconds: float | None
    kinds: list[str]
    groups: list[str]
    min_job_gpus: int | None
    max_job_gpus: int | None
    running: int
    queued: int
    held_gpus: float
    borrowed_gpus: float
    owed_gpus: float


class OrderedJobView(TypedDict):
    position: int
    id: str | None
    name: str | None
    user: str
    gpus: float
    nodes: int
    #: the only one where it may run
    cluster: NotRequired[str | None]
    priority: int
    pinned: bool
    score: float | None
    detail: str
    #: its owner has given it a place among the own jobs
    moved: bool
    queued_at: NotRequired[str | None]
    planned_start: str | None
    estimated_start: NotRequired[EstimatedStartView | None]


class LineView(TypedDict):
    model: str
    line: str
    #: jobs in the line, of which a long one does not tell all
    length: int
    jobs: list[OrderedJobView]


class OrderView(TypedDict):
    lines: list[LineView]
    #: jobs that come after others, and so stand in no line yet
    waiting_for_others: NotRequired[int]


class ScoreView(TypedDict):
    user: str
    model: str
    score: float
    usage: float
    at: str


class ScorePointView(TypedDict):
    model: str
    at: str
    score: float
    usage: float
