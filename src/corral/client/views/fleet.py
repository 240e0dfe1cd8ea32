"""Nodes, GPUs and the whole installation, as the server shows them."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class HolderView(TypedDict):
    """A job on a GPU or a node; without id and name where the caller may not see it."""

    id: str | None
    name: str | None
    user: str
    gpus: float
    state: str


class ReadingView(TypedDict):
    at: str
    stale: bool
    utilization: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    temperature_celsius: float | None
    power_watts: float | None
    power_limit_watts: NotRequired[float | None]
    energy_joules: float | None
    sm_clock_mhz: NotRequired[float | None]
    memory_clock_mhz: NotRequired[float | None]
    throttle_reasons: NotRequired[list[str]]
    ecc_corrected: NotRequired[int | None]
    ecc_uncorrected: NotRequired[int | None]
    remapped_rows: NotRequired[int | None]
    remap_failed: NotRequired[bool | None]
    processes: NotRequired[int]
    lost: NotRequired[bool]


class HostView(TypedDict):
    at: str
    stale: bool
    cpu: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    disk_used_bytes: int | None
    disk_total_bytes: int | None
    network_receive_bytes: float | None
    network_send_bytes: float | None


class EvidenceView(TypedDict):
    sign: str
    at: str
    text: str
    advice: str


class GpuView(TypedDict):
    id: str
    index: int
    node: str
    cluster: NotRequired[str]
    model: str
    memory_bytes: int
    health: str
    health_since: NotRequired[str | None]
    evidence: NotRequired[list[EvidenceView]]
    pool: str
    link_group: NotRequired[str]
    allocated: float
    #: others hold it, outside of corral
    taken: NotRequired[bool]
    jobs: list[HolderView]
    reading: ReadingView | None


class PoolView(TypedDict):
    name: str
    description: str
    model: str | None
    gpus_total: int
    gpus_free: int
    gpus_allocated: float
    group: str | None
    queues: list[str]
    running: int
    queued: int
    created_at: str


class PoolDetailView(PoolView):
    gpus: list[GpuView]


class TakenView(TypedDict):
    """What of a node others hold, outside of corral."""

    gpus: int
    cpus: float
    memory_bytes: int


class NodeView(TypedDict):
    id: str
    cluster: str
    state: str
    #: what an operator has said about it
    withheld: NotRequired[str]
    #: why its engine gives it no work
    reason: NotRequired[str]
    cpus: float
    memory_bytes: int
    labels: dict[str, str]
    load: float | None
    gpus_total: int
    gpus_free: float
    gpus_allocated: float
    taken: NotRequired[TakenView]
    gpus: list[GpuView]
    jobs: list[HolderView]
    host: NotRequired[HostView | None]


class ClusterView(TypedDict):
    name: str
    engine: str
    healthy: bool
    detail: str
    observed_at: NotRequired[str | None]
    #: since when it answers, or does not
    since: NotRequired[str | None]
    nodes: int
    nodes_ready: NotRequired[int]
    gpus: int
    gpus_free: NotRequired[int]
    gpus_taken: NotRequired[int]
    #: models by what its own scheduler calls them
    gpu_types: NotRequired[dict[str, str]]


class PanelView(TypedDict):
    kind: str
    model: str
    running: int
    queued: int
    occupied: float
    total: float
    free: float
    gap: float


class OverviewView(TypedDict):
    nodes: int
    nodes_by_state: dict[str, int]
    gpus: int
    gpus_free: float
    gpus_allocated: float
    gpus_taken: NotRequired[int]
    gpus_suspect: int
    gpus_failed: int
    gpus_stale: int
    allocation: float
    utilization: float | None
    idle_gpus: int
    power_watts: float | None
    power_limit_watts: float | None
    temperature_celsius: float | None
    temperature_mean_celsius: float | None
    cpu: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    jobs: dict[str, int]
    running: int
    queued: int
    wait_seconds_median: float | None
    wait_seconds_max: float | None
    alerts: dict[str, int]


class FoundView(TypedDict):
    """Something that a search has found."""

    type: str
    id: str
    title: str
    detail: str


class EventView(TypedDict):
    id: int
    at: str
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]
    source: str


class PartView(TypedDict):
    name: str
    healthy: bool
    detail: str


class LicenceView(TypedDict):
    state: str
    holder: str | None
    expires_at: str | None
    detail: str


class IsolationView(TypedDict):
    """How far jobs of different users are kept apart; `separation` is accounts, shared_accounts or single_user."""

    separation: str
    detail: str


class AboutView(TypedDict):
    version: str
    build: str
    started_at: str
    uptime_seconds: float
    store: dict[str, Any]
    engines: list[Any]
    parts: list[PartView]
    #: not of older servers
    isolation: NotRequired[IsolationView]
    licence: LicenceView
