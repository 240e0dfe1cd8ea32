"""What could be better, who used how much, and what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from corral.client.http.transport import Transport, segment

if TYPE_CHECKING:
    from corral.client.views import AnalysisView, DefragmentationView, JobMetricsView, MetricsView


class Analysis:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def analyse(self, *, period: str | None = None) -> AnalysisView:
        return cast("AnalysisView", self._transport.get("/analysis", {"period": period}))

    def defragmentation(self) -> DefragmentationView:
        """A preview of moves; nothing carries them out."""
        return cast("DefragmentationView", self._transport.get("/analysis/defragmentation"))

    def gpu_metrics(self, gpu: str, metrics: Sequence[str] = (), **span: Any) -> MetricsView:
        """`span`: since, until (RFC 3339) and step (seconds)."""
        return cast("MetricsView", self._transport.get(f"/gpus/{gpu}/metrics", _params(metrics, span)))

    def node_metrics(self, node: str, metrics: Sequence[str] = (), **span: Any) -> MetricsView:
        return cast("MetricsView", self._transport.get(f"/nodes/{segment(node)}/metrics", _params(metrics, span)))

    def job_metrics(self, job: str, metrics: Sequence[str] = (), **span: Any) -> JobMetricsView:
        return cast("JobMetricsView", self._transport.get(f"/jobs/{segment(job)}/metrics", _params(metrics, span)))

    def trends(self, metrics: Sequence[str] = (), **span: Any) -> MetricsView:
        return cast("MetricsView", self._transport.get("/trends", _params(metrics, span)))


def _params(metrics: Sequence[str], span: dict[str, Any]) -> dict[str, Any]:
    return {"metric": list(metrics) or None, **span}
