"""API schemas: the resource panel and scores."""

from __future__ import annotations

from pydantic import Field

from corral.control.fleet import panel
from corral.control.records import ScorePoint
from corral.control.scheduling import views
from corral.core.model import JobKind
from corral.server.schemas.base import ListView, Number, View, number, rfc3339


class PanelNumbers(View):
    running: int = Field(description="Jobs that hold resources.")
    queued: int = Field(description="Jobs that wait.")
    occupied: Number = Field(description="GPUs that the running jobs hold.")
    total: Number = Field(description="GPUs that these jobs can have.")
    free: Number = Field(description="GPUs of these that a job could start on now.")
    gap: Number = Field(description="GPUs that the waiting jobs ask for.")


class PanelKindView(PanelNumbers):
    """One kind over all models; jobs without GPUs count too."""

    kind: JobKind


class PanelModelView(PanelNumbers):
    """One GPU model over all kinds; each GPU counts once."""

    model: str


class PanelView(PanelKindView):
    """One kind and GPU model."""

    model: str


class PanelPage(ListView[PanelView]):
    kinds: list[PanelKindView] = Field(description="Totals per kind; the same on every page.")
    models: list[PanelModelView] = Field(description="Totals per GPU model; the same on every page.")


class ScoreView(View):
    user: str
    model: str
    score: float
    usage: Number
    at: str


class ScorePointView(View):
    model: str
    at: str
    score: float
    usage: Number


def panel_kind_view(row: panel.PanelRow) -> PanelKindView:
    return PanelKindView(**_numbers(row), kind=row.kind, running=row.running, queued=row.queued)


def panel_view(row: panel.PanelRow) -> PanelView:
    return PanelView(**_numbers(row), kind=row.kind, running=row.running, queued=row.queued, model=row.model)


def panel_model_view(row: panel.ModelRow) -> PanelModelView:
    return PanelModelView(**_numbers(row), model=row.model, running=row.running, queued=row.queued)


def score_view(view: views.ScoreView) -> ScoreView:
    return ScoreView(user=view.user, model=view.model, score=view.score, usage=number(view.usage), at=rfc3339(view.at))


def score_point_view(point: ScorePoint) -> ScorePointView:
    return ScorePointView(model=point.model, at=rfc3339(point.at), score=point.value, usage=number(point.usage))


def _numbers(row: panel.PanelRow | panel.ModelRow) -> dict[str, int | float]:
    return {name: number(getattr(row, name)) for name in ("occupied", "total", "free", "gap")}
