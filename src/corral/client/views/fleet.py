"""Clusters, nodes, GPUs, pools, flavors and packages.

Generated from docs/reference/openapi.json by `make openapi`: do not edit.
"""

from typing import Literal, NotRequired, TypedDict

from corral.client.views.jobs import JobKind, JobState


class DeletedView(TypedDict):
    deleted: list[str]


class CapacityView(TypedDict):
    gpus: int
    free: int


class SpanView(TypedDict):
    #: As likely as not by then.
    p50: str
    #: In nine of ten cases by then.
    p90: str


class DisplacedJobView(TypedDict):
    id: str
    name: str
    user: str
    #: Its GPUs on the node.
    gpus: list[str]
    gpu_count: int
    #: By runs like it that took at least as long; null if there were none.
    ends_at: SpanView | None
    #: When its time limit ends it.
    limit_at: str | None
    #: Whether it is still there then.
    displaced: Literal["surely", "likely", "possibly", "no"]
    #: Since its last checkpoint, as far as it can be told.
    lost_gpu_seconds: float
    preemptible: bool
    #: Nodes that have room for it; null when none is known.
    goes_to: list[str] | None
    back_at: str | None


class StrandedView(TypedDict):
    id: str
    name: str
    user: str
    detail: str


class DrainPreviewView(TypedDict):
    node: str
    at: str
    #: When all have ended by themselves; null when that cannot be told.
    empty_at: SpanView | None
    jobs: list[DisplacedJobView]
    #: Jobs that wait and could run nowhere else.
    stranded: list[StrandedView]
    #: Of each pool with GPUs on the node, without it.
    capacity_after: dict[str, CapacityView]


class FlavorCreate(TypedDict):
    name: str
    description: NotRequired[str]
    #: Labels that a node must have.
    labels: NotRequired[dict[str, str]]
    #: GPU models that will do; none means any.
    models: NotRequired[list[str]]


class FlavorEdit(TypedDict):
    """What may be changed about a flavor; what is left out stays as it is."""

    description: NotRequired[str]
    #: Labels that a node must have.
    labels: NotRequired[dict[str, str]]
    #: GPU models that will do; none means any.
    models: NotRequired[list[str]]


class FlavorView(TypedDict):
    name: str
    models: list[str]
    labels: dict[str, str]
    description: str
    #: GPUs of this kind in the whole installation, in use or not.
    gpus_total: int
    packages: list[str]
    created_at: str


GpuHealth = Literal["healthy", "suspect", "failed"]


class GpuColumns(TypedDict):
    """Every list has one place per GPU. `node`, `model`, `pool` and `owner` are places in the lists beside."""

    id: list[str]
    node: list[int]
    index: list[int]
    model: list[int]
    pool: list[int]
    health: list[GpuHealth]
    #: The part that jobs hold, 0 to 1.
    allocated: list[float]
    #: Whose job holds the largest part; null while it is free.
    owner: list[int | None]
    #: That job, where the caller may see it.
    job: list[str | None]
    utilization: list[float | None]
    #: The used part, 0 to 1.
    memory: list[float | None]
    #: Celsius.
    temperature: list[float | None]
    #: Watts.
    power: list[float | None]
    #: Others hold it, outside of corral.
    taken: list[bool]
    #: Never read, or too long ago to be believed.
    stale: list[bool]


NodeState = Literal["ready", "cordoned", "draining", "down"]


class MapNodeView(TypedDict):
    id: str
    state: NodeState
    cluster: str


class GpuMapView(TypedDict):
    """Measured values are null where the device does not tell."""

    at: str
    nodes: list[MapNodeView]
    models: list[str]
    owners: list[str]
    pools: list[str]
    gpus: GpuColumns


class GpuMark(TypedDict):
    """An operator's word about a GPU."""

    #: Suspect: no new work. Failed: its jobs move.
    health: Literal["suspect", "failed"]
    reason: str


class GpuMove(TypedDict):
    gpus: list[str]


#: What speaks against a GPU.
Sign = Literal["hot", "idle", "ecc", "row_remap", "xid", "lost", "self_test", "operator", "alert"]


class EvidenceView(TypedDict):
    sign: Sign
    at: str
    text: str
    advice: str


class HolderView(TypedDict):
    """A job on a GPU or a node; of one that the caller may not see only whose it is and how large."""

    id: str | None
    name: str | None
    user: str
    gpus: float
    state: JobState


class ReadingView(TypedDict):
    at: str
    stale: bool
    utilization: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    temperature_celsius: float | None
    power_watts: float | None
    power_limit_watts: float | None
    energy_joules: float | None
    sm_clock_mhz: float | None
    memory_clock_mhz: float | None
    throttle_reasons: list[str]
    ecc_corrected: int | None
    ecc_uncorrected: int | None
    remapped_rows: int | None
    remap_failed: bool | None
    #: How many processes use it.
    processes: int
    #: It was there and does not answer any more.
    lost: bool


class GpuView(TypedDict):
    id: str
    index: int
    node: str
    cluster: str
    model: str
    memory_bytes: int
    health: GpuHealth
    #: Null while it was always healthy.
    health_since: str | None
    #: What was seen, oldest first; also of times that are over.
    evidence: list[EvidenceView]
    pool: str
    #: GPUs of a node with the same name here are linked; empty while none is known.
    link_group: str
    allocated: float
    #: Others hold it, outside of corral.
    taken: bool
    jobs: list[HolderView]
    reading: ReadingView | None


class ClusterView(TypedDict):
    name: str
    engine: str
    healthy: bool
    #: What is wrong, in the words of its engine; empty while it answers.
    detail: str
    #: When it was last asked; null before the first time.
    observed_at: str | None
    #: Since when it answers, or does not, as far as this server has seen.
    since: str | None
    nodes: int
    nodes_ready: int
    gpus: int
    gpus_free: int
    #: Held by others, outside of corral.
    gpus_taken: int
    #: Models of GPUs by what its own scheduler calls them, as far as set.
    gpu_types: dict[str, str]


class HostView(TypedDict):
    """How a node is besides its GPUs; null where it does not tell. Rates are per second."""

    at: str
    stale: bool
    cpu: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    disk_used_bytes: int | None
    disk_total_bytes: int | None
    network_receive_bytes: float | None
    network_send_bytes: float | None


class TakenView(TypedDict):
    """What of a node others hold, outside of corral."""

    gpus: int
    cpus: float
    memory_bytes: int


class NodeView(TypedDict):
    id: str
    cluster: str
    state: NodeState
    #: What an operator has said: ready, cordoned or draining.
    withheld: NodeState
    #: Why its engine gives it no work; empty where it does not tell.
    reason: str
    cpus: float
    memory_bytes: int
    labels: dict[str, str]
    load: float | None
    gpus_total: int
    gpus_free: float
    gpus_allocated: float
    taken: TakenView
    gpus: list[GpuView]
    jobs: list[HolderView]
    host: NotRequired[HostView | None]


class PackageView(TypedDict):
    name: str
    gpus: float
    cpus: float
    memory_bytes: int
    flavor: str | None
    #: Of its flavor.
    models: list[str]
    rdma: bool
    kinds: list[JobKind]
    description: str
    created_at: str
    #: With this and the rest only when a kind is asked for.
    available: NotRequired[bool | None]
    #: Of the next one; null when unknown.
    expected_wait_seconds: NotRequired[float | None]
    #: Jobs of it that would start now.
    free_count: NotRequired[int | None]
    #: Where the caller's job would wait.
    queue: NotRequired[str | None]
    #: Jobs that wait there for the same GPU model.
    queued: NotRequired[int | None]


class PoolView(TypedDict):
    name: str
    description: str
    #: Null while it is empty, or where models are mixed (default only).
    model: str | None
    gpus_total: int
    gpus_free: int
    gpus_allocated: float
    group: str | None
    queues: list[str]
    running: int
    queued: int
    created_at: str


class ScorePointView(TypedDict):
    model: str
    at: str
    score: float
    usage: float


class ScoreView(TypedDict):
    user: str
    model: str
    score: float
    usage: float
    at: str


class NamesDelete(TypedDict):
    """All of them, or none."""

    names: list[str]


class OverviewView(TypedDict):
    """The installation in a few numbers; what nobody tells is null, not zero."""

    nodes: int
    nodes_by_state: dict[str, int]
    gpus: int
    gpus_free: float
    gpus_allocated: float
    #: Held by others, outside of corral.
    gpus_taken: int
    gpus_suspect: int
    gpus_failed: int
    gpus_stale: int
    allocation: float
    utilization: float | None
    #: Held by jobs, and not used at this moment.
    idle_gpus: int
    power_watts: float | None
    #: What the GPUs that tell may draw together.
    power_limit_watts: float | None
    temperature_celsius: float | None
    temperature_mean_celsius: float | None
    #: Mean use of the CPUs of the nodes that tell, 0 to 1.
    cpu: float | None
    #: Of the nodes that tell, as the total.
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    #: By state; of one cluster without those that have ended.
    jobs: dict[str, int]
    running: int
    queued: int
    #: How long what waits now has waited so far.
    wait_seconds_median: float | None
    wait_seconds_max: float | None
    alerts: dict[str, int]


class PackageCreate(TypedDict):
    name: str
    cpus: NotRequired[float]
    description: NotRequired[str]
    #: Null: any hardware.
    flavor: NotRequired[str | None]
    #: Per node: 0, a share below 1, or whole GPUs.
    gpus: NotRequired[float]
    #: The job kinds it is offered to; none means every kind.
    kinds: NotRequired[list[Literal["workbench", "training", "distributed", "preset"]]]
    memory_bytes: NotRequired[float | str]
    #: Only nodes with the label rdma=true.
    rdma: NotRequired[bool]


class PackageEdit(TypedDict):
    """What may be changed about a package; what is left out stays as it is."""

    cpus: NotRequired[float]
    description: NotRequired[str]
    #: Null: any hardware.
    flavor: NotRequired[str | None]
    #: Per node: 0, a share below 1, or whole GPUs.
    gpus: NotRequired[float]
    #: The job kinds it is offered to; none means every kind.
    kinds: NotRequired[list[Literal["workbench", "training", "distributed", "preset"]]]
    memory_bytes: NotRequired[float | str]
    #: Only nodes with the label rdma=true.
    rdma: NotRequired[bool]


class PanelKindView(TypedDict):
    """One kind over all models; jobs without GPUs count too."""

    kind: JobKind
    #: Jobs that hold resources.
    running: int
    #: Jobs that wait.
    queued: int
    #: GPUs that the running ones hold.
    occupied: float
    #: GPUs that jobs of this kind can have.
    total: float
    #: Of these, in good order and held by nobody.
    free: float
    #: GPUs that the waiting ones ask for.
    gap: float


class PanelView(TypedDict):
    """One kind and GPU model."""

    kind: JobKind
    #: Jobs that hold resources.
    running: int
    #: Jobs that wait.
    queued: int
    #: GPUs that the running ones hold.
    occupied: float
    #: GPUs that jobs of this kind can have.
    total: float
    #: Of these, in good order and held by nobody.
    free: float
    #: GPUs that the waiting ones ask for.
    gap: float
    model: str


class PanelPage(TypedDict):
    items: list[PanelView]
    #: The sums per kind, on every page.
    kinds: list[PanelKindView]
    next_cursor: NotRequired[str | None]


class PoolCreate(TypedDict):
    name: str
    description: NotRequired[str]
    #: Ids of GPUs of one model; they leave the pool they are in.
    gpus: NotRequired[list[str]]


class PoolDetailView(TypedDict):
    name: str
    description: str
    #: Null while it is empty, or where models are mixed (default only).
    model: str | None
    gpus_total: int
    gpus_free: int
    gpus_allocated: float
    group: str | None
    queues: list[str]
    running: int
    queued: int
    created_at: str
    gpus: list[GpuView]


class PoolEdit(TypedDict):
    description: NotRequired[str | None]
    #: Exactly the GPUs that it shall have: what it loses goes to the pool default.
    gpus: NotRequired[list[str] | None]
