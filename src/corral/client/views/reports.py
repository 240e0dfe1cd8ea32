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
    #: The job, GPU, queue or pool that the finding is about.
    subject: str
    title: str
    #: The numbers that the finding is based on.
    evidence: dict[str, float | str]
    text: str
    proposal: str


class GpuHoursView(TypedDict):
    #: The user, group, queue or GPU model; empty if there is none.
    key: str
    gpu_hours: float
    measured_gpu_hours: float
    #: Measured utilisation times time.
    busy_gpu_hours: float
    idle_gpu_hours: float
    #: Energy in the period; a job that began or ended outside it counts by time.
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
    #: Data that was not available.
    notes: list[str]


MoveState = Literal["waiting", "moving", "done", "left-out", "cancelled"]


class RunMoveView(TypedDict):
    job: str
    name: str
    user: str
    from_node: str
    to_node: str
    #: left-out: the job or its place had changed.
    state: MoveState
    #: Receipt of the move; null before it has begun.
    receipt: int | None
    detail: str


class DefragmentationRunView(TypedDict):
    started_at: str
    started_by: str
    ended_at: str | None
    moves: list[RunMoveView]


class DefragmentationStart(TypedDict):
    """The moves of the present plan that are approved."""

    #: Also move jobs that never saved, or that are not preemptible: they lose their work.
    include_unsaved: NotRequired[bool]
    #: Only the moves of these jobs; null: of all that have saved a checkpoint.
    jobs: NotRequired[list[str] | None]


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
    #: Upper bound of the work that is repeated: the time since the last checkpoint.
    lost_gpu_hours: float


class DefragmentationView(TypedDict):
    """A proposed plan. It is carried out on request."""

    #: In the order in which they can be carried out.
    moves: list[MoveView]
    frees: list[FreedNodeView]
    #: Waiting jobs that would fit.
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
    #: Hour of the day, in UTC.
    hour: NotRequired[int]
    period: NotRequired[Literal["daily", "weekly", "monthly"]]
    #: Monday is 0; only for weekly schedules.
    weekday: NotRequired[int]


class ScheduleEdit(TypedDict):
    """Changes to a schedule. Fields that are left out keep their values."""

    #: Channels that the report is sent to.
    channels: NotRequired[list[str]]
    enabled: NotRequired[bool]
    #: Hour of the day, in UTC.
    hour: NotRequired[int]
    period: NotRequired[Literal["daily", "weekly", "monthly"]]
    #: Monday is 0; only for weekly schedules.
    weekday: NotRequired[int]
