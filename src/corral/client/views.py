"""The shapes of the API's answers. They mirror `/api/v1`; the server is the one that fills them.

Times are RFC 3339 strings in UTC, sizes are bytes, GPUs and cpus are numbers (0.5 is a share).
"""

from __future__ import annotations

from typing import Any, Generic, NotRequired, TypedDict, TypeVar

Item = TypeVar("Item")


class PageView(TypedDict, Generic[Item]):
    items: list[Item]
    next_cursor: str | None


class GrantView(TypedDict):
    node: str
    gpus: list[str]
    gpu_share: float
    cpus: float
    memory_bytes: int


class AllocationView(TypedDict):
    model: str
    grants: list[GrantView]


class UsageView(TypedDict):
    """What was held and used, so far."""

    gpu_hours: float
    measured_gpu_hours: float
    #: null when it was never measured
    utilization: float | None
    idle_gpu_hours: float
    energy_kwh: float
    memory_peak_bytes: int


class IdleWarningView(TypedDict):
    warned_at: str
    deadline: str
    extended_at: str | None


class ArrayView(TypedDict):
    """The array that a job belongs to."""

    name: str
    index: int
    size: int


class ElasticView(TypedDict):
    """How far a job may grow and shrink, and where it stands."""

    min_gpus: int
    max_gpus: int
    utilization: float | None
    resized_at: str | None
    #: while it is resized
    next_gpus: list[str] | None


class JobView(TypedDict):
    id: str
    name: str
    user: str
    kind: str
    state: str
    queue: str
    priority: int
    nodes: int
    gpus: float
    cpus: float
    memory_bytes: int
    models: list[str]
    labels: dict[str, str]
    flavor: NotRequired[str | None]
    package: NotRequired[str | None]
    preset: NotRequired[str | None]
    parameters: NotRequired[dict[str, str]]
    command: list[str]
    env: dict[str, str]
    workdir: str | None
    image: str | None
    venv: str | None
    time_limit_seconds: float | None
    grace_seconds: float
    max_retries: int
    checkpoint_interval_seconds: NotRequired[float | None]
    checkpointed_at: NotRequired[str | None]
    created_at: str
    queued_at: str | None
    started_at: str | None
    ended_at: str | None
    pinned_at: str | None
    attempt: int
    attempt_id: str | None
    allocation: AllocationView | None
    elastic: NotRequired[ElasticView | None]
    end_reason: str | None
    exit_code: int | None
    message: str
    retries: int
    not_before: str | None
    stopping_for: str | None
    #: jobs that must complete before it may start
    after: list[str]
    array: ArrayView | None
    #: only of a single job
    usage: NotRequired[UsageView | None]
    idle_warning: NotRequired[IdleWarningView | None]


class CheckpointView(TypedDict):
    name: str
    path: str | None
    step: int
    saved_at: str | None
    size_bytes: int
    attempt: int | None
    parts: int
    good: bool
    problem: str | None


class FileView(TypedDict):
    name: str
    path: str
    kind: str
    is_dir: bool
    size_bytes: int
    modified_at: str


class LogMatchView(TypedDict):
    attempt: int
    rank: int
    line: int
    offset: int
    text: str


class ParameterView(TypedDict):
    name: str
    type: str
    default: bool | int | float | str | None
    choices: list[str]
    min: float | None
    max: float | None
    help: str


class PresetView(TypedDict):
    name: str
    title: str
    description: str
    parameters: list[ParameterView]
    gpus: float
    cpus: float
    memory_bytes: int
    time_limit_seconds: float | None
    image: str | None
    venv: str | None
    command: list[str]
    env: dict[str, str]
    shipped: bool
    created_by: str | None
    created_at: str | None
    #: only of a single one
    yaml: NotRequired[str | None]


class AttemptView(TypedDict):
    id: str
    number: int
    allocation: AllocationView
    planned_at: str
    started_at: str | None
    ended_at: str | None
    end_reason: str | None
    exit_code: int | None
    message: str
    usage: NotRequired[UsageView | None]


class ReasonView(TypedDict):
    rule: str
    detail: str
    numbers: dict[str, Any]
    jobs: list[str]


class JobRefView(TypedDict):
    """Without id and name where the caller may not see the job."""

    id: str | None
    name: str | None
    user: str


class WhyView(TypedDict):
    job_id: str
    state: str
    summary: str
    reasons: list[ReasonView]
    position: int | None
    ahead: list[JobRefView]
    ahead_count: int
    planned_start: str | None
    planned_nodes: list[str]


class PlanView(TypedDict):
    outcome: str
    detail: str
    start_at: str | None
    nodes: list[str]
    reasons: list[ReasonView]
    ahead_count: int


class QueueView(TypedDict):
    name: str
    pool: str
    policy: str
    blocking: str
    placement: str
    weight: float
    guaranteed_gpus: int
    max_gpus: int | None
    max_length: int | None
    max_seconds: float | None
    kinds: list[str]
    groups: list[str]
    min_job_gpus: int | None
    max_job_gpus: int | None
    running: int
    queued: int
    held_gpus: float


class OrderedJobView(TypedDict):
    position: int
    id: str | None
    name: str | None
    user: str
    gpus: float
    nodes: int
    priority: int
    pinned: bool
    score: float | None
    detail: str
    planned_start: str | None


class LineView(TypedDict):
    model: str
    line: str
    jobs: list[OrderedJobView]


class OrderView(TypedDict):
    lines: list[LineView]
    #: jobs that come after others, and so stand in no line yet
    waiting_for_others: NotRequired[int]


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
    model: str
    memory_bytes: int
    health: str
    health_since: NotRequired[str | None]
    evidence: NotRequired[list[EvidenceView]]
    pool: str
    allocated: float
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


class GroupView(TypedDict):
    name: str
    description: str
    pool: str | None
    users: list[str]
    users_count: int
    created_at: str


class NodeView(TypedDict):
    id: str
    cluster: str
    state: str
    #: what an operator has said about it
    withheld: NotRequired[str]
    cpus: float
    memory_bytes: int
    labels: dict[str, str]
    load: float | None
    gpus_total: int
    gpus_free: float
    gpus_allocated: float
    gpus: list[GpuView]
    jobs: list[HolderView]
    host: NotRequired[HostView | None]


class ClusterView(TypedDict):
    name: str
    engine: str
    healthy: bool
    detail: str
    nodes: int
    gpus: int


class ScoreView(TypedDict):
    user: str
    model: str
    score: float
    usage: float
    at: str


class ScorePointView(TypedDict):
    model: str
    at: str
    score: float
    usage: float


class FlavorView(TypedDict):
    name: str
    models: list[str]
    labels: dict[str, str]
    description: str
    gpus_total: int
    packages: list[str]
    created_at: str


class PackageView(TypedDict):
    name: str
    gpus: float
    cpus: float
    memory_bytes: int
    flavor: str | None
    models: list[str]
    rdma: bool
    kinds: list[str]
    description: str
    created_at: str
    available: bool | None
    queue: str | None
    free_count: int | None
    queued: int | None
    expected_wait_seconds: float | None


class HeldView(TypedDict):
    limit: float | None
    held: float


class KindQuotaView(TypedDict):
    gpus: HeldView
    cpus: HeldView
    memory_bytes: HeldView


class QuotaUsageView(TypedDict):
    user: str
    kinds: dict[str, KindQuotaView]
    volumes: dict[str, HeldView]


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
    gpus: int
    gpus_free: float
    gpus_allocated: float
    gpus_suspect: int
    gpus_failed: int
    gpus_stale: int
    allocation: float
    utilization: float | None
    power_watts: float | None
    temperature_celsius: float | None
    jobs: dict[str, int]
    queued: int
    alerts: dict[str, int]


class EventView(TypedDict):
    id: int
    at: str
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]
    source: str


class MeView(TypedDict):
    name: str
    display_name: str
    email: str
    role: str
    group: str | None
    pool: str | None
    permission_group: str
    functions: list[str]
    provider: str
    must_change_password: bool
    limits: NotRequired[dict[str, Any]]
    quota: NotRequired[dict[str, QuotaView]]


class TokenView(TypedDict):
    id: str
    name: str
    scopes: list[str]
    created_at: str
    expires_at: str | None
    last_used_at: str | None
    token: NotRequired[str]


class UserView(TypedDict):
    name: str
    display_name: str
    email: str
    role: str
    disabled: bool
    group: str | None
    permission_group: str
    provider: str
    must_change_password: bool
    active_jobs: int
    created_at: str
    last_seen_at: str | None
    password: NotRequired[str]


class QuotaView(TypedDict):
    gpus: float | None
    cpus: float | None
    memory_bytes: int | None


class LoginView(TypedDict):
    user: str
    role: str
    token: str
    must_change_password: NotRequired[bool]


class TaskView(TypedDict):
    task: str
    job: JobView
    warning: str | None


class PermissionGroupView(TypedDict):
    name: str
    functions: list[str]
    description: str
    users: list[str]
    users_count: int
    created_at: str


class SshKeyView(TypedDict):
    id: str
    name: str
    public_key: str
    fingerprint: str
    created_at: str


class PartView(TypedDict):
    name: str
    healthy: bool
    detail: str


class LicenceView(TypedDict):
    state: str
    holder: str | None
    expires_at: str | None
    detail: str


class AboutView(TypedDict):
    version: str
    build: str
    started_at: str
    uptime_seconds: float
    store: dict[str, Any]
    engines: list[Any]
    parts: list[PartView]
    licence: LicenceView


class ReportView(TypedDict):
    id: str
    title: str
    period: str
    since: str
    until: str
    created_at: str
    created_by: str
    schedule: str | None
    state: str
    error: str
    formats: list[str]


class ReportScheduleView(TypedDict):
    name: str
    period: str
    hour: int
    weekday: int
    channels: list[str]
    enabled: bool
    created_at: str
    last_until: str | None
    next_run: str | None


class PointView(TypedDict):
    at: str
    mean: float
    least: float
    most: float
    count: int


class SeriesView(TypedDict):
    metric: str
    subject: str
    unit: str
    points: list[PointView]


class MetricsView(TypedDict):
    since: str
    until: str
    step_seconds: float
    series: list[SeriesView]


class AttemptUsageView(UsageView):
    attempt_id: str
    planned_at: str
    ended_at: str | None


class JobMetricsView(MetricsView):
    totals: UsageView
    attempts: list[AttemptUsageView]


class FindingView(TypedDict):
    kind: str
    severity: str
    subject: str
    title: str
    evidence: dict[str, Any]
    text: str
    proposal: str


class GpuHoursView(TypedDict):
    key: str
    gpu_hours: float
    measured_gpu_hours: float
    busy_gpu_hours: float
    idle_gpu_hours: float
    energy_kwh: float
    utilization: float | None
    jobs: int


class UsageBreakdownView(TypedDict):
    total: GpuHoursView
    by_user: list[GpuHoursView]
    by_group: list[GpuHoursView]
    by_queue: list[GpuHoursView]
    by_model: list[GpuHoursView]


class AnalysisView(TypedDict):
    since: str
    until: str
    findings: list[FindingView]
    usage: UsageBreakdownView
    notes: list[str]


class MoveView(TypedDict):
    job: str
    name: str
    user: str
    from_node: str
    to_node: str
    before: AllocationView
    after: AllocationView
    lost_gpu_hours: float


class FreedNodeView(TypedDict):
    node: str
    pool: str
    model: str
    gpus: list[str]
    free_before: int


class DefragmentationView(TypedDict):
    moves: list[MoveView]
    frees: list[FreedNodeView]
    helps: list[str]
    lost_gpu_hours: float


class JupyterView(TypedDict):
    ready: bool
    address: str


class SshView(TypedDict):
    ready: bool
    host: str
    port: int | None
    account: str | None
    host_key: str | None
    command: str | None
    sessions: int


class WorkbenchView(TypedDict):
    id: str
    name: str
    user: str
    state: str
    message: str
    #: null where it is not offered
    jupyter: JupyterView | None
    ssh: SshView | None
    idle_seconds: float | None
    idle_stop_seconds: float | None
    image: str | None
    venv: str | None
    job: JobView
