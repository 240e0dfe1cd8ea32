"""API schemas: what-if questions and the shadow policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from corral.control.records import SimulationRecord, SimulationSource, SimulationState
from corral.core.model import DEFAULT_PRIORITY, DEFAULT_QUEUE, WHOLE, Job, JobKind, Request
from corral.core.quantities import parse_gpus
from corral.core.whatif.past_jobs import PastJob
from corral.core.whatif.scenario import describe, scenario_of
from corral.server.schemas.base import Body, Duration, Label, Size, View, rfc3339, rfc3339_or_none
from corral.server.whatif.simulation_runner import SimulationProgress

#: Limits of one request, so that it is answered while the caller waits.
MOST_TRACE_JOBS = 10_000

Moment = Annotated[Label, Field(min_length=1, examples=["2026-01-03T10:00:00Z"])]
Gpus = Annotated[int, Field(ge=0, le=1_000_000)]
#: 0 means: no limit
GpuLimit = Annotated[int, Field(ge=0, le=1_000_000, description="0 means: no limit.")]


class QueueChanges(Body):
    """Changes to a queue. Fields that are left out keep their values."""

    policy: Label | None = None
    blocking: Literal["strict", "backfill"] | None = None
    placement: Label | None = None
    preempts: bool | None = None
    weight: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    guaranteed_gpus: Gpus | None = None
    max_gpus: GpuLimit | None = None
    max_job_gpus: GpuLimit | None = None
    max_seconds: Annotated[float, Field(ge=0, le=1e9, description="0 means: no limit.")] | None = None


class PreemptionChanges(Body):
    enabled: bool | None = None
    min_run_seconds: Annotated[float, Field(ge=0, le=1e9)] | None = None
    margin: Annotated[float, Field(ge=0, le=1e6)] | None = None
    moves: bool | None = None


class LimitChanges(Body):
    max_gpus_per_user: GpuLimit | None = None
    max_gpus_per_job: GpuLimit | None = None
    max_total_gpus: GpuLimit | None = None


class NodesAdded(Body):
    nodes: Annotated[int, Field(ge=1, le=100_000)]
    gpus: Annotated[int, Field(ge=0, le=1024)]
    model: Annotated[Label, Field(min_length=1)]
    cpus: Annotated[float, Field(ge=0, le=1_000_000)] | None = Field(
        default=None, description="Left out: the number of the largest node."
    )
    memory_bytes: Size | None = None
    pool: Label | None = None


class FleetChanges(Body):
    scale: Annotated[float, Field(gt=0, le=100)] | None = None
    add: Annotated[list[NodesAdded], Field(max_length=50)] | None = None
    remove: Annotated[list[Label], Field(max_length=10_000)] | None = None
    pools: Annotated[dict[Label, Label], Field(max_length=10_000)] | None = Field(
        default=None, description="The pool that a node's GPUs are moved to."
    )


class RuleChanges(Body):
    """Changes to the rules; an empty body is the present cluster."""

    queues: Annotated[dict[Label, QueueChanges], Field(max_length=1000)] | None = Field(
        default=None, description="By the queue's name, or `*` for every queue."
    )
    score_memory_seconds: Annotated[float, Field(ge=1, le=1e9)] | None = None
    preemption: PreemptionChanges | None = None
    protected_starts: Annotated[int, Field(ge=0, le=1000)] | None = None


class Changes(RuleChanges):
    """Changes to the cluster; an empty body is the present cluster."""

    limits: LimitChanges | None = None
    quotas: Annotated[dict[Label, Annotated[int, Field(ge=-1, le=1_000_000)]], Field(max_length=10_000)] | None = Field(
        default=None, description="GPUs that a user may hold with each kind of job; -1 means: no quota."
    )
    fleet: FleetChanges | None = None
    any_model: bool | None = None
    all_policies: bool | None = Field(
        default=None, description="Only in `candidate`: each ordering policy in turn, with and without preemption."
    )


class TraceJobBody(Body):
    name: Label = "job"
    user: Label
    group: Label = ""
    queue: Label = DEFAULT_QUEUE
    submitted_at: Annotated[float, Field(ge=0, le=1e12, description="Seconds, on any clock.")]
    run_seconds: Annotated[float, Field(ge=0, le=1e9)]
    gpus: Annotated[float, Field(ge=0, le=1_000_000, description="GPUs of every node.")] = 1
    nodes: Annotated[int, Field(ge=1, le=100_000)] = 1
    cpus: Annotated[float, Field(ge=0, le=1_000_000)] = 0
    memory_bytes: Size = 0
    models: Annotated[list[Label], Field(max_length=100)] = Field(default_factory=list)
    time_limit_seconds: Duration | None = None
    priority: Annotated[int, Field(ge=1, le=10)] = DEFAULT_PRIORITY


class SimulationCreate(Body):
    """The last `days`, or the span from `since` until `until` (now if left out), or `jobs` of a trace."""

    name: Label = ""
    days: Annotated[float, Field(gt=0, le=92)] | None = None
    since: Moment | None = None
    until: Moment | None = None
    base: Changes = Field(default_factory=Changes)
    candidate: Changes
    jobs: Annotated[list[TraceJobBody], Field(min_length=1, max_length=MOST_TRACE_JOBS)] | None = None


class ProgressView(View):
    fraction: float
    phase: Literal["waiting", "reading", "base", "candidate", "done"]
    ended_jobs: int
    jobs: int | None
    eta_seconds: float | None


class PairView(View):
    base: float
    candidate: float


class HeadlineView(View):
    wait_mean_seconds: PairView
    completion_mean_seconds: PairView
    utilization: PairView
    preemptions: PairView


class SpreadView(View):
    mean: float
    p50: float
    p90: float
    p99: float
    max: float


class TimeSeriesView(View):
    """Means within steps of the same length; each begins at its time."""

    times: list[str]
    used_gpus: list[float]
    waiting_jobs: list[float]


class RunView(View):
    nodes: int
    gpus: int
    jobs: int
    unfinished_jobs: int
    cut_jobs: int
    left_out_jobs: int
    wait_seconds: SpreadView
    completion_seconds: SpreadView
    slowdown: SpreadView
    makespan_seconds: float
    utilization: float
    busy: float | None
    gpu_hours: float
    lost_gpu_hours: float
    preemptions: int
    resizes: int
    jain: float
    jain_slowdown: float
    course: TimeSeriesView
    waiting_cdf: list[list[float]]


class DifferenceView(View):
    field: str
    label: str
    unit: str
    base: float | None
    candidate: float | None
    change: float | None
    percent: float | None
    better: bool | None


class ShareRunView(View):
    jobs: int
    wait_mean_seconds: float
    wait_p50_seconds: float
    wait_p90_seconds: float
    wait_p99_seconds: float
    completion_mean_seconds: float
    gpu_hours: float
    preemptions: int
    lost_gpu_hours: float


class ShareView(View):
    name: str
    jobs: int
    base: ShareRunView
    candidate: ShareRunView


class FidelityView(View):
    jobs: int
    real_wait_seconds: SpreadView
    replayed_wait_seconds: SpreadView
    words: str


class LeftOutView(View):
    reason: str
    jobs: int


class PolicyPartView(View):
    """The jobs of one size or group under one policy."""

    name: str
    jobs: int
    wait_mean_seconds: float
    completion_mean_seconds: float
    percent: float | None = Field(description="The change of the mean completion time from the base.")


class PolicyView(View):
    policy: str
    preempts: bool
    is_present: bool
    jobs: int
    wait_mean_seconds: float
    wait_p99_seconds: float
    completion_mean_seconds: float
    completion_p99_seconds: float
    percent: float | None = Field(description="The change of the mean completion time from the base.")
    preemptions: int
    lost_gpu_hours: float
    jain_slowdown: float
    sizes: list[PolicyPartView]
    groups: list[PolicyPartView]


class RecommendationView(View):
    """Places in `policies`. `shown` is the candidate of the result: the recommended policy, or else the fastest."""

    recommended: int | None = Field(description="Null: keep the present rules.")
    fastest: int
    shown: int
    text: str


class ResultView(View):
    jobs: int
    carried_jobs: int
    estimated_jobs: int
    left_out: list[LeftOutView]
    fidelity: FidelityView | None
    base: RunView
    candidate: RunView
    differences: list[DifferenceView]
    groups: list[ShareView]
    users: list[ShareView]
    queues: list[ShareView]
    sizes: list[ShareView] = Field(default=[], description="1 GPU, one node, several nodes, no GPU.")
    policies: list[PolicyView] | None = Field(default=None, description="Only of a comparison of all policies.")
    recommendation: RecommendationView | None = None
    seconds: float


class ScenarioTextsView(View):
    base: str
    candidate: str


class SimulationView(View):
    id: str
    name: str
    state: SimulationState
    error: str
    created_by: str
    created_at: str
    started_at: str | None
    ended_at: str | None
    source: SimulationSource
    since: str
    until: str
    history_since: str | None = Field(
        description="Begin of the history of jobs if it is later than `since`: the replay begins there."
    )
    base: dict[str, Any]
    candidate: dict[str, Any]
    words: ScenarioTextsView
    progress: ProgressView
    headline: HeadlineView | None
    result: ResultView | None = Field(description="Only set for a single simulation that is ready.")


def plain_of(changes: RuleChanges) -> dict[str, Any]:
    """Returns only the given fields."""
    plain = changes.model_dump(exclude_none=True)
    return {name: value for name, value in plain.items() if value not in ({}, [])}


def simulation_view(
    record: SimulationRecord, progress: SimulationProgress | None = None, result: Mapping[str, Any] | None = None
) -> SimulationView:
    return SimulationView(
        id=record.id,
        name=record.name,
        state=record.state,
        error=record.error,
        created_by=record.created_by,
        created_at=rfc3339(record.created_at),
        started_at=rfc3339_or_none(record.started_at),
        ended_at=rfc3339_or_none(record.ended_at),
        source=record.source,
        since=rfc3339(record.since),
        until=rfc3339(record.until),
        history_since=rfc3339_or_none(record.history_since),
        base=dict(record.base),
        candidate=dict(record.candidate),
        words=ScenarioTextsView(
            base=describe(scenario_of(record.base)), candidate=describe(scenario_of(record.candidate))
        ),
        progress=_progress(record, progress),
        headline=None if record.headline is None else HeadlineView.model_validate(record.headline),
        result=None if result is None else _result(result),
    )


def past_job(body: TraceJobBody, number: int) -> PastJob:
    """Raises ValueError for a number of GPUs that no job can request."""
    whole, share = parse_gpus(body.gpus)
    request = Request(
        nodes=body.nodes,
        gpus=whole,
        gpu_milli=share,
        cpu_milli=round(body.cpus * WHOLE),
        memory_bytes=body.memory_bytes,
        models=tuple(sorted(set(body.models))),
    )
    return PastJob(
        job=Job(
            id=f"j-{number}",
            name=body.name,
            user=body.user,
            kind=JobKind.DISTRIBUTED if request.is_gang else JobKind.TRAINING,
            queue=body.queue,
            request=request,
            priority=body.priority,
            created_at=body.submitted_at,
            time_limit_seconds=body.time_limit_seconds,
        ),
        run_seconds=body.run_seconds,
        group=body.group,
    )


def _progress(record: SimulationRecord, progress: SimulationProgress | None) -> ProgressView:
    if record.state is SimulationState.READY:
        return ProgressView(fraction=1.0, phase="done", ended_jobs=record.jobs or 0, jobs=record.jobs, eta_seconds=None)
    now = progress or SimulationProgress()
    return ProgressView(
        fraction=now.fraction,
        phase=now.phase,  # type: ignore[arg-type]
        ended_jobs=now.ended_jobs,
        jobs=record.jobs if now.jobs is None else now.jobs,
        eta_seconds=now.eta_seconds,
    )


def _result(result: Mapping[str, Any]) -> ResultView:
    plain = dict(result)
    for name in ("base", "candidate"):
        run = dict(plain[name])
        run["course"] = {**run["course"], "times": [rfc3339(at) for at in run["course"]["times"]]}
        plain[name] = run
    return ResultView.model_validate(plain)
