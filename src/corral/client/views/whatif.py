"""Simulations and the shadow policy.

Generated from docs/reference/openapi.json by `make openapi`: do not edit.
"""

from typing import Any, Literal, NotRequired, TypedDict


class PairView(TypedDict):
    base: float
    candidate: float


class HeadlineView(TypedDict):
    wait_mean_seconds: PairView
    completion_mean_seconds: PairView
    utilization: PairView
    preemptions: PairView


class ProgressView(TypedDict):
    fraction: float
    phase: Literal["waiting", "reading", "base", "candidate", "done"]
    ended_jobs: int
    jobs: int | None
    eta_seconds: float | None


class DifferenceView(TypedDict):
    field: str
    label: str
    unit: str
    base: float | None
    candidate: float | None
    change: float | None
    percent: float | None
    better: bool | None


class SpreadView(TypedDict):
    mean: float
    p50: float
    p90: float
    p99: float
    max: float


class FidelityView(TypedDict):
    jobs: int
    real_wait_seconds: SpreadView
    replayed_wait_seconds: SpreadView
    words: str


class LeftOutView(TypedDict):
    reason: str
    jobs: int


class PolicyPartView(TypedDict):
    """The jobs of one size or group under one policy."""

    name: str
    jobs: int
    wait_mean_seconds: float
    completion_mean_seconds: float
    #: The change of the mean completion time from the base.
    percent: float | None


class PolicyView(TypedDict):
    policy: str
    preempts: bool
    is_present: bool
    jobs: int
    wait_mean_seconds: float
    wait_p99_seconds: float
    completion_mean_seconds: float
    completion_p99_seconds: float
    #: The change of the mean completion time from the base.
    percent: float | None
    preemptions: int
    lost_gpu_hours: float
    jain_slowdown: float
    sizes: list[PolicyPartView]
    groups: list[PolicyPartView]


class RecommendationView(TypedDict):
    """Places in `policies`. `shown` is the candidate of the result: the recommended policy, or else the fastest."""

    #: Null: keep the present rules.
    recommended: int | None
    fastest: int
    shown: int
    text: str


class TimeSeriesView(TypedDict):
    """Means within steps of the same length; each begins at its time."""

    times: list[str]
    used_gpus: list[float]
    waiting_jobs: list[float]


class RunView(TypedDict):
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


class ShareRunView(TypedDict):
    jobs: int
    wait_mean_seconds: float
    wait_p50_seconds: float
    wait_p90_seconds: float
    wait_p99_seconds: float
    completion_mean_seconds: float
    gpu_hours: float
    preemptions: int
    lost_gpu_hours: float


class ShareView(TypedDict):
    name: str
    jobs: int
    base: ShareRunView
    candidate: ShareRunView


class ResultView(TypedDict):
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
    seconds: float
    #: Only of a comparison of all policies.
    policies: NotRequired[list[PolicyView] | None]
    recommendation: NotRequired[RecommendationView | None]
    #: 1 GPU, one node, several nodes, no GPU.
    sizes: NotRequired[list[ShareView]]


class ScenarioTextsView(TypedDict):
    base: str
    candidate: str


SimulationSource = Literal["history", "trace"]


SimulationState = Literal["waiting", "working", "ready", "failed", "cancelled", "interrupted"]


class SimulationView(TypedDict):
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
    #: Begin of the history of jobs if it is later than `since`: the replay begins there.
    history_since: str | None
    base: dict[str, Any]
    candidate: dict[str, Any]
    words: ScenarioTextsView
    progress: ProgressView
    headline: HeadlineView | None
    #: Only set for a single simulation that is ready.
    result: ResultView | None


class PreemptionChanges(TypedDict):
    enabled: NotRequired[bool | None]
    margin: NotRequired[float | None]
    min_run_seconds: NotRequired[float | None]
    moves: NotRequired[bool | None]


class QueueChanges(TypedDict):
    """Changes to a queue. Fields that are left out keep their values."""

    blocking: NotRequired[Literal["strict", "backfill"] | None]
    guaranteed_gpus: NotRequired[int | None]
    max_gpus: NotRequired[int | None]
    max_job_gpus: NotRequired[int | None]
    max_seconds: NotRequired[float | None]
    placement: NotRequired[str | None]
    policy: NotRequired[str | None]
    preempts: NotRequired[bool | None]
    weight: NotRequired[float | None]


class RuleChanges(TypedDict):
    """Changes to the rules; an empty body is the present cluster."""

    preemption: NotRequired[PreemptionChanges | None]
    protected_starts: NotRequired[int | None]
    #: By the queue's name, or `*` for every queue.
    queues: NotRequired[dict[str, QueueChanges] | None]
    score_memory_seconds: NotRequired[float | None]


class CountsView(TypedDict):
    seen: int
    same: int
    different: int
    #: Cycles that were skipped because the shadow policy had fallen behind.
    dropped: int
    failed: int


class LastCycleView(TypedDict):
    id: int
    at: str


class StartView(TypedDict):
    job: str
    name: str
    user: str
    nodes: dict[str, list[str]]
    gpus: int


class ShadowDifferenceView(TypedDict):
    cycle: int
    at: str
    words: list[str]
    live: list[StartView]
    shadow: list[StartView]


class ShadowView(TypedDict):
    running: bool
    changes: dict[str, Any]
    words: str
    started_by: str | None
    started_at: str | None
    stopped_at: str | None
    cycles: CountsView
    behind_cycles: int
    last_cycle: LastCycleView | None
    #: Differences from the live policy, the newest first.
    differences: list[ShadowDifferenceView]


class NodesAdded(TypedDict):
    nodes: int
    gpus: int
    model: str
    #: Left out: the number of the largest node.
    cpus: NotRequired[float | None]
    memory_bytes: NotRequired[float | str | None]
    pool: NotRequired[str | None]


class FleetChanges(TypedDict):
    add: NotRequired[list[NodesAdded] | None]
    #: The pool that a node's GPUs are moved to.
    pools: NotRequired[dict[str, str] | None]
    remove: NotRequired[list[str] | None]
    scale: NotRequired[float | None]


class LimitChanges(TypedDict):
    max_gpus_per_job: NotRequired[int | None]
    max_gpus_per_user: NotRequired[int | None]
    max_total_gpus: NotRequired[int | None]


class Changes(TypedDict):
    """Changes to the cluster; an empty body is the present cluster."""

    #: Only in `candidate`: each ordering policy in turn, with and without preemption.
    all_policies: NotRequired[bool | None]
    any_model: NotRequired[bool | None]
    fleet: NotRequired[FleetChanges | None]
    limits: NotRequired[LimitChanges | None]
    preemption: NotRequired[PreemptionChanges | None]
    protected_starts: NotRequired[int | None]
    #: By the queue's name, or `*` for every queue.
    queues: NotRequired[dict[str, QueueChanges] | None]
    #: GPUs that a user may hold with each kind of job; -1 means: no quota.
    quotas: NotRequired[dict[str, int] | None]
    score_memory_seconds: NotRequired[float | None]


class TraceJobBody(TypedDict):
    user: str
    #: Seconds, on any clock.
    submitted_at: float
    run_seconds: float
    cpus: NotRequired[float]
    #: GPUs of every node.
    gpus: NotRequired[float]
    group: NotRequired[str]
    memory_bytes: NotRequired[float | str]
    models: NotRequired[list[str]]
    name: NotRequired[str]
    nodes: NotRequired[int]
    priority: NotRequired[int]
    queue: NotRequired[str]
    time_limit_seconds: NotRequired[float | str | None]


class SimulationCreate(TypedDict):
    """The last `days`, or the span from `since` until `until` (now if left out), or `jobs` of a trace."""

    candidate: Changes
    base: NotRequired[Changes]
    days: NotRequired[float | None]
    jobs: NotRequired[list[TraceJobBody] | None]
    name: NotRequired[str]
    since: NotRequired[str | None]
    until: NotRequired[str | None]
