"""Reports, their schedules and the analysis of usage.

Generated from docs/reference/openapi.json by `make openapi`: do not edit.
"""

from typing import Literal, NotRequired, TypedDict

from corral.client.views.jobs import AllocationView

FindingKind = Literal[
    "idle-allocation",
    "low-utilization",
    "oversized-request",
    "fragmentation",
    "hot-gpu",
    "pool-balance",
    "starving-queue",
]


Severity = Literal["info", "warning", "critical"]


class FindingView(TypedDict):
    kind: FindingKind
    severity: Severity
    #: The job, GPU, queue or pool that it is about.
    subject: str
    title: str
    #: The numbers behind it.
    evidence: dict[str, float | str]
    text: str
    proposal: str


class GpuHoursView(TypedDict):
    #: The user, group, queue or GPU model; empty for what has none.
    key: str
    gpu_hours: float
    measured_gpu_hours: float
    #: Utilisation times time, of what was measured.
    busy_gpu_hours: float
    idle_gpu_hours: float
    #: Of a job that crosses the border of the period, the part by its time.
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
    #: What could not be looked at.
    notes: list[str]


class FreedNodeView(TypedDict):
    node: str
    pool: str
    model: str
    gpus: list[str]
    free_before: int


class MoveView(TypedDict):
    job: str
    name: str
    user: str
    from_node: str
    to_node: str
    before: AllocationView
    after: AllocationView
    #: Work that is done again, at most: the time since the last checkpoint.
    lost_gpu_hours: float


class DefragmentationView(TypedDict):
    """A plan to look at. Nothing carries it out by itself."""

    #: In the order in which they can be made.
    moves: list[MoveView]
    frees: list[FreedNodeView]
    #: Waiting jobs that would find a place.
    helps: list[str]
    lost_gpu_hours: float


ReportPeriod = Literal["daily", "weekly", "monthly", "custom"]


ReportState = Literal["working", "ready", "failed"]


class ReportView(TypedDict):
    id: str
    title: str
    period: ReportPeriod
    since: str
    until: str
    created_at: str
    created_by: str
    schedule: str | None
    state: ReportState
    error: str
    formats: list[str]


class ScheduleView(TypedDict):
    name: str
    period: ReportPeriod
    hour: int
    weekday: int
    channels: list[str]
    enabled: bool
    created_at: str
    last_until: str | None
    next_run: str | None


class ReportCreate(TypedDict):
    """A period that ends now, or a span from `since` until `until` (now when left out)."""

    period: NotRequired[float | str | None]
    since: NotRequired[str | None]
    until: NotRequired[str | None]


class ScheduleCreate(TypedDict):
    name: str
    #: Channels that the report is sent to.
    channels: NotRequired[list[str]]
    enabled: NotRequired[bool]
    #: Of the day, in UTC.
    hour: NotRequired[int]
    period: NotRequired[Literal["daily", "weekly", "monthly"]]
    #: Monday is 0; only of weekly ones.
    weekday: NotRequired[int]


class ScheduleEdit(TypedDict):
    """What may be changed about a schedule; what is left out stays as it is."""

    #: Channels that the report is sent to.
    channels: NotRequired[list[str]]
    enabled: NotRequired[bool]
    #: Of the day, in UTC.
    hour: NotRequired[int]
    period: NotRequired[Literal["daily", "weekly", "monthly"]]
    #: Monday is 0; only of weekly ones.
    weekday: NotRequired[int]
