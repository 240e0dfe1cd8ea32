"""Jobs, attempts, logs, checkpoints, tasks, presets and images.

Generated from docs/reference/openapi.json by `make openapi`: do not edit.
"""

from typing import Any, Literal, NotRequired, TypedDict


class ArrayStop(TypedDict):
    array: str
    #: Owner of the job if it is not the caller; only operators can set it.
    user: NotRequired[str | None]


#: The kinds of models and data that operators register for the trainings of presets.
AssetKind = Literal["model", "dataset"]


class GrantView(TypedDict):
    node: str
    gpus: list[str]
    gpu_share: float
    cpus: float
    memory_bytes: int


class AllocationView(TypedDict):
    model: str
    grants: list[GrantView]


class WaitingEffectView(TypedDict):
    job: str
    name: str
    user: str
    #: The planned start without the change; null: none is planned.
    start_before: str | None
    #: The planned start after the change; null: none is planned.
    start_after: str | None
    #: The job would start as soon as the change is done.
    starts_now: bool


class ChangePreviewView(TypedDict):
    """The preview of a resize or a move. Nothing was changed."""

    job: str
    before: AllocationView
    after: AllocationView
    #: The last checkpoint; null: the job never saved.
    checkpointed_at: str | None
    #: Upper bound of the work that is repeated: the time since the last checkpoint. Nothing is repeated if the program
    #: saves when it is warned.
    lost_gpu_seconds: float
    #: The time that the program has to save.
    grace_seconds: float
    #: Waiting jobs that would start earlier or later.
    waiting: list[WaitingEffectView]
    #: The number of such jobs that the caller may not see.
    hidden_waiting: int


class CurvePointView(TypedDict):
    step: int
    #: Time at which the program reported the value.
    at: str
    #: Null if the program reported a value that is not finite.
    value: float | None


class CurveView(TypedDict):
    #: The name that the program gave; with its directory for several TensorBoard runs.
    name: str
    #: `curves.jsonl`, or the directory of the event file in the job's output directory.
    source: str
    #: Number of points that the program reported; `points` has some hundred of them.
    count: int
    #: By step: the lowest and highest of each stretch.
    points: list[CurvePointView]


class CurvesView(TypedDict):
    #: False if there are more files, curves or bytes than are read at once.
    complete: bool
    curves: list[CurveView]


class ImageCreate(TypedDict):
    name: str
    address: str
    credential: NotRequired[str | None]
    description: NotRequired[str]
    shared_groups: NotRequired[list[str]]
    shared_users: NotRequired[list[str]]
    #: public: an image of the platform; only operators can create one.
    visibility: NotRequired[Literal["private", "shared", "public"]]


class ImageEdit(TypedDict):
    """Changes to an image. Fields that are left out keep their values."""

    #: Address that the image is pulled from.
    address: NotRequired[str]
    #: The owner's login that the image is pulled with; null: the login for the registry.
    credential: NotRequired[str | None]
    description: NotRequired[str]
    shared_groups: NotRequired[list[str]]
    #: Users and groups that may use the image, if its visibility is shared.
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
    """A mount, in parts."""

    #: A volume, owner/volume, dataset:NAME@VERSION, or local:SIZE.
    source: str
    #: Absolute path in the job.
    path: str
    #: Null: the default for this type of storage.
    mode: NotRequired[Literal["ro", "rw"] | None]
    #: For a bucket: fetch all of it before the program starts.
    prefetch: NotRequired[bool]


class JobArray(TypedDict):
    """One job for every index, named NAME-INDEX, with CORRAL_ARRAY_INDEX, _SIZE and _NAME in its environment."""

    #: Indexes, such as 0-99, 0-99:5 or 1,3,7; with pack also 1-500%8: eight jobs.
    array: str
    #: Jobs that must complete first: ids, names of the caller's jobs, or names of the caller's arrays.
    after: NotRequired[list[str] | None]
    #: A web program that corral knows; `command` has its arguments.
    app: NotRequired[str | None]
    #: The name of the page.
    app_name: NotRequired[str]
    #: Interval at which the program should save checkpoints; null: the installation's default.
    checkpoint_interval: NotRequired[float | str | None]
    #: Required, unless a preset sets it.
    command: NotRequired[list[str]]
    #: DATASET or DATASET=PATH: its outputs, or this part, become a version when the job completes.
    commit_outputs: NotRequired[str]
    cpus: NotRequired[float]
    #: Purpose of the job, shown to every user who sees the job.
    description: NotRequired[str]
    env: NotRequired[dict[str, str] | None]
    #: A flavor of the catalog.
    flavor: NotRequired[str | None]
    #: The address of a Git repository: the program begins in a copy of one commit, which is fetched on the node.
    git: NotRequired[str]
    #: The directory of the repository in which the program begins.
    git_dir: NotRequired[str]
    #: A branch, a tag or a whole commit; empty: the repository's own branch.
    git_ref: NotRequired[str]
    #: The secret with a deploy key (SSH), or a token or USER:TOKEN (HTTPS).
    git_secret: NotRequired[str]
    #: Per node: 0, a share below 1, or whole GPUs.
    gpus: NotRequired[float]
    grace: NotRequired[float | str | None]
    hold: NotRequired[bool]
    #: Whether the job may hold GPUs without using them for long; then zero use is no sign of a fault. The default for
    #: jobs with an app.
    idles: NotRequired[bool | None]
    #: The name of an image, or an address; null: the node's own environment.
    image: NotRequired[str | None]
    #: The kind follows from the other fields; any other value is refused.
    kind: NotRequired[Literal["workbench", "training", "distributed"] | None]
    labels: NotRequired[dict[str, str] | None]
    #: Maximum of an elastic job on each node; null: the installation's default.
    max_gpus: NotRequired[int | None]
    max_retries: NotRequired[int | None]
    memory: NotRequired[float | str]
    #: Minimum of an elastic job on each node; it grows and shrinks. Instead of gpus.
    min_gpus: NotRequired[int | None]
    #: Accepted GPU models.
    model: NotRequired[str | list[str] | None]
    #: Storage of the job, such as data:/data:ro or local:10GiB:/scratch.
    mounts: NotRequired[list[str | MountBody] | None]
    name: NotRequired[str | None]
    nodes: NotRequired[int]
    #: Run the items one after another on one allocation, or on as many as `%N` in `array` says.
    pack: NotRequired[bool]
    #: A package of the catalog, instead of gpus, cpus, memory and flavor.
    package: NotRequired[str | None]
    #: Values for the preset's parameters; the others have their defaults.
    parameters: NotRequired[dict[str, bool | float | str] | None]
    #: The port of the loopback address at which the command serves a page; 0: a free port, which the command finds in
    #: CORRAL_APP_PORT.
    port: NotRequired[int | None]
    #: Whether the job may be preempted; null: yes, except for a workbench. A job that may not be preempted never gets
    #: GPUs that are guaranteed to other queues.
    preemptible: NotRequired[bool | None]
    #: A template that sets the command, and the size unless it is given here.
    preset: NotRequired[str | None]
    priority: NotRequired[int | None]
    queue: NotRequired[str | None]
    #: Whether the job is restarted elsewhere, as a retry, if its program reports steps by corral.checkpoint and then
    #: none for long.
    restart_if_hung: NotRequired[bool | None]
    #: Whether an elastic job that never saved a checkpoint may start over for a resize; null: no.
    restart_unsaved: NotRequired[bool | None]
    #: Failures of the program that lead to another attempt: exit, oom, any, or exit codes; node and gpu always do.
    #: Null: the installation's default.
    retry_on: NotRequired[str | list[str] | None]
    #: Secrets of the user or the user's group: NAME or NAME=VARIABLE is an environment variable, NAME:file a file,
    #: whose path is in NAME_FILE.
    secrets: NotRequired[str | list[str]]
    time: NotRequired[float | str | None]
    #: A virtual environment or conda prefix on the nodes; its programs are first in PATH.
    venv: NotRequired[str | None]
    workdir: NotRequired[str | None]


class JobCreate(TypedDict):
    """A job to submit."""

    #: Jobs that must complete first: ids, names of the caller's jobs, or names of the caller's arrays.
    after: NotRequired[list[str] | None]
    #: A web program that corral knows; `command` has its arguments.
    app: NotRequired[str | None]
    #: The name of the page.
    app_name: NotRequired[str]
    #: Interval at which the program should save checkpoints; null: the installation's default.
    checkpoint_interval: NotRequired[float | str | None]
    #: Required, unless a preset sets it.
    command: NotRequired[list[str]]
    #: DATASET or DATASET=PATH: its outputs, or this part, become a version when the job completes.
    commit_outputs: NotRequired[str]
    cpus: NotRequired[float]
    #: Purpose of the job, shown to every user who sees the job.
    description: NotRequired[str]
    env: NotRequired[dict[str, str] | None]
    #: A flavor of the catalog.
    flavor: NotRequired[str | None]
    #: The address of a Git repository: the program begins in a copy of one commit, which is fetched on the node.
    git: NotRequired[str]
    #: The directory of the repository in which the program begins.
    git_dir: NotRequired[str]
    #: A branch, a tag or a whole commit; empty: the repository's own branch.
    git_ref: NotRequired[str]
    #: The secret with a deploy key (SSH), or a token or USER:TOKEN (HTTPS).
    git_secret: NotRequired[str]
    #: Per node: 0, a share below 1, or whole GPUs.
    gpus: NotRequired[float]
    grace: NotRequired[float | str | None]
    hold: NotRequired[bool]
    #: Whether the job may hold GPUs without using them for long; then zero use is no sign of a fault. The default for
    #: jobs with an app.
    idles: NotRequired[bool | None]
    #: The name of an image, or an address; null: the node's own environment.
    image: NotRequired[str | None]
    #: The kind follows from the other fields; any other value is refused.
    kind: NotRequired[Literal["workbench", "training", "distributed"] | None]
    labels: NotRequired[dict[str, str] | None]
    #: Maximum of an elastic job on each node; null: the installation's default.
    max_gpus: NotRequired[int | None]
    max_retries: NotRequired[int | None]
    memory: NotRequired[float | str]
    #: Minimum of an elastic job on each node; it grows and shrinks. Instead of gpus.
    min_gpus: NotRequired[int | None]
    #: Accepted GPU models.
    model: NotRequired[str | list[str] | None]
    #: Storage of the job, such as data:/data:ro or local:10GiB:/scratch.
    mounts: NotRequired[list[str | MountBody] | None]
    name: NotRequired[str | None]
    nodes: NotRequired[int]
    #: A package of the catalog, instead of gpus, cpus, memory and flavor.
    package: NotRequired[str | None]
    #: Values for the preset's parameters; the others have their defaults.
    parameters: NotRequired[dict[str, bool | float | str] | None]
    #: The port of the loopback address at which the command serves a page; 0: a free port, which the command finds in
    #: CORRAL_APP_PORT.
    port: NotRequired[int | None]
    #: Whether the job may be preempted; null: yes, except for a workbench. A job that may not be preempted never gets
    #: GPUs that are guaranteed to other queues.
    preemptible: NotRequired[bool | None]
    #: A template that sets the command, and the size unless it is given here.
    preset: NotRequired[str | None]
    priority: NotRequired[int | None]
    queue: NotRequired[str | None]
    #: Whether the job is restarted elsewhere, as a retry, if its program reports steps by corral.checkpoint and then
    #: none for long.
    restart_if_hung: NotRequired[bool | None]
    #: Whether an elastic job that never saved a checkpoint may start over for a resize; null: no.
    restart_unsaved: NotRequired[bool | None]
    #: Failures of the program that lead to another attempt: exit, oom, any, or exit codes; node and gpu always do.
    #: Null: the installation's default.
    retry_on: NotRequired[str | list[str] | None]
    #: Secrets of the user or the user's group: NAME or NAME=VARIABLE is an environment variable, NAME:file a file,
    #: whose path is in NAME_FILE.
    secrets: NotRequired[str | list[str]]
    time: NotRequired[float | str | None]
    #: A virtual environment or conda prefix on the nodes; its programs are first in PATH.
    venv: NotRequired[str | None]
    workdir: NotRequired[str | None]


class JobBatch(TypedDict):
    jobs: list[JobCreate]


class JobClone(TypedDict):
    """Changes for a clone. Fields that are left out keep the values of the original. Variables and labels are added."""

    #: Jobs that must complete first: ids, names of the caller's jobs, or names of the caller's arrays.
    after: NotRequired[list[str] | None]
    #: A web program that corral knows; `command` has its arguments.
    app: NotRequired[str | None]
    #: The name of the page.
    app_name: NotRequired[str]
    #: Interval at which the program should save checkpoints; null: the installation's default.
    checkpoint_interval: NotRequired[float | str | None]
    #: Required, unless a preset sets it.
    command: NotRequired[list[str]]
    #: DATASET or DATASET=PATH: its outputs, or this part, become a version when the job completes.
    commit_outputs: NotRequired[str]
    cpus: NotRequired[float]
    #: Purpose of the job, shown to every user who sees the job.
    description: NotRequired[str]
    env: NotRequired[dict[str, str] | None]
    #: A flavor of the catalog.
    flavor: NotRequired[str | None]
    #: The address of a Git repository: the program begins in a copy of one commit, which is fetched on the node.
    git: NotRequired[str]
    #: The directory of the repository in which the program begins.
    git_dir: NotRequired[str]
    #: A branch, a tag or a whole commit; empty: the repository's own branch.
    git_ref: NotRequired[str]
    #: The secret with a deploy key (SSH), or a token or USER:TOKEN (HTTPS).
    git_secret: NotRequired[str]
    #: Per node: 0, a share below 1, or whole GPUs.
    gpus: NotRequired[float]
    grace: NotRequired[float | str | None]
    hold: NotRequired[bool]
    #: Whether the job may hold GPUs without using them for long; then zero use is no sign of a fault. The default for
    #: jobs with an app.
    idles: NotRequired[bool | None]
    #: The name of an image, or an address; null: the node's own environment.
    image: NotRequired[str | None]
    #: The kind follows from the other fields; any other value is refused.
    kind: NotRequired[Literal["workbench", "training", "distributed"] | None]
    labels: NotRequired[dict[str, str] | None]
    #: Maximum of an elastic job on each node; null: the installation's default.
    max_gpus: NotRequired[int | None]
    max_retries: NotRequired[int | None]
    memory: NotRequired[float | str]
    #: Minimum of an elastic job on each node; it grows and shrinks. Instead of gpus.
    min_gpus: NotRequired[int | None]
    #: Accepted GPU models.
    model: NotRequired[str | list[str] | None]
    #: Storage of the job, such as data:/data:ro or local:10GiB:/scratch.
    mounts: NotRequired[list[str | MountBody] | None]
    name: NotRequired[str | None]
    nodes: NotRequired[int]
    #: A package of the catalog, instead of gpus, cpus, memory and flavor.
    package: NotRequired[str | None]
    #: Values for the preset's parameters; the others have their defaults.
    parameters: NotRequired[dict[str, bool | float | str] | None]
    #: The port of the loopback address at which the command serves a page; 0: a free port, which the command finds in
    #: CORRAL_APP_PORT.
    port: NotRequired[int | None]
    #: Whether the job may be preempted; null: yes, except for a workbench. A job that may not be preempted never gets
    #: GPUs that are guaranteed to other queues.
    preemptible: NotRequired[bool | None]
    #: A template that sets the command, and the size unless it is given here.
    preset: NotRequired[str | None]
    priority: NotRequired[int | None]
    queue: NotRequired[str | None]
    #: Whether the job is restarted elsewhere, as a retry, if its program reports steps by corral.checkpoint and then
    #: none for long.
    restart_if_hung: NotRequired[bool | None]
    #: Whether an elastic job that never saved a checkpoint may start over for a resize; null: no.
    restart_unsaved: NotRequired[bool | None]
    #: Failures of the program that lead to another attempt: exit, oom, any, or exit codes; node and gpu always do.
    #: Null: the installation's default.
    retry_on: NotRequired[str | list[str] | None]
    #: Secrets of the user or the user's group: NAME or NAME=VARIABLE is an environment variable, NAME:file a file,
    #: whose path is in NAME_FILE.
    secrets: NotRequired[str | list[str]]
    time: NotRequired[float | str | None]
    #: A virtual environment or conda prefix on the nodes; its programs are first in PATH.
    venv: NotRequired[str | None]
    workdir: NotRequired[str | None]


class JobCountsView(TypedDict):
    total: int
    #: Every state, also states without jobs.
    by_state: dict[str, int]


class JobEdit(TypedDict):
    """Changes to a job that does not run yet. Fields that are left out keep their values. The job's size can be changed
    until the job has started for the first time, the description at any time."""

    #: Null: the job depends on no other job.
    after: NotRequired[list[str] | None]
    cpus: NotRequired[float]
    description: NotRequired[str]
    #: A flavor of the catalog; null: no flavor.
    flavor: NotRequired[str | None]
    #: Per node: 0, a share below 1, or whole GPUs.
    gpus: NotRequired[float]
    #: Makes the job elastic, or changes its maximum.
    max_gpus: NotRequired[int | None]
    memory: NotRequired[float | str]
    #: Makes the job elastic, or changes its minimum.
    min_gpus: NotRequired[int | None]
    #: Accepted GPU models; null: any.
    model: NotRequired[str | list[str] | None]
    nodes: NotRequired[int]
    #: A package of the catalog, instead of gpus, cpus, memory and flavor.
    package: NotRequired[str | None]
    #: Can be changed until the job has started for the first time. Null: the default of its kind.
    preemptible: NotRequired[bool | None]
    priority: NotRequired[int]
    #: Null: chosen among the queues that the user may use.
    queue: NotRequired[str | None]
    #: Whether the job is restarted elsewhere if it hangs.
    restart_if_hung: NotRequired[bool]
    #: Whether the job may start over for a resize before it has saved a checkpoint.
    restart_unsaved: NotRequired[bool]
    #: Null: the queue's limit.
    time: NotRequired[float | str | None]


JobKind = Literal["workbench", "training", "distributed", "preset"]


class JobMigrate(TypedDict):
    """The node to which a running job is moved."""

    #: Null: the best other node.
    to: NotRequired[str | None]


class JobMove(TypedDict):
    """Move one of the caller's jobs before or after another one of the caller's jobs."""

    after: NotRequired[str | None]
    before: NotRequired[str | None]


class JobResize(TypedDict):
    """The new number of GPUs of a running elastic job."""

    gpus: int


JobState = Literal["created", "queued", "starting", "running", "stopping", "stopped", "completed", "failed"]


class ArrayView(TypedDict):
    """The array that a job belongs to."""

    name: str
    index: int
    size: int
    #: The items that a job of a packed array runs; otherwise empty.
    items: list[int]


class ElasticView(TypedDict):
    min_gpus: int
    max_gpus: int
    #: Recently measured utilisation of the job's GPUs; null: not known yet.
    utilization: float | None
    resized_at: str | None
    #: While the job is resized: GPUs of its next attempt.
    next_gpus: list[str] | None


class EstimatedStartView(TypedDict):
    p50: str
    p90: str
    made_at: str


class IdleWarningView(TypedDict):
    warned_at: str
    deadline: str
    extended_at: str | None


class JobDiskView(TypedDict):
    """The disk use of a running job on its node, as it was last measured."""

    #: Size of the job directory, the working directory, local and temporary storage.
    bytes: int
    #: Above it the job fails with `disk_quota`; requested local storage comes on top.
    limit_bytes: int | None
    #: Size of the temporary directory and of the changes to the image.
    temporary_bytes: int
    #: The job is evicted at 90 % of it.
    temporary_limit_bytes: int | None


MountKind = Literal["volume", "dataset", "local"]


class MountView(TypedDict):
    """Storage that a job mounts."""

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
    """The predicted run time from the next start on, computed when the job was last queued."""

    p50_seconds: float
    p90_seconds: float
    #: Number of completed runs that the prediction is based on.
    samples: int
    #: Properties that those runs have in common with the job.
    like: str


class UsageView(TypedDict):
    """Resources that were held and used so far."""

    gpu_hours: float
    #: Share of the GPU-hours that have readings.
    measured_gpu_hours: float
    #: Mean utilisation of the GPUs while it was measured; null if it was never measured.
    utilization: float | None
    idle_gpu_hours: float
    energy_kwh: float
    #: Highest memory use of a single GPU.
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
    #: The package at submission; later changes of the package have no effect.
    flavor: str | None
    package: str | None
    #: The command, env and workdir are shown to the job's owner and to operators only.
    command: list[str]
    env: dict[str, str]
    workdir: str | None
    time_limit_seconds: float | None
    grace_seconds: float
    max_retries: int
    #: Failures of the program that lead to another attempt.
    retry_on: list[str]
    #: Whether the job may hold GPUs without using them for long.
    idles: bool
    #: Whether the job is restarted elsewhere if its program reports no more steps.
    restart_if_hung: bool
    #: Since when the program has done no step; null: it is not known to hang.
    hung_since: str | None
    #: Since when the program does far fewer steps per minute than before.
    slow_since: str | None
    #: Interval at which the program should save checkpoints; null: the installation's default.
    checkpoint_interval_seconds: float | None
    #: Time at which the program last saved a checkpoint.
    checkpointed_at: str | None
    #: null: no similar job has completed yet.
    predicted: PredictionView | None
    created_at: str
    queued_at: str | None
    started_at: str | None
    ended_at: str | None
    pinned_at: str | None
    attempt: int
    attempt_id: str | None
    allocation: AllocationView | None
    #: Whether the job may start over for a resize before it has saved a checkpoint.
    restart_unsaved: bool
    end_reason: str | None
    exit_code: int | None
    message: str
    retries: int
    #: Platform failures in a row since the last checkpoint; they do not count as retries.
    faults: int
    not_before: str | None
    stopping_for: str | None
    preemptible: bool
    #: The job that this job was preempted for; set until this job starts again.
    preempted_for: str | None
    #: Number of preemptions since the owner last started the job.
    preemptions: int
    #: Jobs that must complete before this job may start.
    after: list[str]
    #: The web program of the job, if corral knows it.
    app: NotRequired[str | None]
    app_name: NotRequired[str]
    #: The port at which the job's own program serves a page.
    app_port: NotRequired[int | None]
    array: NotRequired[ArrayView | None]
    #: DATASET or DATASET=PATH: outputs that become a version when the job completes.
    commit_outputs: NotRequired[str]
    description: NotRequired[str]
    #: Disk use of a running job; null: not measured yet, or its disk cannot be measured. Only set for a single job.
    disk: NotRequired[JobDiskView | None]
    #: Set for an elastic job, which grows and shrinks; gpus is its present size, or its minimum.
    elastic: NotRequired[ElasticView | None]
    #: Estimated start of a waiting job; null: the job does not wait, or no estimate exists.
    estimated_start: NotRequired[EstimatedStartView | None]
    #: The address of its Git repository; shown like the command.
    git: NotRequired[str | None]
    #: The commit in which the program begins.
    git_commit: NotRequired[str | None]
    git_dir: NotRequired[str | None]
    #: The branch, tag or commit as it was given.
    git_ref: NotRequired[str | None]
    #: The secret with the key or token, without its value.
    git_secret: NotRequired[str | None]
    #: Set if the owner was warned that the job does not use its GPUs; only set for a single job.
    idle_warning: NotRequired[IdleWarningView | None]
    #: As it was given: the name of an image, or an address.
    image: NotRequired[str | None]
    #: Retention never removes a pinned job.
    kept: NotRequired[bool]
    #: Shown to its owner and to operators only.
    mounts: NotRequired[list[MountView]]
    #: Values for the preset's parameters; shown to the same callers as the command.
    parameters: NotRequired[dict[str, str]]
    #: The preset that the job was made from.
    preset: NotRequired[str | None]
    #: Secrets that the job gets, without their values; shown like the command.
    secrets: NotRequired[list[str] | None]
    #: Resources held and used in all attempts of the job; only set for a single job.
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
    #: Resources held and used in the attempt.
    usage: NotRequired[UsageView | None]


class CheckpointView(TypedDict):
    name: str
    #: The directory; shown to the job's owner and to operators only.
    path: str | None
    #: Number of steps done; a program that resumes from the checkpoint continues there.
    step: int
    #: Null if it cannot be read any more.
    saved_at: str | None
    size_bytes: int
    #: The attempt that saved the checkpoint; null if it cannot be read any more.
    attempt: int | None
    #: Number of processes of a gang that saved a part.
    parts: int
    #: Judged by file names and lengths; before an attempt resumes, every byte is checked.
    good: bool
    #: Why no attempt resumes from this checkpoint.
    problem: str | None


OutputKind = Literal["file", "directory", "link", "other"]


class FileView(TypedDict):
    name: str
    #: Path relative to the output directory.
    path: str
    #: `link`: a link to a place outside of the output directory; it cannot be downloaded.
    kind: OutputKind
    is_dir: bool
    size_bytes: int
    modified_at: str


class LogMatchView(TypedDict):
    attempt: int
    rank: int
    #: Number of the line, counted from the oldest line that is kept.
    line: int
    #: The byte of the log at which the line begins.
    offset: int
    #: The line; of a long line, the part around the match.
    text: str


class PresetAssetView(TypedDict):
    kind: AssetKind
    name: str
    source: str
    path: str
    format: str
    classes: list[str]
    description: str
    created_by: str
    created_at: str


ParameterType = Literal["choice", "int", "float", "bool", "text", "path", "model", "dataset"]


class ParameterView(TypedDict):
    name: str
    type: ParameterType
    #: Null: the parameter is required.
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
    #: This field and the next ones are defaults for the preset's jobs.
    gpus: float
    cpus: float
    memory_bytes: int
    time_limit_seconds: float | None
    image: str | None
    venv: str | None
    command: list[str]
    env: dict[str, str]
    #: The preset is part of corral.
    shipped: bool
    created_by: str | None
    created_at: str | None
    #: The YAML file; only set for a single preset.
    yaml: NotRequired[str | None]


class RegistryImageView(TypedDict):
    """An image of a registry, which may or may not be known to corral by a name."""

    #: For `image` of a job.
    address: str
    repository: str
    version: str
    #: Compressed, as it is pulled; null: the registry does not say.
    size_bytes: int | None
    created_at: str | None


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
    #: A password or token. Stored encrypted and never shown again.
    secret: str
    #: For public images; only operators can set it.
    platform: NotRequired[bool]


class EstimateView(TypedDict):
    """The estimated start: half of such jobs start by p50, nine tenths by p90."""

    p50: str
    p90: str


class ReasonView(TypedDict):
    rule: str
    detail: str
    numbers: dict[str, Any]
    jobs: list[str]


PreemptionRule = Literal[
    "guarantee", "reservation", "order", "overrun", "move", "defragmentation", "migration", "drain"
]


class PreemptingView(TypedDict):
    """A job that would be preempted; of a job that the caller may not see, only the rule and the loss are shown."""

    job: str | None
    rule: PreemptionRule
    lost_gpu_seconds: float


class WouldStartView(TypedDict):
    #: Now, or p50 of the estimate; null: no estimate exists.
    at: str | None
    #: Nodes: certain if the job starts now, otherwise of its planned start.
    nodes: list[str]
    #: The first of the jobs ahead of it that the caller may see.
    after: list[str]
    preempting: list[PreemptingView]


class PlanView(TypedDict):
    outcome: Literal["start", "wait", "refuse"]
    detail: str
    #: Now, or the latest planned start.
    start_at: str | None
    nodes: list[str]
    reasons: list[ReasonView]
    ahead_count: int
    #: Time at which the job would start.
    estimate: NotRequired[EstimateView | None]
    #: null: the job would be refused.
    would_start: NotRequired[WouldStartView | None]


class PresetAssetCreate(TypedDict):
    kind: Literal["model", "dataset"]
    name: str
    #: An absolute path of a directory on the nodes (a mirror), or a volume, owner/volume, a bucket's volume, or
    #: dataset:NAME@VERSION, which jobs mount read-only.
    source: str
    #: Null: read from a data set in a directory that the server sees.
    classes: NotRequired[list[str] | None]
    description: NotRequired[str]
    #: For a data set: image-folder, coco, csv or text. For a model: its architecture, such as torchvision:resnet18;
    #: empty if model.json beside the weights has it.
    format: NotRequired[str]
    #: Within the source.
    path: NotRequired[str]
    #: Replace one of the same kind and name.
    replace: NotRequired[bool]


class PresetCreate(TypedDict):
    #: The template, as a YAML file.
    yaml: str
    #: Replace a preset of the same name.
    replace: NotRequired[bool]


class PresetRun(TypedDict):
    #: Name of the job.
    name: NotRequired[str | None]
    #: Other fields of the job: gpus, time, queue, env and so on.
    overrides: NotRequired[dict[str, Any]]
    parameters: NotRequired[dict[str, bool | float | str]]


class ProgramCreate(TypedDict):
    """The program; the installation's template if it is left out."""

    command: NotRequired[list[str] | None]
    #: Working directory; default: the attempt's own.
    workdir: NotRequired[str | None]


class TaskCreate(TypedDict):
    task: str
    #: null: an automatic allocation, which begins with scaling.min_gpus.
    gpus: NotRequired[int | None]
    #: Queue the task if a limit on held GPUs leaves no room now, in place of a refusal.
    wait: NotRequired[bool]


class CycleView(TypedDict):
    """The journal entries that an answer about the past is based on."""

    id: int
    at: str
    #: Whether the answer contains exactly the changes up to that moment.
    exact: bool
    known_until: str
    words: str


class ExplainedEstimateView(TypedDict):
    p50: str
    p90: str
    made_at: str
    #: Explanation of the estimate.
    basis: str


class JobRefView(TypedDict):
    """A job; of a job that the caller may not see, only the owner is shown."""

    id: str | None
    name: str | None
    user: str


Outcome = Literal["start", "earlier"]


class EffectView(TypedDict):
    #: start: the job would start now. earlier: its planned start would be earlier than without this.
    outcome: Outcome
    start_at: str


Operation = Literal["edit", "start"]


class SuggestedChangeView(TypedDict):
    #: edit: PATCH the job with the body. start: POST to its /start.
    operation: Operation
    body: dict[str, Any]


class SuggestionView(TypedDict):
    """A change that helps, checked by running the scheduler with it."""

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
    #: Explanation of the job's position in the waiting line; empty if the job is in none.
    place: str
    ahead: list[JobRefView]
    ahead_count: int
    planned_start: str | None
    planned_nodes: list[str]
    #: Shown to the job's owner and to operators, the best first.
    suggestions: list[SuggestionView]
    #: The moment in question; null for now.
    at: NotRequired[str | None]
    cycle: NotRequired[CycleView | None]
    #: Estimated start; null: the job does not wait, or no estimate exists.
    estimate: NotRequired[ExplainedEstimateView | None]
