"""API schemas: queues."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import Field

from corral.control.jobs.job_clusters import Homes
from corral.control.live.unit_of_work import Caller
from corral.control.people.permissions import may_see_job
from corral.control.scheduling import views
from corral.core.model import WHOLE, Blocking, Job, JobKind, Queue
from corral.server.scheduling.estimate_worker import Current
from corral.server.schemas.base import Body, Duration, Label, Note, Number, View, number, rfc3339, rfc3339_or_none
from corral.server.schemas.scheduling.estimates import EstimatedStartView, estimated_start_view
from corral.server.schemas.scheduling.explain import ReasonView

MAX_GPUS = 1_000_000
#: jobs in the list of those that are next
MOST_NEXT = 50
#: later than every time that is shown
_NEVER = "~"


GpuCount = Annotated[int, Field(ge=0, le=MAX_GPUS)]
Kinds = list[Literal["workbench", "training", "distributed", "preset"]]


class QueueEdit(Body):
    """Changes to a queue. Fields that are left out keep their values; null removes a limit."""

    policy: Label = "fair-share"
    blocking: Literal["strict", "backfill"] = Field(
        default="backfill",
        description="strict: later jobs of the same GPU model wait for the first one. A new queue has the setting "
        "scheduling.blocking unless this is given.",
    )
    placement: Label = "fragmentation"
    weight: Annotated[float, Field(gt=0, le=1000)] = 1.0
    guaranteed_gpus: GpuCount = Field(
        default=0,
        description="GPUs that the queue can reclaim; all guarantees together are at most the pool's GPUs.",
    )
    preempts: bool = Field(
        default=False,
        description="Jobs at the front preempt running jobs that are far behind them; with priority, shortest or "
        "weighted.",
    )
    max_gpus: GpuCount | None = None
    max_length: Annotated[int, Field(ge=0, le=10_000_000)] | None = None
    max_seconds: Annotated[Duration, Field(gt=0)] | None = None
    kinds: Kinds = Field(default_factory=list)
    groups: Annotated[list[Label], Field(max_length=1000)] = Field(
        default_factory=list, description="Groups that may use the queue besides the group that owns its pool."
    )
    min_job_gpus: GpuCount | None = None
    max_job_gpus: GpuCount | None = None
    description: Note = Field(default="", description="Purpose of the queue.")


class QueueCreate(QueueEdit):
    name: Label
    pool: Label = "default"


class QueueView(View):
    name: str
    pool: str
    policy: str
    blocking: Blocking
    placement: str
    weight: Number
    guaranteed_gpus: int
    preempts: bool
    max_gpus: int | None
    max_length: int | None
    max_seconds: Number | None
    kinds: list[JobKind]
    groups: list[str]
    min_job_gpus: int | None
    max_job_gpus: int | None
    description: str
    running: int
    queued: int
    held_gpus: Number
    borrowed_gpus: Number = Field(
        description="GPUs borrowed beyond the guarantee, if queues of the pool have one; those queues can reclaim them."
    )
    owed_gpus: Number = Field(description="Guaranteed GPUs that the queue does not hold.")


class OrderedJobView(View):
    """A position in a waiting line; of a job that the caller may not see, only its owner and its size are shown."""

    position: int
    id: str | None
    name: str | None
    user: str
    gpus: Number
    nodes: int
    cluster: str | None = Field(description="The only cluster in which the job may run; null: several.")
    priority: int
    pinned: bool
    score: float | None
    detail: str
    moved: bool = Field(description="The owner has moved the job among the owner's own jobs.")
    queued_at: str | None
    planned_start: str | None
    estimated_start: EstimatedStartView | None = Field(description="Estimated start; null while no estimate exists.")


class NextJobView(OrderedJobView):
    reason: ReasonView | None = Field(
        description="The first reason that holds the job; null if there is none, or the caller may not see the job."
    )


class LineView(View):
    """Jobs that wait for the same resources: one GPU model, on one node or as a gang."""

    model: str
    line: Literal["single", "gang"]
    length: int = Field(description="Number of jobs in the waiting line; of a long line not all jobs are shown.")
    jobs: list[OrderedJobView]


class OrderView(View):
    lines: list[LineView]
    waiting_for_others: int = Field(description="Jobs that depend on others, and so are in no waiting line yet.")


def changes_of(body: QueueEdit) -> dict[str, Any]:
    """The fields that were given, in the form of the model."""
    changes = body.model_dump(exclude_unset=True)
    if "blocking" in changes:
        changes["blocking"] = Blocking(changes["blocking"])
    if "kinds" in changes:
        changes["kinds"] = tuple(JobKind(kind) for kind in changes["kinds"])
    if "groups" in changes:
        changes["groups"] = tuple(sorted(set(changes["groups"])))
    return changes


def queue_of(body: QueueCreate, blocking: Blocking) -> Queue:
    """`blocking` is the installation's, for a queue that names none."""
    # In the model, placement has another default: that of journal entries from before placement could be chosen.
    return Queue(**{"placement": body.placement, "blocking": blocking, **changes_of(body)})


def queue_view(view: views.QueueView) -> QueueView:
    settings: dict[str, Any] = {field.name: getattr(view.queue, field.name) for field in fields(Queue)}
    settings |= {"kinds": list(view.queue.kinds), "groups": list(view.queue.groups)}
    return QueueView(
        **settings,
        running=view.running,
        queued=view.queued,
        held_gpus=number(view.guarantee_use.held_milli / WHOLE),
        borrowed_gpus=number(view.guarantee_use.borrowed_milli / WHOLE),
        owed_gpus=number(view.guarantee_use.owed_milli / WHOLE),
    )


def line_view(
    view: views.LineView,
    caller: Caller,
    expected: Callable[[Job], Current | None],
    homes: Homes,
    *,
    shows_names: bool = False,
) -> LineView:
    """`shows_names`: also of jobs that the caller may not see otherwise."""
    return LineView(
        model=view.key.model,
        line="gang" if view.key.is_gang else "single",
        length=view.length,
        jobs=[_ordered_job(place, caller, expected(place.job), homes, shows_names) for place in view.places],
    )


def next_jobs(jobs: Sequence[OrderedJobView], limit: int) -> list[OrderedJobView]:
    """By their likely start; jobs without one follow by their place in their own line."""
    return sorted(jobs, key=lambda job: (_likely_start(job), job.position))[:limit]


def _likely_start(job: OrderedJobView) -> str:
    """The estimated start or, as it is a bound, the planned one if that is earlier. Times of one form sort as text."""
    estimated = job.estimated_start.p50 if job.estimated_start is not None else _NEVER
    return min(job.planned_start or _NEVER, estimated)


def _ordered_job(
    place: views.LinePlace, caller: Caller, expected: Current | None, homes: Homes, shows_names: bool
) -> OrderedJobView:
    job = place.job
    shown = may_see_job(caller, job.user)
    known = place.planned_start is not None and math.isfinite(place.planned_start)
    return OrderedJobView(
        position=place.position,
        id=job.id if shown else None,
        name=job.name if shown or shows_names else None,
        user=job.user,
        gpus=number(job.request.gpus + job.request.gpu_milli / WHOLE),
        nodes=job.request.nodes,
        cluster=homes.only(job),
        priority=job.priority,
        pinned=job.pinned_at is not None,
        score=place.score,
        detail=place.detail,
        moved=job.user_order != 0,
        queued_at=rfc3339_or_none(job.queued_at),
        planned_start=rfc3339(place.planned_start) if known and place.planned_start is not None else None,
        estimated_start=estimated_start_view(expected),
    )
