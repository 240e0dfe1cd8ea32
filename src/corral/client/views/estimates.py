"""Estimated starts, as the API shows them."""

from __future__ import annotations

from typing import TypedDict


class EstimateView(TypedDict):
    p50: str
    p90: str


class EstimatedStartView(EstimateView):
    made_at: str


class ExplainedEstimateView(EstimatedStartView):
    basis: str


class AccuracyView(TypedDict):
    started: int
    before_p50: float | None
    before_p90: float | None
    median_error_seconds: float | None


class HorizonAccuracyView(AccuracyView):
    horizon: str


class ToldView(TypedDict):
    job: str
    made_at: str
    p50: str
    p90: str
    started_at: str


class EstimateAccuracyView(AccuracyView):
    since: str | None
    estimates: int
    by_horizon: list[HorizonAccuracyView]
    recent: list[ToldView]
