"""Queues, waiting lines, reservations, receipts of preemptions and the accuracy of estimated starts.

Generated from docs/reference/openapi.json by `make openapi`: do not edit.
"""

from typing import Literal, NotRequired, TypedDict

from corral.client.views.jobs import EstimatedStartView, JobKind, PreemptionRule


class HorizonAccuracyView(TypedDict):
    started: int
    #: Which part of them started by then; null: none can be judged yet.
    before_p50: float | None
    before_p90: float | None
    #: Between p50 and the start, whichever was first.
    median_error_seconds: float | None
    #: How far ahead those estimates looked, such as `< 1 h`.
    horizon: str


class ToldView(TypedDict):
    job: str
    made_at: str
    p50: str
    p90: str
    started_at: str


class EstimateAccuracyView(TypedDict):
    started: int
    #: Which part of them started by then; null: none can be judged yet.
    before_p50: float | None
    before_p90: float | None
    #: Between p50 and the start, whichever was first.
    median_error_seconds: float | None
    since: str | None
    #: Made since then; of those that still wait only the late ones are judged.
    estimates: int
    by_horizon: list[HorizonAccuracyView]
    #: The latest first; of jobs that the caller may see.
    recent: list[ToldView]


class ExpectedBackView(TypedDict):
    """When the job is expected to run again: half of the time not later, and nine times out of ten."""

    p50: str
    p90: str


class JobReceiptView(TypedDict):
    id: int
    #: When the job was told to save and end.
    at: str
    rule: PreemptionRule
    #: The rule with its numbers.
    detail: str
    #: Who gave way.
    job: str
    job_name: str
    user: str
    #: The attempt that was ended.
    attempt: int
    #: Who starts instead.
    for_job: str
    for_job_name: str
    for_user: str
    #: What it held.
    gpus: float
    #: Work that was saved nowhere when it was told; once `saved` is known, what was lost.
    lost_gpu_seconds: float
    #: Whether its program saved between the warning and its end; null until that is known.
    saved: bool | None
    #: When its attempt was over and it waited again.
    ended_at: str | None
    #: When its next attempt was up.
    back_at: str | None
    #: While it waits: when it is expected to run again.
    expected_back: ExpectedBackView | None
    #: Whether the job gave way, or others gave way to it.
    role: Literal["preempted", "preempting"]


Blocking = Literal["strict", "backfill"]


class QueueView(TypedDict):
    name: str
    pool: str
    policy: str
    blocking: Blocking
    placement: str
    weight: float
    guaranteed_gpus: int
    preempts: bool
    max_gpus: int | None
    max_length: int | None
    max_seconds: float | None
    kinds: list[JobKind]
    groups: list[str]
    min_job_gpus: int | None
    max_job_gpus: int | None
    running: int
    queued: int
    held_gpus: float
    #: What it holds beyond its guarantee, where queues of the pool have one: lent until they ask.
    borrowed_gpus: float
    #: What it is guaranteed and does not hold.
    owed_gpus: float


class ReceiptView(TypedDict):
    """One job gave way to another. Both owners see it, and operators do."""

    id: int
    #: When the job was told to save and end.
    at: str
    rule: PreemptionRule
    #: The rule with its numbers.
    detail: str
    #: Who gave way.
    job: str
    job_name: str
    user: str
    #: The attempt that was ended.
    attempt: int
    #: Who starts instead.
    for_job: str
    for_job_name: str
    for_user: str
    #: What it held.
    gpus: float
    #: Work that was saved nowhere when it was told; once `saved` is known, what was lost.
    lost_gpu_seconds: float
    #: Whether its program saved between the warning and its end; null until that is known.
    saved: bool | None
    #: When its attempt was over and it waited again.
    ended_at: str | None
    #: When its next attempt was up.
    back_at: str | None
    #: While it waits: when it is expected to run again.
    expected_back: ExpectedBackView | None


class ReservationView(TypedDict):
    name: str
    pool: str
    model: str
    gpus: list[str]
    #: Its GPUs by node; those that are not there now are under ''.
    nodes: dict[str, list[str]]
    gpu_count: int
    users: list[str]
    groups: list[str]
    since: str
    #: Null while it stands.
    until: str | None
    lends: bool
    note: str
    state: Literal["upcoming", "active", "standing", "over"]
    #: False when it is over, and for a standing one where nothing stands (dynamic).
    in_force: bool
    #: GPUs that owners hold now.
    used_by_owners: int
    #: GPUs that others hold within the window now.
    lent: int
    created_by: str
    created_at: str


class OrderedJobView(TypedDict):
    """A place in a line; of a job that the caller may not see only whose it is and how large."""

    position: int
    id: str | None
    name: str | None
    user: str
    gpus: float
    nodes: int
    #: The only cluster where it may run; null: several will do.
    cluster: str | None
    priority: int
    pinned: bool
    score: float | None
    detail: str
    #: Its owner has given it a place among the own jobs.
    moved: bool
    queued_at: str | None
    planned_start: str | None
    #: When it is expected to start; null while nothing can be told.
    estimated_start: EstimatedStartView | None


class LineView(TypedDict):
    """Jobs that wait for the same: one GPU model, on one node or as a gang."""

    model: str
    line: Literal["single", "gang"]
    #: Jobs in the line; of a long one not all are shown.
    length: int
    jobs: list[OrderedJobView]


class OrderView(TypedDict):
    lines: list[LineView]
    #: Jobs that come after others, and so stand in no line yet.
    waiting_for_others: int


class QueueCreate(TypedDict):
    name: str
    blocking: NotRequired[Literal["strict", "backfill"]]
    #: Groups that may use it beside the one that has its pool.
    groups: NotRequired[list[str]]
    #: GPUs that come back to it when it needs them; together at most what its pool has.
    guaranteed_gpus: NotRequired[int]
    kinds: NotRequired[list[Literal["workbench", "training", "distributed", "preset"]]]
    max_gpus: NotRequired[int | None]
    max_job_gpus: NotRequired[int | None]
    max_length: NotRequired[int | None]
    max_seconds: NotRequired[float | str | None]
    min_job_gpus: NotRequired[int | None]
    placement: NotRequired[str]
    policy: NotRequired[str]
    pool: NotRequired[str]
    #: Jobs at its front take GPUs from those far behind them that run; with priority, shortest or weighted.
    preempts: NotRequired[bool]
    weight: NotRequired[float]


class QueueEdit(TypedDict):
    """What may be changed about a queue; what is left out stays as it is, null takes a limit away."""

    blocking: NotRequired[Literal["strict", "backfill"]]
    #: Groups that may use it beside the one that has its pool.
    groups: NotRequired[list[str]]
    #: GPUs that come back to it when it needs them; together at most what its pool has.
    guaranteed_gpus: NotRequired[int]
    kinds: NotRequired[list[Literal["workbench", "training", "distributed", "preset"]]]
    max_gpus: NotRequired[int | None]
    max_job_gpus: NotRequired[int | None]
    max_length: NotRequired[int | None]
    max_seconds: NotRequired[float | str | None]
    min_job_gpus: NotRequired[int | None]
    placement: NotRequired[str]
    policy: NotRequired[str]
    #: Jobs at its front take GPUs from those far behind them that run; with priority, shortest or weighted.
    preempts: NotRequired[bool]
    weight: NotRequired[float]


class ReservationCreate(TypedDict):
    name: str
    pool: str
    #: Or exactly these.
    gpu_ids: NotRequired[list[str] | None]
    #: So many: corral chooses, whole nodes first.
    gpus: NotRequired[int | None]
    groups: NotRequired[list[str]]
    #: Whether preemptible jobs of others may use what owners do not.
    lends: NotRequired[bool]
    #: Of this model; left out, of the one that has most free.
    model: NotRequired[str | None]
    note: NotRequired[str]
    #: Left out, or in the past: from now on.
    since: NotRequired[str | None]
    #: Left out: it stands until it is deleted.
    until: NotRequired[str | None]
    users: NotRequired[list[str]]


class ReservationEdit(TypedDict):
    gpu_ids: NotRequired[list[str] | None]
    gpus: NotRequired[int | None]
    groups: NotRequired[list[str] | None]
    lends: NotRequired[bool | None]
    model: NotRequired[str | None]
    note: NotRequired[str | None]
    since: NotRequired[str | None]
    #: Null lets it stand until it is deleted; left out, it stays.
    until: NotRequired[str | None]
    users: NotRequired[list[str] | None]
