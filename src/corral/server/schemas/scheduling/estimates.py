"""API schemas: estimated starts and how good they have been."""

from __future__ import annotations

from pydantic import Field

from corral.control.scheduling.estimates import Summary
from corral.core.scheduling.forecast.accuracy import Accuracy, PastEstimate
from corral.core.scheduling.forecast.estimates import Estimate, basis_text
from corral.server.scheduling.estimate_worker import Current
from corral.server.schemas.base import Number, View, number, rfc3339


class EstimateView(View):
    """The estimated start: half of such jobs start by p50, nine tenths by p90."""

    p50: str
    p90: str


class EstimatedStartView(EstimateView):
    made_at: str


class ExplainedEstimateView(EstimatedStartView):
    basis: str = Field(description="Explanation of the estimate.")


class AccuracyView(View):
    started: int
    before_p50: Number | None = Field(
        description="Share of the jobs that started by then; null: no estimate can be judged yet."
    )
    before_p90: Number | None
    median_error_seconds: Number | None = Field(
        description="Difference between p50 and the start, whichever was first."
    )


class HorizonAccuracyView(AccuracyView):
    horizon: str = Field(description="Time between the estimate and the estimated start, such as `< 1 h`.")


class PastEstimateView(View):
    job: str
    made_at: str
    p50: str
    p90: str
    started_at: str


class EstimateAccuracyView(AccuracyView):
    since: str | None
    estimates: int = Field(
        description="Estimates made since then; of jobs that still wait, only those that are late are judged."
    )
    by_horizon: list[HorizonAccuracyView]
    recent: list[PastEstimateView] = Field(description="Estimates for jobs that the caller may see, the latest first.")


def estimate_view(estimate: Estimate) -> EstimateView:
    return EstimateView(p50=rfc3339(estimate.p50), p90=rfc3339(estimate.p90))


def estimated_start_view(current: Current | None) -> EstimatedStartView | None:
    if current is None:
        return None
    estimate = current.estimate
    return EstimatedStartView(p50=rfc3339(estimate.p50), p90=rfc3339(estimate.p90), made_at=rfc3339(current.made_at))


def explained_estimate_view(current: Current | None) -> ExplainedEstimateView | None:
    if current is None:
        return None
    estimate = current.estimate
    return ExplainedEstimateView(
        p50=rfc3339(estimate.p50),
        p90=rfc3339(estimate.p90),
        made_at=rfc3339(current.made_at),
        basis=basis_text(estimate),
    )


def accuracy_view(summary: Summary) -> EstimateAccuracyView:
    return EstimateAccuracyView(
        since=rfc3339(summary.since) if summary.since else None,
        estimates=summary.overall.estimates,
        started=summary.overall.started,
        before_p50=_rounded(summary.overall.before_p50, 3),
        before_p90=_rounded(summary.overall.before_p90, 3),
        median_error_seconds=_rounded(summary.overall.median_error_seconds, 1),
        by_horizon=[_horizon_view(label, found) for label, found in summary.horizons],
        recent=[_past_estimate_view(estimate) for estimate in summary.recent],
    )


def _horizon_view(horizon: str, found: Accuracy) -> HorizonAccuracyView:
    return HorizonAccuracyView(
        horizon=horizon,
        started=found.started,
        before_p50=_rounded(found.before_p50, 3),
        before_p90=_rounded(found.before_p90, 3),
        median_error_seconds=_rounded(found.median_error_seconds, 1),
    )


def _rounded(value: float | None, digits: int) -> Number | None:
    return None if value is None else number(round(value, digits))


def _past_estimate_view(estimate: PastEstimate) -> PastEstimateView:
    assert estimate.started_at is not None
    return PastEstimateView(
        job=estimate.job_id,
        made_at=rfc3339(estimate.made_at),
        p50=rfc3339(estimate.p50),
        p90=rfc3339(estimate.p90),
        started_at=rfc3339(estimate.started_at),
    )
