"""Queues, waiting lines, reservations, receipts of preemptions and the accuracy of estimated starts.

Generated from docs/reference/openapi.json by `make openapi`: do not edit.
"""

from typing import Literal, NotRequired, TypedDict

from corral.client.views.jobs import EstimatedStartView, JobKind, PreemptionRule, ReasonView


class HorizonAccuracyView(TypedDict):
    started: int
    #: Share of the jobs that started by then; null: no estimate can be judged yet.
    before_p50: float | None
    before_p90: float | None
    #: Difference between p50 and the start, whichever was first.
    median_error_seconds: float | None
    #: Time between the estimate and the estimated start, such as `< 1 h`.
    horizon: str


class PastEstimateView(TypedDict):
    job: str
    made_at: str
    p50: str
    p90: str
    started_at: str


class EstimateAccuracyView(TypedDict):
    started: int
    #: Share of the jobs that started by then; null: no estimate can be judged yet.
    before_p50: float | None
    before_p90: float | None
    #: Difference between p50 and the start, whichever was first.
    median_error_seconds: float | None
    since: str | None
    #: Estimates made since then; of jobs that still wait, only those that are late are judged.
    estimates: int
    by_horizon: list[HorizonAccuracyView]
    #: Estimates for jobs that the caller may see, the latest first.
    recent: list[PastEstimateView]


class ExpectedBackView(TypedDict):
    """Time at which the job is expected to run again: by p50 in half of the cases, by p90 in nine of ten."""

    p50: str
    p90: str


class JobReceiptView(TypedDict):
    id: int
    #: Time at which the job was asked to save and end.
    at: str
    rule: PreemptionRule
    #: The rule with its numbers.
    detail: str
    #: The job that was preempted.
    job: str
    job_name: str
    user: str
    #: The attempt that was ended.
    attempt: int
    #: The job that starts instead.
    for_job: str
    for_job_name: str
    for_user: str
    #: GPUs that the job held.
    gpus: float
    #: Work that was not saved when the job was asked to end; once `saved` is known, the lost work.
    lost_gpu_seconds: float
    #: Whether the program saved between the warning and its end; null until known.
    saved: bool | None
    #: Time at which the attempt was over and the job waited again.
    ended_at: str | None
    #: Time at which the next attempt was running.
    back_at: str | None
    #: While the job waits: when it is expected to run again.
    expected_back: ExpectedBackView | None
    #: Whether the job was preempted, or other jobs were preempted for it.
    role: Literal["preempted", "preempting"]


class NextJobView(TypedDict):
    position: int
    id: str | None
    name: str | None
    user: str
    gpus: float
    nodes: int
    #: The only cluster in which the job may run; null: several.
    cluster: str | None
    priority: int
    pinned: bool
    score: float | None
    detail: str
    #: The owner has moved the job among the owner's own jobs.
    moved: bool
    queued_at: str | None
    planned_start: str | None
    #: Estimated start; null while no estimate exists.
    estimated_start: EstimatedStartView | None
    #: The first reason that holds the job; null if there is none, or the caller may not see the job.
    reason: ReasonView | None


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
    description: str
    running: int
    queued: int
    held_gpus: float
    #: GPUs borrowed beyond the guarantee, if queues of the pool have one; those queues can reclaim them.
    borrowed_gpus: float
    #: Guaranteed GPUs that the queue does not hold.
    owed_gpus: float


class ReceiptView(TypedDict):
    """One job was preempted for another. Both owners and operators see the receipt."""

    id: int
    #: Time at which the job was asked to save and end.
    at: str
    rule: PreemptionRule
    #: The rule with its numbers.
    detail: str
    #: The job that was preempted.
    job: str
    job_name: str
    user: str
    #: The attempt that was ended.
    attempt: int
    #: The job that starts instead.
    for_job: str
    for_job_name: str
    for_user: str
    #: GPUs that the job held.
    gpus: float
    #: Work that was not saved when the job was asked to end; once `saved` is known, the lost work.
    lost_gpu_seconds: float
    #: Whether the program saved between the warning and its end; null until known.
    saved: bool | None
    #: Time at which the attempt was over and the job waited again.
    ended_at: str | None
    #: Time at which the next attempt was running.
    back_at: str | None
    #: While the job waits: when it is expected to run again.
    expected_back: ExpectedBackView | None


class ReservationView(TypedDict):
    name: str
    pool: str
    model: str
    gpus: list[str]
    #: The GPUs by node; GPUs that are not present now are under ''.
    nodes: dict[str, list[str]]
    gpu_count: int
    users: list[str]
    groups: list[str]
    since: str
    #: Null if the reservation has no end.
    until: str | None
    lends: bool
    note: str
    state: Literal["upcoming", "active", "standing", "over"]
    #: False once the reservation is over, and for a standing one if the strategy is dynamic.
    in_force: bool
    #: GPUs that owners hold now.
    used_by_owners: int
    #: GPUs that others hold within the window now.
    lent: int
    created_by: str
    created_at: str


class OrderedJobView(TypedDict):
    """A position in a waiting line; of a job that the caller may not see, only its owner and its size are shown."""

    position: int
    id: str | None
    name: str | None
    user: str
    gpus: float
    nodes: int
    #: The only cluster in which the job may run; null: several.
    cluster: str | None
    priority: int
    pinned: bool
    score: float | None
    detail: str
    #: The owner has moved the job among the owner's own jobs.
    moved: bool
    queued_at: str | None
    planned_start: str | None
    #: Estimated start; null while no estimate exists.
    estimated_start: EstimatedStartView | None


class LineView(TypedDict):
    """Jobs that wait for the same resources: one GPU model, on one node or as a gang."""

    model: str
    line: Literal["single", "gang"]
    #: Number of jobs in the waiting line; of a long line not all jobs are shown.
    length: int
    jobs: list[OrderedJobView]


class OrderView(TypedDict):
    lines: list[LineView]
    #: Jobs that depend on others, and so are in no waiting line yet.
    waiting_for_others: int


class QueueCreate(TypedDict):
    name: str
    #: strict: later jobs of the same GPU model wait for the first one. A new queue has the setting scheduling.blocking
    #: unless this is given.
    blocking: NotRequired[Literal["strict", "backfill"]]
    #: Purpose of the queue.
    description: NotRequired[str]
    #: Groups that may use the queue besides the group that owns its pool.
    groups: NotRequired[list[str]]
    #: GPUs that the queue can reclaim; all guarantees together are at most the pool's GPUs.
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
    #: Jobs at the front preempt running jobs that are far behind them; with priority, shortest or weighted.
    preempts: NotRequired[bool]
    weight: NotRequired[float]


class QueueEdit(TypedDict):
    """Changes to a queue. Fields that are left out keep their values; null removes a limit."""

    #: strict: later jobs of the same GPU model wait for the first one. A new queue has the setting scheduling.blocking
    #: unless this is given.
    blocking: NotRequired[Literal["strict", "backfill"]]
    #: Purpose of the queue.
    description: NotRequired[str]
    #: Groups that may use the queue besides the group that owns its pool.
    groups: NotRequired[list[str]]
    #: GPUs that the queue can reclaim; all guarantees together are at most the pool's GPUs.
    guaranteed_gpus: NotRequired[int]
    kinds: NotRequired[list[Literal["workbench", "training", "distributed", "preset"]]]
    max_gpus: NotRequired[int | None]
    max_job_gpus: NotRequired[int | None]
    max_length: NotRequired[int | None]
    max_seconds: NotRequired[float | str | None]
    min_job_gpus: NotRequired[int | None]
    placement: NotRequired[str]
    policy: NotRequired[str]
    #: Jobs at the front preempt running jobs that are far behind them; with priority, shortest or weighted.
    preempts: NotRequired[bool]
    weight: NotRequired[float]


class ReservationCreate(TypedDict):
    name: str
    pool: str
    #: Or the ids of the GPUs.
    gpu_ids: NotRequired[list[str] | None]
    #: Number of GPUs; corral chooses them, whole nodes first.
    gpus: NotRequired[int | None]
    groups: NotRequired[list[str]]
    #: Whether preemptible jobs of others may use GPUs that the owners do not use.
    lends: NotRequired[bool]
    #: Model of the GPUs; left out: the model with most free GPUs.
    model: NotRequired[str | None]
    note: NotRequired[str]
    #: Left out, or in the past: now.
    since: NotRequired[str | None]
    #: Left out: the reservation lasts until it is deleted.
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
    #: Null: the reservation lasts until it is deleted; left out: unchanged.
    until: NotRequired[str | None]
    users: NotRequired[list[str] | None]
