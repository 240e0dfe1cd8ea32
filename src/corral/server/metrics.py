"""Prometheus text: the server's own counters and the state of the fleet, written by a small renderer.

Decides names, labels and buckets. Numbers about jobs and GPUs are read from the controller's state when somebody asks.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    value: float
    labels: Labels = ()
    #: "_bucket", "_sum" or "_count" of a histogram
    suffix: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    name: str
    kind: str
    text: str
    samples: Sequence[Sample]


class Histogram:
    """Cumulative buckets, one row per set of label values. Safe to observe from any thread."""

    def __init__(
        self, name: str, text: str, *, labels: Sequence[str] = (), buckets: Sequence[float] = SECONDS_BUCKETS
    ) -> None:
        self._name = name
        self._text = text
        self._labels = tuple(labels)
        self._buckets = tuple(buckets)
        self._lock = threading.Lock()
        self._rows: dict[tuple[str, ...], list[float]] = {}

    def observe(self, value: float, *label_values: str) -> None:
        place = bisect_left(self._buckets, value)
        with self._lock:
            row = self._rows.get(label_values)
            if row is None:
                # one count per bucket, one beyond the last, and the sum
                row = self._rows[label_values] = [0.0] * (len(self._buckets) + 2)
            row[place] += 1
            row[-1] += value

    def family(self) -> Family:
        with self._lock:
            rows = {values: list(row) for values, row in self._rows.items()}
        samples: list[Sample] = []
        for values, row in sorted(rows.items()):
            labels = tuple(zip(self._labels, values, strict=True))
            count = 0.0
            for bound, inside in zip((*self._buckets, float("inf")), row, strict=False):
                count += inside
                samples.append(Sample(suffix="_bucket", labels=(*labels, ("le", _number(bound))), value=count))
            samples.append(Sample(suffix="_sum", labels=labels, value=row[-1]))
            samples.append(Sample(suffix="_count", labels=labels, value=count))
        return Family(name=self._name, kind="histogram", text=self._text, samples=samples)


class ServerMetrics:
    """What the server measures about itself."""

    def __init__(self, version: str) -> None:
        self.requests = Histogram(
            "corral_api_request_seconds", "Time to answer a request.", labels=("method", "route", "status")
        )
        self.cycles = Histogram("corral_cycle_seconds", "Time of one scheduling cycle.")
        self._build = gauge("corral_build_info", "The version that runs.", {(("version", version),): 1})

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        self.requests.observe(seconds, method, route, f"{status // 100}xx")

    def observe_cycle(self, seconds: float) -> None:
        self.cycles.observe(seconds)

    def families(self) -> list[Family]:
        return [self._build, self.cycles.family(), self.requests.family()]


def gauge(name: str, text: str, values: Mapping[Labels, float]) -> Family:
    samples = [Sample(labels=labels, value=value) for labels, value in sorted(values.items())]
    return Family(name=name, kind="gauge", text=text, samples=samples)


def render(families: Iterable[Family]) -> str:
    """The exposition format, version 0.0.4."""
    lines: list[str] = []
    for family in families:
        lines.append(f"# HELP {family.name} {family.text}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        for sample in family.samples:
            labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels)
            shown = f"{{{labels}}}" if labels else ""
            lines.append(f"{family.name}{sample.suffix}{shown} {_number(sample.value)}")
    return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(value)
