"""API schemas: curves of jobs."""

from __future__ import annotations

from pydantic import Field

from corral.server.jobs.curve_files import Curve, Curves
from corral.server.schemas.base import View, rfc3339


class CurvePointView(View):
    step: int
    at: str = Field(description="Time at which the program reported the value.")
    value: float | None = Field(description="Null if the program reported a value that is not finite.")


class CurveView(View):
    name: str = Field(description="The name that the program gave; with its directory for several TensorBoard runs.")
    source: str = Field(description="`curves.jsonl`, or the directory of the event file in the job's output directory.")
    count: int = Field(description="Number of points that the program reported; `points` has some hundred of them.")
    points: list[CurvePointView] = Field(description="By step: the lowest and highest of each stretch.")


class CurvesView(View):
    complete: bool = Field(description="False if there are more files, curves or bytes than are read at once.")
    curves: list[CurveView]


def curves_view(found: Curves) -> CurvesView:
    return CurvesView(complete=found.is_complete, curves=[_curve(curve) for curve in found.curves])


def _curve(curve: Curve) -> CurveView:
    points = [CurvePointView(step=point.step, at=rfc3339(point.at), value=point.value) for point in curve.points]
    return CurveView(name=curve.name, source=curve.source, count=curve.count, points=points)
