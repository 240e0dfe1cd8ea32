"""API schemas: reasons why a job waits, and the result of submitting one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from corral.control.scheduling.suggestions import Outcome, Suggestion
from corral.control.scheduling.views import TrialRun
from corral.core.model import Job, JobState
from corral.core.scheduling.explain.advice import Operation
from corral.core.scheduling.explain.reasons import NAMED, Explanation
from corral.core.scheduling.forecast.estimates import Estimate
from corral.core.scheduling.limits.hold_rules import Reason
from corral.core.scheduling.plan.plan import PlannedStart, Preemption, PreemptionRule
from corral.server.events.visibility import JobIdFilter
from corral.server.scheduling.estimate_worker import Current
from corral.server.schemas.base import Number, View, number, rfc3339
from corral.server.schemas.scheduling.estimates import (
    EstimateView,
    ExplainedEstimateView,
    estimate_view,
    explained_estimate_view,
)


class ReasonView(View):
    rule: str
    detail: str
    numbers: dict[str, Any]
    jobs: list[str]


class JobRefView(View):
    """A job; of a job that the caller may not see, only the owner is shown."""

    id: str | None
    name: str | None
    user: str


class EffectView(View):
    outcome: Outcome = Field(
        description="start: the job would start now. earlier: its planned start would be earlier than without this."
    )
    start_at: str


class SuggestedChangeView(View):
    operation: Operation = Field(description="edit: PATCH the job with the body. start: POST to its /start.")
    body: dict[str, Any]


class SuggestionView(View):
    """A change that helps, checked by running the scheduler with it."""

    title: str
    detail: str
    effect: EffectView
    change: SuggestedChangeView


class CycleView(View):
    """The journal entries that an answer about the past is based on."""

    id: int
    at: str
    exact: bool = Field(description="Whether the answer contains exactly the changes up to that moment.")
    known_until: str
    words: str


class WhyView(View):
    job_id: str
    state: JobState
    summary: str
    reasons: list[ReasonView]
    position: int | None
    place: str = Field(
        description="Explanation of the job's position in the waiting line; empty if the job is in none."
    )
    ahead: list[JobRefView]
    ahead_count: int
    planned_start: str | None
    planned_nodes: list[str]
    estimate: ExplainedEstimateView | None = Field(
        default=None, description="Estimated start; null: the job does not wait, or no estimate exists."
    )
    suggestions: list[SuggestionView] = Field(description="Shown to the job's owner and to operators, the best first.")
    at: str | None = Field(default=None, description="The moment in question; null for now.")
    cycle: CycleView | None = None


class PreemptingView(View):
    """A job that would be preempted; of a job that the caller may not see, only the rule and the loss are shown."""

    job: str | None
    rule: PreemptionRule
    lost_gpu_seconds: Number


class WouldStartView(View):
    at: str | None = Field(description="Now, or p50 of the estimate; null: no estimate exists.")
    nodes: list[str] = Field(description="Nodes: certain if the job starts now, otherwise of its planned start.")
    after: list[str] = Field(description="The first of the jobs ahead of it that the caller may see.")
    preempting: list[PreemptingView]


class PlanView(View):
    outcome: Literal["start", "wait", "refuse"]
    detail: str
    start_at: str | None = Field(description="Now, or the latest planned start.")
    nodes: list[str]
    reasons: list[ReasonView]
    ahead_count: int
    estimate: EstimateView | None = Field(default=None, description="Time at which the job would start.")
    would_start: WouldStartView | None = Field(default=None, description="null: the job would be refused.")


def why_view(
    job: Job,
    explanation: Explanation,
    id_filter: JobIdFilter,
    advice: Iterable[Suggestion] = (),
    expected: Current | None = None,
) -> WhyView:
    """`id_filter` has the jobs ahead; a job that has just ended is left out."""
    ahead = [id_filter.jobs[job_id] for job_id in explanation.ahead[:NAMED] if job_id in id_filter.jobs]
    return WhyView(
        job_id=job.id,
        state=job.state,
        summary=explanation.summary,
        reasons=[reason_view(reason) for reason in explanation.reasons],
        position=explanation.position,
        place=explanation.place,
        ahead=[_reference(other, id_filter) for other in ahead],
        ahead_count=explanation.ahead_count,
        planned_start=_start(explanation.planned),
        planned_nodes=list(explanation.planned.nodes) if explanation.planned is not None else [],
        estimate=explained_estimate_view(expected),
        suggestions=[_suggestion(item) for item in advice],
    )


def plan_view(trial: TrialRun, now: float, id_filter: JobIdFilter, expected: Estimate | None) -> PlanView:
    """`expected` is the estimated start; `id_filter` has the live jobs."""
    if trial.refusal is not None:
        reason = ReasonView(
            rule=trial.refusal.slug, detail=trial.refusal.detail, numbers=dict(trial.refusal.numbers), jobs=[]
        )
        return PlanView(
            outcome="refuse", detail=trial.refusal.detail, start_at=None, nodes=[], reasons=[reason], ahead_count=0
        )
    if trial.start is not None:
        nodes = [grant.node for grant in trial.start.allocation.grants]
        return PlanView(
            outcome="start",
            detail="it would start now",
            start_at=rfc3339(now),
            nodes=nodes,
            reasons=[],
            ahead_count=0,
            estimate=EstimateView(p50=rfc3339(now), p90=rfc3339(now)),
            would_start=WouldStartView(
                at=rfc3339(now), nodes=nodes, after=[], preempting=_preempting(trial.preemptions, id_filter)
            ),
        )
    explanation = trial.explanation
    assert explanation is not None
    return PlanView(
        outcome="wait",
        detail=explanation.summary,
        start_at=_start(explanation.planned),
        nodes=list(explanation.planned.nodes) if explanation.planned is not None else [],
        reasons=[reason_view(reason) for reason in explanation.reasons],
        ahead_count=explanation.ahead_count,
        estimate=None if expected is None else estimate_view(expected),
        would_start=WouldStartView(
            at=None if expected is None else rfc3339(expected.p50),
            nodes=list(explanation.planned.nodes) if explanation.planned is not None else [],
            after=[job_id for job_id in explanation.ahead[:NAMED] if _is_shown(job_id, id_filter)],
            preempting=_preempting(trial.preemptions, id_filter),
        ),
    )


def _preempting(preemptions: Iterable[Preemption], id_filter: JobIdFilter) -> list[PreemptingView]:
    return [
        PreemptingView(
            job=preemption.job_id if _is_shown(preemption.job_id, id_filter) else None,
            rule=preemption.rule,
            lost_gpu_seconds=number(round(preemption.lost_gpu_seconds, 1)),
        )
        for preemption in preemptions
    ]


def _is_shown(job_id: str, id_filter: JobIdFilter) -> bool:
    job = id_filter.jobs.get(job_id)
    return job is not None and not id_filter.hides(job)


def _suggestion(item: Suggestion) -> SuggestionView:
    proposal = item.proposal
    return SuggestionView(
        title=proposal.title,
        detail=proposal.detail,
        effect=EffectView(outcome=item.outcome, start_at=rfc3339(item.start_at)),
        change=SuggestedChangeView(operation=proposal.operation, body=dict(proposal.change)),
    )


def _reference(job: Job, id_filter: JobIdFilter) -> JobRefView:
    if id_filter.hides(job):
        return JobRefView(id=None, name=None, user=job.user)
    return JobRefView(id=job.id, name=job.name, user=job.user)


def reason_view(reason: Reason) -> ReasonView:
    return ReasonView(rule=reason.rule, detail=reason.detail, numbers=dict(reason.numbers), jobs=list(reason.jobs))


def _start(planned: PlannedStart | None) -> str | None:
    return rfc3339(planned.at) if planned is not None and planned.is_known else None
