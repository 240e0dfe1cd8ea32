"""A history in memory, kept as it came: the plainest thing that answers as the port says."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from corral.control.ports import Metric, Point


class MemoryHistory:
    def __init__(self) -> None:
        self.kept: list[tuple[float, Metric, str, float]] = []

    def append(self, at: float, values: Mapping[Metric, Mapping[str, float]]) -> None:
        self.kept += [(at, metric, name, value) for metric, by in values.items() for name, value in by.items()]

    def means(self, metric: Metric, since: float, until: float) -> dict[str, float]:
        found: dict[str, list[float]] = {}
        for at, one, subject, value in self.kept:
            if one is metric and since <= at < until:
                found.setdefault(subject, []).append(value)
        return {subject: sum(values) / len(values) for subject, values in found.items()}

    def series(
        self, metric: Metric, subjects: Collection[str] | None, since: float, until: float, step_seconds: float
    ) -> dict[str, list[Point]]:
        found: dict[str, dict[float, list[float]]] = {}
        for at, one, subject, value in self.kept:
            if one is metric and since <= at < until and (subjects is None or subject in subjects):
                found.setdefault(subject, {}).setdefault(at // step_seconds * step_seconds, []).append(value)
        return {
            subject: [
                Point(at=at, mean=sum(read) / len(read), least=min(read), most=max(read), count=len(read))
                for at, read in sorted(steps.items())
            ]
            for subject, steps in found.items()
        }

    def describe(self) -> Mapping[str, str | int | float]:
        return {"kind": "memory"}

    def close(self) -> None:
        pass
