"""The routes of estimated starts: their accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from corral.client.http.transport import Transport

if TYPE_CHECKING:
    from corral.client.views import EstimateAccuracyView


class Estimates:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def accuracy(self, *, since: str | None = None) -> EstimateAccuracyView:
        """Compares estimates with the real starts: of estimates made since then, or of the latest ones."""
        return cast("EstimateAccuracyView", self._transport.get("/estimates/accuracy", {"since": since}))
