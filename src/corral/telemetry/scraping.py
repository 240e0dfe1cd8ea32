"""Readings of other nodes, fetched from exporters there: NVIDIA's DCGM exporter or corral's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from corral.control.ports import Collected


class ScrapingCollector:
    def __init__(
        self, target: str, known: Callable[[], Mapping[tuple[str, int], str]] | None, *, timeout_seconds: float = 5.0
    ) -> None:
        self.name = f"scrape {target}"

    def collect(self, at: float) -> Collected:
        return Collected()

    def close(self) -> None: ...
