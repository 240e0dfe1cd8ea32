"""What-if questions and the shadow policy, as the server shows them."""

from __future__ import annotations

from typing import Any, TypedDict


class ProgressView(TypedDict):
    fraction: float
    phase: str
    ended_jobs: int
    jobs: int | None
    eta_seconds: float | None


class FidelityView(TypedDict):
    jobs: int
    real_wait_seconds: dict[str, float]
    replayed_wait_seconds: dict[str, float]
    words: str


class DifferenceView(TypedDict):
    field: str
    label: str
    unit: str
    base: float | None
    candidate: float | None
    change: float | None
    percent: float | None
    better: bool | None


class ShareView(TypedDict):
    name: str
    jobs: int
    base: dict[str, float]
    candidate: dict[str, float]


class ResultView(TypedDict):
    jobs: int
    carried_jobs: int
    estimated_jobs: int
    left_out: list[dict[str, Any]]
    fidelity: FidelityView | None
    base: dict[str, Any]
    candidate: dict[str, Any]
    differences: list[DifferenceView]
    groups: list[ShareView]
    users: list[ShareView]
    queues: list[ShareView]
    seconds: float


class SimulationView(TypedDict):
    id: str
    name: str
    state: str
    error: str
    created_by: str
    created_at: str
    started_at: str | None
    ended_at: str | None
    source: str
    since: str
    until: str
    base: dict[str, Any]
    candidate: dict[str, Any]
    words: dict[str, str]
    progress: ProgressView
    headline: dict[str, dict[str, float]] | None
    result: ResultView | None


class ShadowDifferenceView(TypedDict):
    cycle: int
    at: str
    words: list[str]
    live: list[dict[str, Any]]
    shadow: list[dict[str, Any]]


class ShadowView(TypedDict):
    running: bool
    changes: dict[str, Any]
    words: str
    started_by: str | None
    started_at: str | None
    cycles: dict[str, int]
    behind_cycles: int
    last_cycle: dict[str, Any] | None
    differences: list[ShadowDifferenceView]
