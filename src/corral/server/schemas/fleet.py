"""Clusters, nodes, GPUs and what they add up to, on the wire."""

from __future__ import annotations

from typing import Any

from corral.core.model import GpuHealth, JobState, NodeState
from corral.server.schemas.base import View


class HolderView(View):
    """A job on a GPU or a node."""

    id: str
    name: str
    user: str
    gpus: float
    state: JobState


class ReadingView(View):
    at: str
    stale: bool
    utilization: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    temperature_celsius: float | None
    power_watts: float | None
    energy_joules: float | None


class GpuView(View):
    id: str
    index: int
    node: str
    model: str
    memory_bytes: int
    health: GpuHealth
    pool: str
    allocated: float
    jobs: list[HolderView]
    reading: ReadingView | None


class NodeView(View):
    id: str
    cluster: str
    state: NodeState
    cpus: float
    memory_bytes: int
    labels: dict[str, str]
    load: float | None
    gpus_total: int
    gpus_free: float
    gpus_allocated: float
    gpus: list[GpuView]
    jobs: list[HolderView]


class ClusterView(View):
    name: str
    engine: str
    healthy: bool
    detail: str
    nodes: int
    gpus: int


class ScoreView(View):
    user: str
    model: str
    score: float
    usage: float
    at: str


class PanelView(View):
    kind: str
    model: str
    running: int
    queued: int
    occupied: float
    total: float
    free: float
    gap: float


class OverviewView(View):
    nodes: int
    gpus: int
    gpus_free: float
    gpus_allocated: float
    allocation: float
    utilization: float | None
    jobs: dict[str, int]
    queued: int


class AboutView(View):
    version: str
    started_at: str
    uptime_seconds: float
    store: dict[str, str]
    engines: list[str]


class EventView(View):
    id: int
    at: str
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]
    source: str
