"""Jobs, attempts, logs, checkpoints, tasks, presets and images.

Generated from docs/reference/openapi.json by `make openapi`: do not edit.
"""

from typing import Any, Literal, NotRequired, TypedDict


class ArrayStop(TypedDict):
    array: str
    #: Whose it is, if not the caller's; for operators.
    user: NotRequired[str | None]


class ImageCreate(TypedDict):
    name: str
    address: str
    credential: NotRequired[str | None]
    description: NotRequired[str]
    shared_groups: NotRequired[list[str]]
    shared_users: NotRequired[list[str]]
    #: public: the platform's own, by operators.
    visibility: NotRequired[Literal["private", "shared", "public"]]


class ImageEdit(TypedDict):
    """What may be changed about an image; what is left out stays as it is."""

    #: Where it is pulled from.
    address: NotRequired[str]
    #: The login of its owner's that it is pulled with; null: one that fits the registry.
    credential: NotRequired[str | None]
    description: NotRequired[str]
    shared_groups: NotRequired[list[str]]
    #: Who may use it, with the visibility shared.
    shared_users: NotRequired[list[str]]
    visibility: NotRequired[Literal["private", "shared", "public"]]


class ImageView(TypedDict):
    name: str
    #: Empty for a public image, which belongs to the platform.
    owner: str
    address: str
    visibility: Literal["private", "shared", "public"]
    #: Shown to its owner and to operators only.
    shared_users: list[str]
    shared_groups: list[str]
    credential: str | None
    description: str
    created_at: str


class MountBody(TypedDict):
    """Something to be mounted, in parts."""

    #: A volume, owner/volume, dataset:NAME@VERSION, or local:SIZE.
    source: str
    #: Where the job sees it; absolute.
    path: str
    #: Null: as such things usually are.
    mode: NotRequired[Literal["ro", "rw"] | None]
    #: Of a bucket: fetch all of it before the program begins.
    prefetch: NotRequired[bool]


class JobArray(TypedDict):
    """One job for every index, called NAME-INDEX, with CORRAL_ARRAY_INDEX, _SIZE and _NAME in its environment."""

    #: Indexes, such as 0-99, 0-99:5 or 1,3,7.
    array: str
    #: Jobs that must have completed before: ids, names of one's own, or names of one's own arrays.
    after: NotRequired[list[str] | None]
    #: How often its program shall save its work; null: as the installation says.
    checkpoint_interval: NotRequired[float | str | None]
    #: Needed, unless a preset brings it.
    command: NotRequired[list[str]]
    cpus: NotRequired[float]
    env: NotRequired[dict[str, str] | None]
    #: A kind of hardware out of the catalog.
    flavor: NotRequired[str | None]
    #: Per node: 0, a share below 1, or whole GPUs.
    gpus: NotRequired[float]
    grace: NotRequired[float | str | None]
    hold: NotRequired[bool]
    #: The name of an image, or an address; null: the node's own environment.
    image: NotRequired[str | None]
    #: Follows from what the job is; another one than that is refused.
    kind: NotRequired[Literal["workbench", "training", "distributed"] | None]
    labels: NotRequired[dict[str, str] | None]
    #: Of an elastic job; null: as the installation says.
    max_gpus: NotRequired[int | None]
    max_retries: NotRequired[int | None]
    memory: NotRequired[float | str]
    #: Of an elastic job, which grows and shrinks; instead of gpus.
    min_gpus: NotRequired[int | None]
    #: GPU models that will do.
    model: NotRequired[str | list[str] | None]
    #: Storage that it sees, such as data:/data:ro or local:10GiB:/scratch.
    mounts: NotRequired[list[str | MountBody] | None]
    name: NotRequired[str | None]
    nodes: NotRequired[int]
    #: A size out of the catalog, instead of gpus, cpus, memory and flavor.
    package: NotRequired[str | None]
    #: What fills the preset's places; its defaults hold for the rest.
    parameters: NotRequired[dict[str, bool | float | str] | None]
    #: Whether it may be sent back to its queue for others; null: yes, but for a workbench. One that may not never takes
    #: what other queues are owed.
    preemptible: NotRequired[bool | None]
    #: A template that brings the command, and a size for what is not given here.
    preset: NotRequired[str | None]
    priority: NotRequired[int | None]
    queue: NotRequired[str | None]
    time: NotRequired[float | str | None]
    #: A virtual environment or conda prefix on the nodes, whose programs come first.
    venv: NotRequired[str | None]
    workdir: NotRequired[str | None]


class JobCreate(TypedDict):
    """A job as a user asks for it."""

    #: Jobs that must have completed before: ids, names of one's own, or names of one's own arrays.
    after: NotRequired[list[str] | None]
    #: How often its program shall save its work; null: as the installation says.
    checkpoint_interval: NotRequired[float | str | None]
    #: Needed, unless a preset brings it.
    command: NotRequired[list[str]]
    cpus: NotRequired[float]
    env: NotRequired[dict[str, str] | None]
    #: A kind of hardware out of the catalog.
    flavor: NotRequired[str | None]
    #: Per node: 0, a share below 1, or whole GPUs.
    gpus: NotRequired[float]
    grace: NotRequired[float | str | None]
    hold: NotRequired[bool]
    #: The name of an image, or an address; null: the node's own environment.
    image: NotRequired[str | None]
    #: Follows from what the job is; another one than that is refused.
    kind: NotRequired[Literal["workbench", "training", "distributed"] | None]
    labels: NotRequired[dict[str, str] | None]
    #: Of an elastic job; null: as the installation says.
    max_gpus: NotRequired[int | None]
    max_retries: NotRequired[int | None]
    memory: NotRequired[float | str]
    #: Of an elastic job, which grows and shrinks; instead of gpus.
    min_gpus: NotRequired[int | None]
    #: GPU models that will do.
    model: NotRequired[str | list[str] | None]
    #: Storage that it sees, such as data:/data:ro or local:10GiB:/scratch.
    mounts: NotRequired[list[str | MountBody] | None]
    name: NotRequired[str | None]
    nodes: NotRequired[int]
    #: A size out of the catalog, instead of gpus, cpus, memory and flavor.
    package: NotRequired[str | None]
    #: What fills the preset's places; its defaults hold for the rest.
    parameters: NotRequired[dict[str, bool | float | str] | None]
    #: Whether it may be sent back to its queue for others; null: yes, but for a workbench. One that may not never takes
    #: what other queues are owed.
    preemptible: NotRequired[bool | None]
    #: A template that brings the command, and a size for what is not given here.
    preset: NotRequired[str | None]
    priority: NotRequired[int | None]
    queue: NotRequired[str | None]
    time: NotRequired[float | str | None]
    #: A virtual environment or conda prefix on the nodes, whose programs come first.
    venv: NotRequired[str | None]
    workdir: NotRequired[str | None]


class JobBatch(TypedDict):
    jobs: list[JobCreate]


class JobClone(TypedDict):
    """What is to be different about a clone; what is left out is as it was. Variables and labels are added."""

    #: Jobs that must have completed before: ids, names of one's own, or names of one's own arrays.
    after: NotRequired[list[str] | None]
    #: How often its program shall save its work; null: as the installation says.
    checkpoint_interval: NotRequired[float | str | None]
    #: Needed, unless a preset brings it.
    command: NotRequired[list[str]]
    cpus: NotRequired[float]
    env: NotRequired[dict[str, str] | None]
    #: A kind of hardware out of the catalog.
    flavor: NotRequired[str | None]
    #: Per node: 0, a share below 1, or whole GPUs.
    gpus: NotRequired[float]
    grace: NotRequired[float | str | None]
    hold: NotRequired[bool]
    #: The name of an image, or an address; null: the node's own environment.
    image: NotRequired[str | None]
    #: Follows from what the job is; another one than that is refused.
    kind: NotRequired[Literal["workbench", "training", "distributed"] | None]
    labels: NotRequired[dict[str, str] | None]
    #: Of an elastic job; null: as the installation says.
    max_gpus: NotRequired[int | None]
    max_retries: NotRequired[int | None]
    memory: NotRequired[float | str]
    #: Of an elastic job, which grows and shrinks; instead of gpus.
    min_gpus: NotRequired[int | None]
    #: GPU models that will do.
    model: NotRequired[str | list[str] | None]
    #: Storage that it sees, such as data:/data:ro or local:10GiB:/scratch.
    mounts: NotRequired[list[str | MountBody] | None]
    name: NotRequired[str | None]
    nodes: NotRequired[int]
    #: A size out of the catalog, instead of gpus, cpus, memory and flavor.
    package: NotRequired[str | None]
    #: What fills the preset's places; its defaults hold for the rest.
    parameters: NotRequired[dict[str, bool | float | str] | None]
    #: Whether it may be sent back to its queue for others; null: yes, but for a workbench. One that may not never takes
    #: what other queues are owed.
    preemptible: NotRequired[bool | None]
    #: A template that brings the command, and a size for what is not given here.
    preset: NotRequired[str | None]
    priority: NotRequired[int | None]
    queue: NotRequired[str | None]
    time: NotRequired[float | str | None]
    #: A virtual environment or conda prefix on the nodes, whose programs come first.
    venv: NotRequired[str | None]
    workdir: NotRequired[str | None]


class JobCountsView(TypedDict):
    total: int
    #: Every state, also those that no job is in.
    by_state: dict[str, int]


class JobEdit(TypedDict):
    """What is to be different about a job that does not run yet; what is left out stays as it is. Its size can be
    changed until it has started for the first time."""

    #: Null: it waits for no other job.
    after: NotRequired[list[str] | None]
    cpus: NotRequired[float]
    #: A kind of hardware out of the catalog; null: none in particular.
    flavor: NotRequired[str | None]
    #: Per node: 0, a share below 1, or whole GPUs.
    gpus: NotRequired[float]
    #: Makes it elastic, or changes how far it grows.
    max_gpus: NotRequired[int | None]
    memory: NotRequired[float | str]
    #: Makes it elastic, or changes how far it shrinks.
    min_gpus: NotRequired[int | None]
    #: GPU models that will do; null: any.
    model: NotRequired[str | list[str] | None]
    nodes: NotRequired[int]
    #: A size out of the catalog, instead of gpus, cpus, memory and flavor.
    package: NotRequired[str | None]
    #: Until it has started for the first time. Null: as jobs of its kind usually are.
    preemptible: NotRequired[bool | None]
    priority: NotRequired[int]
    #: Null: the right one of those that its user may use.
    queue: NotRequired[str | None]
    #: Null: as long as the queue allows.
    time: NotRequired[float | str | None]


JobKind = Literal["workbench", "training", "distributed", "preset"]


class JobMove(TypedDict):
    """Put a job of one's own before or after another one of one's own."""

    after: NotRequired[str | None]
    before: NotRequired[str | None]


class JobResize(TypedDict):
    """How many GPUs a running elastic job shall go on with."""

    gpus: int


JobState = Literal["created", "queued", "starting", "running", "stopping", "stopped", "completed", "failed"]


class GrantView(TypedDict):
    node: str
    gpus: list[str]
    gpu_share: float
    cpus: float
    memory_bytes: int


class AllocationView(TypedDict):
    model: str
    grants: list[GrantView]


class ArrayView(TypedDict):
    """The array that a job belongs to."""

    name: str
    index: int
    size: int


class ElasticView(TypedDict):
    min_gpus: int
    max_gpus: int
    #: Measured use of its GPUs lately; null: not known yet.
    utilization: float | None
    resized_at: str | None
    #: While it is resized: what its next attempt gets.
    next_gpus: list[str] | None


class EstimatedStartView(TypedDict):
    p50: str
    p90: str
    made_at: str


class IdleWarningView(TypedDict):
    warned_at: str
    deadline: str
    extended_at: str | None


MountKind = Literal["volume", "dataset", "local"]


class MountView(TypedDict):
    """Storage that a job sees."""

    kind: MountKind
    #: As it was given: a volume, NAME@VERSION of a dataset, or a size of local disk.
    source: str
    path: str
    #: ro or rw.
    mode: str
    volume_id: str | None
    dataset: str | None
    version: str | None
    prefetch: bool


class PredictionView(TypedDict):
    """How long it was expected to run, from its next start on, when it was last queued."""

    p50_seconds: float
    p90_seconds: float
    #: How many completed runs that is known from.
    samples: int
    #: What those runs have in common with it.
    like: str


class UsageView(TypedDict):
    """What was held and used, so far."""

    gpu_hours: float
    #: The part of the GPU-hours of which readings tell.
    measured_gpu_hours: float
    #: Mean use of the GPUs while it was measured; null if it never was.
    utilization: float | None
    idle_gpu_hours: float
    energy_kwh: float
    #: The most that one of its GPUs had in use.
    memory_peak_bytes: int


class JobView(TypedDict):
    id: str
    name: str
    user: str
    kind: JobKind
    state: JobState
    queue: str
    priority: int
    nodes: int
    gpus: float
    cpus: float
    memory_bytes: int
    models: list[str]
    labels: dict[str, str]
    #: As it was picked; later changes of it don't matter.
    flavor: str | None
    package: str | None
    #: With env and workdir, shown to its owner and to operators only.
    command: list[str]
    env: dict[str, str]
    workdir: str | None
    time_limit_seconds: float | None
    grace_seconds: float
    max_retries: int
    #: How often its program shall save; null: as the installation says.
    checkpoint_interval_seconds: float | None
    #: When its program last saved its work.
    checkpointed_at: str | None
    #: null: nothing is known of jobs like it.
    predicted: PredictionView | None
    created_at: str
    queued_at: str | None
    started_at: str | None
    ended_at: str | None
    pinned_at: str | None
    attempt: int
    attempt_id: str | None
    allocation: AllocationView | None
    end_reason: str | None
    exit_code: int | None
    message: str
    retries: int
    #: Faults of the platform in a row since it last saved; they are no retries.
    faults: int
    not_before: str | None
    stopping_for: str | None
    preemptible: bool
    #: The job that it makes, or made, room for, until it starts again.
    preempted_for: str | None
    #: How often it was preempted since its owner started it.
    preemptions: int
    #: Jobs that must complete before it may start.
    after: list[str]
    array: NotRequired[ArrayView | None]
    #: Of a job that grows and shrinks; gpus is what it has now, or its minimum.
    elastic: NotRequired[ElasticView | None]
    #: While it waits; null: it does not, or nobody can tell.
    estimated_start: NotRequired[EstimatedStartView | None]
    #: It holds GPUs, does nothing, and was told so; only told of a single job.
    idle_warning: NotRequired[IdleWarningView | None]
    #: As it was given: the name of an image, or an address.
    image: NotRequired[str | None]
    #: It stays however old it becomes.
    kept: NotRequired[bool]
    #: Shown to its owner and to operators only.
    mounts: NotRequired[list[MountView]]
    #: What filled the template; shown as the command is.
    parameters: NotRequired[dict[str, str]]
    #: The template that it was made from.
    preset: NotRequired[str | None]
    #: What it has held and used in all its attempts; only told of a single job.
    usage: NotRequired[UsageView | None]
    venv: NotRequired[str | None]


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
    #: What it has held and used.
    usage: NotRequired[UsageView | None]


class CheckpointView(TypedDict):
    name: str
    #: The directory; shown to the job's owner and to operators only.
    path: str | None
    #: Steps done: where a program that resumes from it goes on.
    step: int
    #: Null if that cannot be read any more.
    saved_at: str | None
    size_bytes: int
    #: Which attempt saved it; null if that cannot be read any more.
    attempt: int | None
    #: How many processes of a gang saved a part of it.
    parts: int
    #: As far as names and lengths tell; before an attempt resumes, every byte is read.
    good: bool
    #: Why no attempt resumes from it.
    problem: str | None


OutputKind = Literal["file", "directory", "link", "other"]


class FileView(TypedDict):
    name: str
    #: From the output directory on.
    path: str
    #: `link`: leads out of the output directory; it cannot be downloaded.
    kind: OutputKind
    is_dir: bool
    size_bytes: int
    modified_at: str


class LogMatchView(TypedDict):
    attempt: int
    rank: int
    #: Counted from the oldest line that is kept.
    line: int
    #: The byte of the log at which the line begins.
    offset: int
    #: The line; of a long one the part around the match.
    text: str


ParameterType = Literal["choice", "int", "float", "bool", "text", "path"]


class ParameterView(TypedDict):
    name: str
    type: ParameterType
    #: Null: it must be given.
    default: bool | float | str | None
    choices: list[str]
    min: float | None
    max: float | None
    help: str


class PresetView(TypedDict):
    name: str
    title: str
    description: str
    parameters: list[ParameterView]
    #: With the next ones: what its jobs ask for unless they say otherwise.
    gpus: float
    cpus: float
    memory_bytes: int
    time_limit_seconds: float | None
    image: str | None
    venv: str | None
    command: list[str]
    env: dict[str, str]
    #: It comes with corral.
    shipped: bool
    created_by: str | None
    created_at: str | None
    #: As it was written; only told of a single one.
    yaml: NotRequired[str | None]


class RegistryLoginView(TypedDict):
    name: str
    registry: str
    username: str
    platform: bool
    created_at: str


class TaskView(TypedDict):
    task: str
    job: JobView
    warning: NotRequired[str | None]


class LoginPut(TypedDict):
    registry: str
    username: str
    #: A password or token. Kept encrypted and never shown again.
    secret: str
    #: For public images; by operators.
    platform: NotRequired[bool]


class EstimateView(TypedDict):
    """When it is expected to start: half of such jobs do by p50, nine tenths by p90."""

    p50: str
    p90: str


class ReasonView(TypedDict):
    rule: str
    detail: str
    numbers: dict[str, Any]
    jobs: list[str]


PreemptionRule = Literal["guarantee", "reservation", "order", "overrun", "move"]


class PreemptingView(TypedDict):
    """A job that would be interrupted; of one that the caller may not see only the rule and the loss."""

    job: str | None
    rule: PreemptionRule
    lost_gpu_seconds: float


class WouldStartView(TypedDict):
    #: Now, or the half of the estimate; null: nobody can tell.
    at: str | None
    #: Where: for sure if it starts now, else as far as it is planned.
    nodes: list[str]
    #: Jobs in front of it that the caller may see, the first ones.
    after: list[str]
    preempting: list[PreemptingView]


class PlanView(TypedDict):
    outcome: Literal["start", "wait", "refuse"]
    detail: str
    #: Now, or when it is promised at the latest.
    start_at: str | None
    nodes: list[str]
    reasons: list[ReasonView]
    ahead_count: int
    #: When it would start.
    estimate: NotRequired[EstimateView | None]
    #: null: it would be refused.
    would_start: NotRequired[WouldStartView | None]


class PresetCreate(TypedDict):
    #: The template, as a YAML file.
    yaml: str
    #: Take the place of one of the same name.
    replace: NotRequired[bool]


class PresetRun(TypedDict):
    #: Of the job.
    name: NotRequired[str | None]
    #: Other fields of a job: gpus, time, queue, env and so on.
    overrides: NotRequired[dict[str, Any]]
    parameters: NotRequired[dict[str, bool | float | str]]


class ProgramCreate(TypedDict):
    """The program; the installation's template if it is left out."""

    command: NotRequired[list[str] | None]
    #: Where it runs; the attempt's own if left out.
    workdir: NotRequired[str | None]


class TaskCreate(TypedDict):
    task: str
    gpus: NotRequired[int | None]


class CycleView(TypedDict):
    """Where in the journal an answer of the past comes from."""

    id: int
    at: str
    #: Everything that had happened is in the answer, and nothing else.
    exact: bool
    known_until: str
    words: str


class ExplainedEstimateView(TypedDict):
    p50: str
    p90: str
    made_at: str
    #: What the estimate comes from, in words.
    basis: str


class JobRefView(TypedDict):
    """A job; of one that the caller may not see only whose it is."""

    id: str | None
    name: str | None
    user: str


Outcome = Literal["start", "earlier"]


class EffectView(TypedDict):
    #: start: now. earlier: at a promised time that comes sooner than without it.
    outcome: Outcome
    start_at: str


Operation = Literal["edit", "start"]


class SuggestedChangeView(TypedDict):
    #: edit: PATCH the job with the body. start: POST to its /start.
    operation: Operation
    body: dict[str, Any]


class SuggestionView(TypedDict):
    """A change that helps: the scheduler was asked what it would do then."""

    title: str
    detail: str
    effect: EffectView
    change: SuggestedChangeView


class WhyView(TypedDict):
    job_id: str
    state: JobState
    summary: str
    reasons: list[ReasonView]
    position: int | None
    #: What its place in the line comes from, in words; empty if it is in none.
    place: str
    ahead: list[JobRefView]
    ahead_count: int
    planned_start: str | None
    planned_nodes: list[str]
    #: For its owner and operators, the best first.
    suggestions: list[SuggestionView]
    #: The moment that was asked about; null for now.
    at: NotRequired[str | None]
    cycle: NotRequired[CycleView | None]
    #: When it is expected to start; null: it does not wait, or nobody can tell.
    estimate: NotRequired[ExplainedEstimateView | None]
