"""The routes of the analysis: findings about waste, usage, and a preview of defragmentation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from corral.client.http.transport import Transport

if TYPE_CHECKING:
    from corral.client.views import AnalysisView, DefragmentationRunView, DefragmentationView


class Analysis:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def analyse(self, *, period: str | None = None) -> AnalysisView:
        """Findings with evidence and a proposal, and GPU-hours and energy by user, group, queue and GPU model."""
        return cast("AnalysisView", self._transport.get("/analysis", {"period": period}))

    def defragmentation(self) -> DefragmentationView:
        """A preview of moves; none is carried out."""
        return cast("DefragmentationView", self._transport.get("/analysis/defragmentation"))

    def start_defragmentation(
        self, *, jobs: Sequence[str] | None = None, include_unsaved: bool = False
    ) -> DefragmentationRunView:
        """Carry out the moves of the preview, or those of some jobs."""
        body = {"include_unsaved": include_unsaved, **({} if jobs is None else {"jobs": list(jobs)})}
        return cast("DefragmentationRunView", self._transport.post("/analysis/defragmentation", body))

    def defragmentation_run(self) -> DefragmentationRunView:
        """The latest defragmentation."""
        return cast("DefragmentationRunView", self._transport.get("/analysis/defragmentation/run"))

    def cancel_defragmentation(self) -> DefragmentationRunView:
        """Cancel the moves that have not begun."""
        return cast("DefragmentationRunView", self._transport.post("/analysis/defragmentation/run/cancel"))
