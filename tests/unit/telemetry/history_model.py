"""The embedded history as a plain list of readings: what a question must be answered with, counted one by one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from corral.control.ports import History, HistoryUnavailable, Metric, Point
from corral.telemetry.history import EmbeddedHistory, file
from corral.telemetry.history.precision import PER_UNIT

HOUR_MS = 3_600_000
STEPS_MS = {"raw": 1, "minute": 60_000, "hour": HOUR_MS}
WINDOWS_MS = {"raw": HOUR_MS, "minute": HOUR_MS, "hour": 96 * HOUR_MS}


class NoHistory(History):
    """Cannot be read or written. Fakes override what their test asks for."""

    def append(self, at: float, values: Mapping[Metric, Mapping[str, float]]) -> None:
        raise HistoryUnavailable("away")

    def means(self, metric: Metric, since: float, until: float) -> dict[str, float]:
        raise HistoryUnavailable("away")

    def series(
        self, metric: Metric, subjects: Collection[str] | None, since: float, until: float, step_seconds: float
    ) -> dict[str, list[Point]]:
        raise HistoryUnavailable("away")

    def describe(self) -> Mapping[str, str | int | float]:
        raise HistoryUnavailable("away")

    def close(self) -> None:
        pass


@dataclass
class SetClock:
    at: float = 0.0

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.now()


def open_history(
    path: Path, clock: SetClock, *, raw_hours: float = 24, minute_hours: float = 720, hour_hours: float = 8760
) -> EmbeddedHistory:
    # A crash of the machine would lose data; these tests do not care, and are faster.
    with mock.patch.object(file, "SYNCHRONOUS", "OFF"):
        return EmbeddedHistory(
            path,
            raw_seconds=raw_hours * 3600,
            minute_seconds=minute_hours * 3600,
            hour_seconds=hour_hours * 3600,
            clock=clock,
            tended=False,
        )


@dataclass
class HistoryModel:
    """Times are whole milliseconds. `kept_ms` says how long each level is kept."""

    kept_ms: Mapping[str, int]
    readings: list[tuple[int, Metric, str, float]] = field(default_factory=list)
    #: how many of them, from the first on, were there at the last `tend`
    tended: int = 0
    #: before it those are in chunks, and only as fine as what is left of them
    border: int = 0
    floors: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STEPS_MS, 0))

    def append(self, at: int, values: Mapping[Metric, Mapping[str, float]]) -> None:
        self.readings += [(at, metric, name, value) for metric, by in values.items() for name, value in by.items()]

    def tend(self, now: int) -> None:
        newest = max((at for at, *_ in self.readings), default=0)
        self.border = max(self.border, newest // HOUR_MS * HOUR_MS)
        self.tended = len(self.readings)
        for level, kept in self.kept_ms.items():
            window = WINDOWS_MS[level]
            self.floors[level] = max(self.floors[level], (now - kept) // window * window)

    def series(self, metric: Metric, since: int, until: int, step: int) -> dict[str, list[Point]]:
        found: dict[tuple[str, int], list[float]] = {}
        for number, (at, of, name, value) in enumerate(self.readings):
            seen = (at, 1) if number >= self.tended else self._seen_at(at)
            if of is metric and seen is not None and since // seen[1] * seen[1] <= seen[0] < until:
                place = max(step, seen[1])
                found.setdefault((name, seen[0] // place * place), []).append(value)
        answer: dict[str, list[Point]] = {}
        for (name, at), values in sorted(found.items()):
            answer.setdefault(name, []).append(
                Point(
                    at=at / 1000,
                    mean=sum(values) / len(values),
                    least=min(values),
                    most=max(values),
                    count=len(values),
                )
            )
        return answer

    def means(self, metric: Metric, since: int, until: int) -> dict[str, float]:
        return {
            name: sum(point.mean * point.count for point in points) / sum(point.count for point in points)
            for name, points in self.series(metric, since, until, HOUR_MS).items()
        }

    def _seen_at(self, at: int) -> tuple[int, int] | None:
        """When the finest level that still has a reading says it was, and that level's step."""
        if at >= self.border:
            return at, 1
        steps = [STEPS_MS[level] for level, floor in self.floors.items() if floor <= at]
        return (at // min(steps) * min(steps), min(steps)) if steps else None


def assert_same_series(metric: Metric, got: Mapping[str, list[Point]], wanted: Mapping[str, list[Point]]) -> None:
    """The same steps and counts; values within half a unit of what is kept."""
    assert sorted(got) == sorted(wanted)
    for name, points in wanted.items():
        assert [(point.at, point.count) for point in got[name]] == [(point.at, point.count) for point in points]
        for mine, theirs in zip(got[name], points, strict=True):
            for value, exact in ((mine.mean, theirs.mean), (mine.least, theirs.least), (mine.most, theirs.most)):
                assert is_close(metric, value, exact)


def is_close(metric: Metric, value: float, exact: float) -> bool:
    return abs(value - exact) <= 0.5 / PER_UNIT[metric] + 1e-9 * max(1.0, abs(exact))
