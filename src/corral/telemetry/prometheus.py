"""A history that Prometheus stores: it scrapes corral's own /metrics, and is queried over its HTTP API.

Decides which of the server's metrics corresponds to which series, and how a query of corral is written in PromQL.
Prometheus decides its own retention and resolution: nothing is written to it from here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx

from corral.control.ports import CLUSTER, HistoryUnavailable, Metric, Point


@dataclass(frozen=True, kw_only=True, slots=True)
class Exposed:
    """The name of a series in the server's /metrics."""

    name: str
    #: the label with the subject; empty: one series for the whole installation
    label: str = ""
    #: the factor from Prometheus' unit to corral's
    scale: float = 1.0


def _gpu(name: str, scale: float = 1.0) -> Exposed:
    return Exposed(name=f"corral_gpu_{name}", label="gpu", scale=scale)


def _node(name: str) -> Exposed:
    return Exposed(name=f"corral_node_{name}", label="node")


def _cluster(name: str) -> Exposed:
    return Exposed(name=f"corral_cluster_{name}")


#: docs/reference/metrics.md lists them for users.
EXPOSED: Mapping[Metric, Exposed] = {
    Metric.GPU_UTILIZATION: _gpu("utilization_ratio"),
    Metric.GPU_MEMORY_USED: _gpu("memory_used_bytes"),
    Metric.GPU_TEMPERATURE: _gpu("temperature_celsius"),
    Metric.GPU_POWER: _gpu("power_watts"),
    Metric.GPU_ENERGY: _gpu("energy_joules_total"),
    Metric.GPU_SM_CLOCK: _gpu("sm_clock_hertz", 1e6),
    Metric.GPU_MEMORY_CLOCK: _gpu("memory_clock_hertz", 1e6),
    Metric.GPU_THROTTLED: _gpu("throttled"),
    Metric.NODE_CPU: _node("cpu_ratio"),
    Metric.NODE_MEMORY_USED: _node("memory_used_bytes"),
    Metric.NODE_DISK_USED: _node("disk_used_bytes"),
    Metric.NODE_NETWORK_RECEIVE: _node("network_receive_bytes_per_second"),
    Metric.NODE_NETWORK_SEND: _node("network_send_bytes_per_second"),
    Metric.QUEUE_LENGTH: Exposed(name="corral_queue_length", label="queue"),
    Metric.QUEUE_WAIT: Exposed(name="corral_queue_wait_seconds", label="queue"),
    Metric.CLUSTER_ALLOCATION: _cluster("allocation_ratio"),
    Metric.CLUSTER_UTILIZATION: _cluster("utilization_ratio"),
    Metric.CLUSTER_POWER: _cluster("power_watts"),
    Metric.CLUSTER_TEMPERATURE: _cluster("temperature_celsius"),
    Metric.CLUSTER_GPUS: _cluster("gpus"),
    Metric.CLUSTER_GPUS_HELD: _cluster("gpus_held"),
    Metric.CLUSTER_RUNNING: _cluster("jobs_running"),
    Metric.CLUSTER_QUEUED: _cluster("jobs_queued"),
}
#: Prometheus refuses more than 11,000 steps in one answer.
STEPS_PER_REQUEST = 10_000
#: A query that would need more steps is answered in longer steps.
MOST_STEPS = 5 * STEPS_PER_REQUEST
#: The parts of a point; one request returns all of them, distinguished by this label.
_PART = "corral_part"
_PARTS = {"total": "sum", "least": "min", "most": "max", "count": "sum"}
_OVER_TIME = {"total": "sum_over_time", "least": "min_over_time", "most": "max_over_time", "count": "count_over_time"}


class PrometheusHistory:
    """`url`: of the server, with `user:password@` if required. Safe for use by several threads."""

    def __init__(
        self, url: str, *, timeout_seconds: float = 30.0, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._place = _without_password(url)
        self._http = httpx.Client(
            base_url=url.rstrip("/") + "/api/v1/",
            timeout=httpx.Timeout(timeout_seconds, connect=min(5.0, timeout_seconds)),
            transport=transport,
        )

    def append(self, at: float, values: Mapping[Metric, Mapping[str, float]]) -> None:
        """Does nothing: Prometheus scrapes its data itself."""

    def means(self, metric: Metric, since: float, until: float) -> dict[str, float]:
        exposed = EXPOSED[metric]
        begin, end = _ms(since), _ms(until)
        if begin >= end:
            return {}
        found: dict[str, dict[str, float]] = {}
        for subject, part, _, value in self._at_once(exposed, None, begin, end):
            found.setdefault(subject, {})[part] = value
        return {subject: parts["total"] / parts["count"] / exposed.scale for subject, parts in found.items()}

    def series(
        self, metric: Metric, subjects: Collection[str] | None, since: float, until: float, step_seconds: float
    ) -> dict[str, list[Point]]:
        exposed = EXPOSED[metric]
        begin, end = _ms(since), _ms(until)
        step = max(1, _ms(step_seconds))
        step *= -(-(end - begin) // (step * MOST_STEPS)) or 1
        if begin >= end or (subjects is not None and not _wanted(exposed, subjects)):
            return {}
        found: dict[str, dict[int, dict[str, float]]] = {}
        for subject, part, at, value in self._in_steps(exposed, subjects, begin, end, step):
            found.setdefault(subject, {}).setdefault(at, {})[part] = value
        return {
            subject: [_point(at, parts, exposed.scale) for at, parts in sorted(by_time.items())]
            for subject, by_time in found.items()
        }

    def describe(self) -> Mapping[str, str | int | float]:
        about = self._ask("status/buildinfo", {})
        return {"kind": "prometheus", "place": self._place, "version": str(about.get("version", "unknown"))}

    def close(self) -> None:
        self._http.close()

    # -------------------------------------------------------------------------------------------- asking

    def _in_steps(
        self, exposed: Exposed, subjects: Collection[str] | None, begin: int, end: int, step: int
    ) -> Iterator[tuple[str, str, int, float]]:
        """Subject, part, beginning of the step, value. Partial steps at the ends are queried separately."""
        first, last = -(-begin // step) * step, end // step * step
        if first > last:
            first = last = end  # all inside one step
        if begin < first:
            yield from self._at_once(exposed, subjects, begin, first, at=begin // step * step)
        for start in range(first, last, step * STEPS_PER_REQUEST):
            yield from self._steps(exposed, subjects, start, min(last, start + step * STEPS_PER_REQUEST), step)
        if last < end:
            yield from self._at_once(exposed, subjects, last, end, at=last)

    def _at_once(
        self, exposed: Exposed, subjects: Collection[str] | None, begin: int, end: int, at: int = 0
    ) -> Iterator[tuple[str, str, int, float]]:
        """The whole span as one step."""
        # A range includes the time of the query; a step does not include its end.
        query = {"query": _expression(exposed, subjects, end - begin), "time": _seconds(end - 1)}
        for item in self._ask("query", query)["result"]:
            subject, part = _labels(exposed, item["metric"])
            yield subject, part, at, float(item["value"][1])

    def _steps(
        self, exposed: Exposed, subjects: Collection[str] | None, begin: int, end: int, step: int
    ) -> Iterator[tuple[str, str, int, float]]:
        answer = self._ask(
            "query_range",
            {
                "query": _expression(exposed, subjects, step),
                "start": _seconds(begin + step - 1),
                "end": _seconds(end - 1),
                "step": _seconds(step),
            },
        )
        for item in answer["result"]:
            subject, part = _labels(exposed, item["metric"])
            for moment, value in item["values"]:
                yield subject, part, _ms(moment) + 1 - step, float(value)

    def _ask(self, path: str, form: Mapping[str, str]) -> Any:
        try:
            # By POST: a query that names many GPUs does not fit into a URL.
            answer = self._http.post(path, data=form) if form else self._http.get(path)
            body = answer.json() if "json" in answer.headers.get("content-type", "") else {}
        except (httpx.HTTPError, ValueError) as error:
            raise HistoryUnavailable(f"Prometheus at {self._place} cannot be queried: {error!r}") from error
        if not answer.is_success or not isinstance(body, dict) or body.get("status") != "success":
            said = body.get("error") if isinstance(body, dict) else None
            raise HistoryUnavailable(
                f"Prometheus at {self._place} answered {answer.status_code}: {said or 'not as Prometheus does'}"
            )
        return body["data"]


def _expression(exposed: Exposed, subjects: Collection[str] | None, range_ms: int) -> str:
    """All parts of a point. Series of one subject are merged: a server that moved has another address."""
    selector = ""
    if subjects is not None and exposed.label:
        names = "|".join(re.escape(name) for name in sorted(subjects))
        selector = f"{{{exposed.label}=~{json.dumps(names, ensure_ascii=False)}}}"
    return " or ".join(
        f"label_replace({aggregate} by ({exposed.label}) ({_OVER_TIME[part]}({exposed.name}{selector}[{range_ms}ms])), "
        f'"{_PART}", "{part}", "", "")'
        for part, aggregate in _PARTS.items()
    )


def _labels(exposed: Exposed, labels: Mapping[str, str]) -> tuple[str, str]:
    """Subject and part."""
    return labels.get(exposed.label, "") if exposed.label else CLUSTER, labels[_PART]


def _wanted(exposed: Exposed, subjects: Collection[str]) -> bool:
    return bool(subjects) if exposed.label else CLUSTER in subjects


def _point(at: int, parts: Mapping[str, float], scale: float) -> Point:
    count = round(parts["count"])
    return Point(
        at=at / 1000,
        mean=parts["total"] / count / scale,
        least=parts["least"] / scale,
        most=parts["most"] / scale,
        count=count,
    )


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.3f}"
