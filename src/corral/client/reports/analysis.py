"""The routes of the analysis: findings about waste, usage, and a preview of defragmentation."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from corral.client.http.transport import Transport

if TYPE_CHECKING:
    from corral.client.views import AnalysisView, DefragmentationView


class Analysis:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def analyse(self, *, period: str | None = None) -> AnalysisView:
        return cast("AnalysisView", self._transport.get("/analysis", {"period": period}))

    def defragmentation(self) -> DefragmentationView:
        """A preview of moves; none is carried out."""
        return cast("DefragmentationView", self._transport.get("/analysis/defragmentation"))
