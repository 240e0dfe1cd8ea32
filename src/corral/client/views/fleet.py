"""Clusters, nodes, GPUs, maintenance windows, pools, flavors and packages.

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
    #: The job has ended by then with a probability of 50 %.
    p50: str
    #: The job has ended by then with a probability of 90 %.
    p90: str


class DisplacedJobView(TypedDict):
    id: str
    name: str
    user: str
    #: Number of the job's GPUs on the node.
    gpus: list[str]
    gpu_count: int
    #: Estimated from similar runs that took at least as long; null if there were none.
    ends_at: SpanView | None
    #: End of the job's time limit.
    limit_at: str | None
    #: Whether the job is expected to run still at that time.
    displaced: Literal["surely", "likely", "possibly", "no"]
    #: Work since the last known checkpoint.
    lost_gpu_seconds: float
    preemptible: bool
    #: Nodes that the job would fit on; null if none is known.
    goes_to: list[str] | None
    back_at: str | None


class StrandedView(TypedDict):
    id: str
    name: str
    user: str
    detail: str


class DrainPreviewView(TypedDict):
    #: The first of the nodes.
    node: str
    nodes: list[str]
    at: str
    #: Estimated end of the last job; null if it cannot be estimated.
    empty_at: SpanView | None
    jobs: list[DisplacedJobView]
    #: Waiting jobs that can run on these nodes only.
    stranded: list[StrandedView]
    #: Each pool with GPUs on the nodes, and its GPUs without them.
    capacity_after: dict[str, CapacityView]


class FlavorCreate(TypedDict):
    name: str
    #: CPUs per GPU of jobs that ask for no number of CPUs; 0: none.
    cpus_per_gpu: NotRequired[float]
    #: GPUs of jobs that ask for none.
    default_gpus: NotRequired[int]
    description: NotRequired[str]
    #: Labels that a node must have.
    labels: NotRequired[dict[str, str]]
    #: Memory per GPU of jobs that ask for no memory; 0: none.
    memory_bytes_per_gpu: NotRequired[float | str]
    #: Accepted GPU models; none means any.
    models: NotRequired[list[str]]


class FlavorEdit(TypedDict):
    """Changes to a flavor. Fields that are left out keep their values."""

    #: CPUs per GPU of jobs that ask for no number of CPUs; 0: none.
    cpus_per_gpu: NotRequired[float]
    #: GPUs of jobs that ask for none.
    default_gpus: NotRequired[int]
    description: NotRequired[str]
    #: Labels that a node must have.
    labels: NotRequired[dict[str, str]]
    #: Memory per GPU of jobs that ask for no memory; 0: none.
    memory_bytes_per_gpu: NotRequired[float | str]
    #: Accepted GPU models; none means any.
    models: NotRequired[list[str]]


class FlavorView(TypedDict):
    name: str
    models: list[str]
    labels: dict[str, str]
    cpus_per_gpu: float
    memory_bytes_per_gpu: int
    default_gpus: int
    description: str
    #: GPUs of this kind in the whole installation, in use or not.
    gpus_total: int
    packages: list[str]
    created_at: str


GpuHealth = Literal["healthy", "suspect", "failed"]


class GpuColumns(TypedDict):
    """Every list has one item per GPU. `node`, `model`, `pool` and `owner` are indexes into the lists of names."""

    id: list[str]
    node: list[int]
    index: list[int]
    model: list[int]
    pool: list[int]
    health: list[GpuHealth]
    #: Share of the GPU that jobs hold, 0 to 1.
    allocated: list[float]
    #: Owner of the job that holds the largest share; null if no job holds it.
    owner: list[int | None]
    #: Id of the job, if the caller may see it.
    job: list[str | None]
    utilization: list[float | None]
    #: Share of the GPU's memory in use, 0 to 1.
    memory: list[float | None]
    #: Celsius.
    temperature: list[float | None]
    #: Watts.
    power: list[float | None]
    #: The GPU is used outside of corral.
    taken: list[bool]
    #: A job could start on the GPU now.
    free: list[bool]
    #: The GPU was never read, or its last reading is too old.
    stale: list[bool]


NodeState = Literal["ready", "cordoned", "draining", "drained", "down"]


class MapNodeView(TypedDict):
    id: str
    state: NodeState
    cluster: str


class GpuMapView(TypedDict):
    """Measured values are null if the device does not report them."""

    at: str
    nodes: list[MapNodeView]
    models: list[str]
    owners: list[str]
    pools: list[str]
    gpus: GpuColumns
    #: By id of a GPU that moves when its jobs have ended: the name of the pool that it moves to.
    next_pools: dict[str, str]
    #: Null on the last page.
    next_cursor: str | None


class GpuMark(TypedDict):
    """A GPU's health, set by an operator."""

    #: Suspect: the GPU gets no new jobs. Failed: its jobs are moved, too.
    health: Literal["suspect", "failed"]
    reason: str


class GpuMove(TypedDict):
    gpus: list[str]
    #: GPUs with running jobs take no new jobs, and move when these have ended. Without it, a GPU with a running job
    #: refuses the move.
    when_free: NotRequired[bool]


#: A sign of a fault.
Sign = Literal["hot", "idle", "ecc", "row_remap", "xid", "lost", "self_test", "operator", "alert", "check"]


class EvidenceView(TypedDict):
    sign: Sign
    at: str
    text: str
    advice: str


class HolderView(TypedDict):
    """A job on a GPU or a node; of a job that the caller may not see, only its owner and its size are shown."""

    id: str | None
    name: str | None
    user: str
    gpus: float
    state: JobState


class ReadingView(TypedDict):
    at: str
    stale: bool
    utilization: float | None
    #: Compute efficiency: mean part of the time in which an SM had work, 0 to 1, where DCGM reports it.
    sm_activity: float | None
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
    #: Number of processes that use the GPU.
    processes: int
    #: The GPU was found before and does not answer any more.
    lost: bool


class GpuView(TypedDict):
    id: str
    index: int
    node: str
    cluster: str
    model: str
    memory_bytes: int
    health: GpuHealth
    #: Null if the GPU was always healthy.
    health_since: str | None
    #: Observed problems, oldest first, also those that are over.
    evidence: list[EvidenceView]
    pool: str
    #: The pool that the GPU moves to when its jobs have ended, until when it takes no new jobs; empty if the GPU stays
    #: in its pool.
    next_pool: str
    #: GPUs of a node with the same value are linked; empty if no link is known.
    link_group: str
    allocated: float
    #: The GPU is used outside of corral.
    taken: bool
    #: A job could start on the GPU now: not held, healthy, on a ready node, not reserved for some users.
    free: bool
    #: The GPU is idle, and reserved for some users.
    reserved: bool
    jobs: list[HolderView]
    reading: ReadingView | None


Check = Literal["compute", "memory", "pcie", "disk", "network", "dcgm"]


class HealthCheckCreate(TypedDict):
    #: A GPU, or a node: all its GPUs.
    target: str
    #: Checks to run; null: the checks of the configuration.
    checks: NotRequired[list[Check] | None]


CheckCause = Literal["requested", "return", "schedule"]


class CheckProblemView(TypedDict):
    check: Check
    text: str
    #: The GPU computed or stored something wrong; otherwise it is slow.
    is_fatal: bool


CheckState = Literal["open", "passed", "failed", "unknown"]


class MeasurementView(TypedDict):
    check: Check
    #: Such as compute_tflops or memory_gb_per_second; more is better.
    metric: str
    value: float


class HealthCheckView(TypedDict):
    #: The job that makes the check.
    job: str
    gpu: str
    node: str
    model: str
    cause: CheckCause
    requested_by: str
    requested_at: str
    ended_at: str | None
    state: CheckState
    checks: list[Check]
    #: The GPU is virtual: the rates are those of the processor.
    is_simulated: bool
    measurements: list[MeasurementView]
    problems: list[CheckProblemView]
    #: Checks that were left out, each with the reason.
    skipped: list[str]


class HealthChecksStarted(TypedDict):
    items: list[HealthCheckView]


class ClusterView(TypedDict):
    name: str
    engine: str
    #: Whether the GPUs are virtual: jobs are real, readings are simulated.
    simulated: bool
    healthy: bool
    #: The engine's error message; empty while the engine answers.
    detail: str
    #: Time of the last observation of the engine; null before the first one.
    observed_at: str | None
    #: Time since which this server has seen the engine answer, or not answer.
    since: str | None
    nodes: int
    nodes_ready: int
    gpus: int
    #: GPUs that a job could start on now.
    gpus_free: int
    #: GPUs that jobs hold.
    gpus_allocated: float
    #: GPUs that are used outside of corral.
    gpus_taken: int
    #: GPU models by the names of the cluster's own scheduler, if configured.
    gpu_types: dict[str, str]


MaintenanceState = Literal["upcoming", "draining", "active", "over"]


class MaintenanceView(TypedDict):
    name: str
    nodes: list[str]
    #: Time at which the present occurrence begins, or else the next.
    since: str
    until: str
    #: Days from one occurrence to the next; null if there is only one.
    every_days: int | None
    drain_before_seconds: float
    #: From then on the nodes take no new jobs.
    drains_at: str
    state: MaintenanceState
    #: Nodes that still have jobs.
    nodes_left: list[str]
    note: str
    created_by: str
    created_at: str


class DrainView(TypedDict):
    started_at: str
    started_by: str
    #: Time at which remaining jobs are displaced; null: jobs run to their end.
    empty_by: str | None
    #: Time at which the last job had left; null while jobs are left.
    drained_at: str | None
    #: The maintenance window after which the node takes jobs again.
    maintenance: str | None


class HostView(TypedDict):
    """Readings of a node apart from its GPUs; null if the node does not report them. Rates are per second."""

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
    """Resources of a node that are used outside of corral."""

    gpus: int
    cpus: float
    memory_bytes: int


class NodeView(TypedDict):
    id: str
    cluster: str
    state: NodeState
    #: State set by an operator: ready, cordoned or draining.
    withheld: NodeState
    #: The drain of the node; null if it is not being drained.
    drain: DrainView | None
    #: The engine's reason for giving the node no work; empty if the engine reports none.
    reason: str
    cpus: float
    memory_bytes: int
    labels: dict[str, str]
    load: float | None
    gpus_total: int
    #: GPUs that a job could start on now.
    gpus_free: float
    #: Idle GPUs that are reserved for some users.
    gpus_reserved: int
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
    #: GPU models of its flavor.
    models: list[str]
    rdma: bool
    kinds: list[JobKind]
    description: str
    created_at: str
    #: This field and the following ones are set only if a kind is given.
    available: NotRequired[bool | None]
    #: Estimated start of the next job; null if unknown.
    expected_wait_seconds: NotRequired[float | None]
    #: Number of jobs of this size that would start now.
    free_count: NotRequired[int | None]
    #: Queue in which the caller's job would wait.
    queue: NotRequired[str | None]
    #: Number of jobs that wait in that queue for the same GPU model.
    queued: NotRequired[int | None]


class PoolView(TypedDict):
    name: str
    description: str
    #: Null if the pool is empty or has several models (default only).
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


class MaintenanceCreate(TypedDict):
    name: str
    nodes: list[str]
    #: Time at which the nodes take jobs again.
    until: str
    #: Time before it in which the nodes take no new jobs.
    drain_before: NotRequired[float | str]
    #: Days until it is repeated at the same time of the day by the server's clock; left out: once.
    every_days: NotRequired[int | None]
    note: NotRequired[str]
    #: Time at which the nodes are to be empty; left out: now.
    since: NotRequired[str | None]


class MaintenanceEdit(TypedDict):
    drain_before: NotRequired[float | str | None]
    #: Null: not repeated; left out: unchanged.
    every_days: NotRequired[int | None]
    nodes: NotRequired[list[str] | None]
    note: NotRequired[str | None]
    since: NotRequired[str | None]
    until: NotRequired[str | None]


class NamesDelete(TypedDict):
    """Names of the objects to delete: all of them or none."""

    names: list[str]


class NodeDrain(TypedDict):
    #: Jobs that are left at this time are asked to save and continue elsewhere; in the past: now. Null: jobs run to
    #: their end.
    empty_by: NotRequired[str | None]


class OverviewView(TypedDict):
    """The installation in a few numbers; a value that no device reports is null, not zero."""

    nodes: int
    nodes_by_state: dict[str, int]
    gpus: int
    #: GPUs that a job could start on now.
    gpus_free: float
    #: Idle GPUs that are reserved for some users.
    gpus_reserved: int
    gpus_allocated: float
    #: GPUs that are used outside of corral.
    gpus_taken: int
    gpus_suspect: int
    gpus_failed: int
    gpus_stale: int
    allocation: float
    utilization: float | None
    #: Mean activity of the SMs of held GPUs, 0 to 1, where DCGM reports it.
    compute_efficiency: float | None
    #: GPUs that jobs hold and do not use at this moment.
    idle_gpus: int
    power_watts: float | None
    #: Sum of the power limits of the GPUs that report one.
    power_limit_watts: float | None
    temperature_celsius: float | None
    temperature_mean_celsius: float | None
    #: Mean CPU utilisation of the nodes that report it, 0 to 1.
    cpu: float | None
    #: Sum over the nodes that report it; the total likewise.
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    #: Number of jobs by state; for a single cluster, ended jobs are left out.
    jobs: dict[str, int]
    running: int
    queued: int
    #: Time that the jobs which wait now have waited so far.
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
    #: Job kinds that the package is offered to; none means every kind.
    kinds: NotRequired[list[Literal["workbench", "training", "distributed", "preset"]]]
    memory_bytes: NotRequired[float | str]
    #: Use only nodes with the label rdma=true.
    rdma: NotRequired[bool]


class PackageEdit(TypedDict):
    """Changes to a package. Fields that are left out keep their values."""

    cpus: NotRequired[float]
    description: NotRequired[str]
    #: Null: any hardware.
    flavor: NotRequired[str | None]
    #: Per node: 0, a share below 1, or whole GPUs.
    gpus: NotRequired[float]
    #: Job kinds that the package is offered to; none means every kind.
    kinds: NotRequired[list[Literal["workbench", "training", "distributed", "preset"]]]
    memory_bytes: NotRequired[float | str]
    #: Use only nodes with the label rdma=true.
    rdma: NotRequired[bool]


class PanelKindView(TypedDict):
    """One kind over all models; jobs without GPUs count too."""

    #: Jobs that hold resources.
    running: int
    #: Jobs that wait.
    queued: int
    #: GPUs that the running jobs hold.
    occupied: float
    #: GPUs that these jobs can have.
    total: float
    #: GPUs of these that a job could start on now.
    free: float
    #: GPUs that the waiting jobs ask for.
    gap: float
    kind: JobKind


class PanelModelView(TypedDict):
    """One GPU model over all kinds; each GPU counts once."""

    #: Jobs that hold resources.
    running: int
    #: Jobs that wait.
    queued: int
    #: GPUs that the running jobs hold.
    occupied: float
    #: GPUs that these jobs can have.
    total: float
    #: GPUs of these that a job could start on now.
    free: float
    #: GPUs that the waiting jobs ask for.
    gap: float
    model: str


class PanelView(TypedDict):
    """One kind and GPU model."""

    #: Jobs that hold resources.
    running: int
    #: Jobs that wait.
    queued: int
    #: GPUs that the running jobs hold.
    occupied: float
    #: GPUs that these jobs can have.
    total: float
    #: GPUs of these that a job could start on now.
    free: float
    #: GPUs that the waiting jobs ask for.
    gap: float
    kind: JobKind
    model: str


class PanelPage(TypedDict):
    items: list[PanelView]
    #: Totals per kind; the same on every page.
    kinds: list[PanelKindView]
    #: Totals per GPU model; the same on every page.
    models: list[PanelModelView]
    next_cursor: NotRequired[str | None]


class PoolCreate(TypedDict):
    name: str
    description: NotRequired[str]
    #: Ids of GPUs of one model; they are removed from their present pool.
    gpus: NotRequired[list[str]]


class PoolDetailView(TypedDict):
    name: str
    description: str
    #: Null if the pool is empty or has several models (default only).
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
    #: The complete list of GPUs; GPUs that are not listed move to the pool default.
    gpus: NotRequired[list[str] | None]


class RepairTicketView(TypedDict):
    gpu: str
    text: str
