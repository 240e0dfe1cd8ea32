"""Jobs and what they leave, as the server shows them."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from corral.client.views.estimates import EstimatedStartView


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


class PredictionView(TypedDict):
    p50_seconds: float
    p90_seconds: float
    samples: int
    like: str


class MountView(TypedDict):
    kind: str
    source: str
    path: str
    mode: str
    volume_id: str | None
    dataset: str | None
    version: str | None
    prefetch: bool


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
    mounts: NotRequired[list[MountView]]
    time_limit_seconds: float | None
    grace_seconds: float
    max_retries: int
    checkpoint_interval_seconds: NotRequired[float | None]
    checkpointed_at: NotRequired[str | None]
    predicted: NotRequired[PredictionView | None]
    estimated_start: NotRequired[EstimatedStartView | None]
    created_at: str
    queued_at: str | None
    started_at: str | None
    ended_at: str | None
    pinned_at: str | None
    kept: bool
    attempt: int
    attempt_id: str | None
    allocation: AllocationView | None
    elastic: NotRequired[ElasticView | None]
    end_reason: str | None
    exit_code: int | None
    message: str
    retries: int
    #: of the platform in a row; they are no retries
    faults: NotRequired[int]
    not_before: str | None
    stopping_for: str | None
    preemptible: bool
    #: whom it makes room for, or made, until it starts again itself
    preempted_for: str | None
    preemptions: int
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


class TaskView(TypedDict):
    task: str
    job: JobView
    warning: str | None


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
