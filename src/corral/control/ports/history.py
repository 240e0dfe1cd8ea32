"""Port: the history of measurements."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Metric(StrEnum):
    """A series that is kept for every GPU, node, queue, or for the whole installation (subject CLUSTER)."""

    GPU_UTILIZATION = "gpu.utilization"
    GPU_MEMORY_USED = "gpu.memory_used_bytes"
    GPU_TEMPERATURE = "gpu.temperature_celsius"
    GPU_POWER = "gpu.power_watts"
    GPU_ENERGY = "gpu.energy_joules"
    GPU_SM_CLOCK = "gpu.sm_clock_mhz"
    GPU_MEMORY_CLOCK = "gpu.memory_clock_mhz"
    #: 1 while anything but idleness holds the clocks down
    GPU_THROTTLED = "gpu.throttled"
    NODE_CPU = "node.cpu"
    NODE_MEMORY_USED = "node.memory_used_bytes"
    NODE_DISK_USED = "node.disk_used_bytes"
    NODE_NETWORK_RECEIVE = "node.network_receive_bytes"
    NODE_NETWORK_SEND = "node.network_send_bytes"
    QUEUE_LENGTH = "queue.length"
    QUEUE_WAIT = "queue.wait_seconds"
    CLUSTER_ALLOCATION = "cluster.allocation"
    CLUSTER_UTILIZATION = "cluster.utilization"
    CLUSTER_POWER = "cluster.power_watts"
    CLUSTER_TEMPERATURE = "cluster.temperature_celsius"
    CLUSTER_GPUS = "cluster.gpus"
    CLUSTER_GPUS_HELD = "cluster.gpus_held"
    CLUSTER_RUNNING = "cluster.jobs_running"
    CLUSTER_QUEUED = "cluster.jobs_queued"


GPU_METRICS = tuple(metric for metric in Metric if metric.startswith("gpu."))
NODE_METRICS = tuple(metric for metric in Metric if metric.startswith("node."))
CLUSTER_METRICS = tuple(metric for metric in Metric if metric.startswith("cluster."))
#: The subject of what is measured of the whole installation.
CLUSTER = "cluster"


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """The measured values of one step of time, from `at` on."""

    at: float
    mean: float
    least: float
    most: float
    #: readings behind it; a step without any has no point
    count: int


class HistoryUnavailable(Exception):
    """The history cannot be asked or written at this moment: try again later."""


class History(Protocol):
    """Series of numbers by metric and subject. Raises HistoryUnavailable; safe for use by several threads."""

    def append(self, at: float, values: Mapping[Metric, Mapping[str, float]]) -> None:
        """Keep one value per metric and subject at this moment. Quick; durable within seconds. A history that
        another system fills (Prometheus) ignores it. A moment before one that was appended already is dropped."""

    def means(self, metric: Metric, since: float, until: float) -> dict[str, float]:
        """The mean of every subject over the span; subjects without a reading in it are absent."""

    def series(
        self, metric: Metric, subjects: Collection[str] | None, since: float, until: float, step_seconds: float
    ) -> dict[str, list[Point]]:
        """Points of the subjects (None: of all), oldest first, on whole multiples of the step. Spans older than the
        raw readings are kept come from roll-ups: a step below theirs gives theirs."""

    def describe(self) -> Mapping[str, str | int | float]:
        """Kind, place, size and span, for people."""

    def close(self) -> None: ...
