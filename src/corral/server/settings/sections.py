"""The sections of `corral.yaml`: their keys, defaults and ranges.

Decides what a valid configuration is. Where values come from, and which source wins, is decided in `settings`.
The defaults limit nobody: a single user on one machine needs no configuration at all.
"""

from __future__ import annotations

import re
import shlex
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from corral.control.system.licence import check_public_key
from corral.core.model import Blocking
from corral.core.quantities import MAX_COUNT, parse_bytes, parse_duration
from corral.core.scheduling.ordering import POLICIES as ORDERING_POLICIES
from corral.core.scheduling.placement import POLICIES as PLACEMENT_POLICIES
from corral.core.snapshot.installation import DEFAULT_RACK_LABEL
from corral.engines.local.virtual import parse_virtual_gpus, parse_virtual_nodes
from corral.engines.registry import ENGINES
from corral.engines.slurm.slurm_api.rest_format import VERSIONS, options_of, parse_place
from corral.server.schemas.base import environment
from corral.server.settings.section_rules import (
    absolute_path,
    database_place,
    each_readable_by,
    matching,
    metrics_place,
    one_of,
    parse_ports,
    public_address,
    readable_by,
    whole_path,
    workbench_address,
)
from corral.telemetry.scraper import readable_target

_JOB_NAME_PART = re.compile(r"[A-Za-z0-9_-]*")
_ACCOUNT_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*")
_HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:-]*")


class Section(BaseModel):
    """Strict: `port: "8470"` is a mistake worth telling, not something to guess at."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


Engine = Annotated[str, one_of(ENGINES, "engine")]
OrderingPolicy = Annotated[str, one_of(ORDERING_POLICIES, "ordering policy")]
PlacementPolicy = Annotated[str, one_of(PLACEMENT_POLICIES, "placement policy")]
Texts = Annotated[tuple[str, ...], Field(strict=False)]
Size = Annotated[int, BeforeValidator(parse_bytes)]
Duration = Annotated[float, BeforeValidator(parse_duration), Field(ge=60)]
GpuCount = Annotated[int, Field(ge=0, le=1_000_000)]
Weight = Annotated[float, Field(ge=0, le=1000)]
Fraction = Annotated[float, Field(ge=0, le=1)]


class SlurmRestSettings(Section):
    """slurmrestd, and the token with which it is asked."""

    #: http://login1:6820, or unix:/run/slurmrestd.socket
    url: Annotated[str, readable_by(parse_place)]
    #: a file with the token, which somebody keeps up to date
    token_file: Annotated[str, AfterValidator(absolute_path)] | None = None
    #: a command that prints one: [scontrol, token, lifespan=3600]
    token_command: Texts = ()
    #: whose token it is; null: whom it names itself
    user: Annotated[str, Field(max_length=64), matching(_ACCOUNT_NAME, "corral")] | None = None
    #: null: the newest that slurmrestd and corral both know
    api_version: Annotated[str, one_of(VERSIONS, "api_version")] | None = None

    @model_validator(mode="after")
    def _one_token(self) -> SlurmRestSettings:
        if self.token_file and self.token_command:
            raise ValueError("give token_file or token_command, not both")
        if not (self.token_file or self.token_command or self.url.startswith("unix:")):
            raise ValueError("give token_file or token_command: slurmrestd is asked without a token at a socket only")
        return self


class SlurmSettings(Section):
    """An existing Slurm cluster, and how corral's jobs are given to it."""

    #: Slurm is asked through slurmrestd; null: by its programs
    rest: SlurmRestSettings | None = None
    #: Slurm's own settings; null: where its programs look for them
    conf: Annotated[str, AfterValidator(absolute_path)] | None = None
    #: where its programs are; null: on the PATH
    programs: Annotated[str, AfterValidator(absolute_path)] | None = None
    #: a directory that this server and all nodes share; null: below CORRAL_HOME, which must then be shared
    root: Annotated[str, AfterValidator(absolute_path)] | None = None
    #: whose nodes corral uses, and where it submits, the best first; empty: all of them, the default one first
    partitions: Texts = ()
    #: the longest that Slurm lets a job run, where accounts or QOS allow less than the partition: 2d
    max_time: Duration | None = None
    account: Annotated[str, Field(max_length=64)] = ""
    qos: Annotated[str, Field(max_length=64)] = ""
    #: Slurm accounts of users who have another one
    accounts: dict[str, str] = {}
    #: for jobs that ask for no CPUs
    cpus_per_gpu: Annotated[int, Field(ge=1, le=1024)] = 1
    #: what corral calls GPUs of a type: {a100: A100-80G}
    models: dict[str, str] = {}
    #: more options for every sbatch, such as --reservation=corral
    options: Texts = ()
    #: the PATH of jobs
    path: str = "/usr/local/bin:/usr/bin:/bin"
    #: a job that others keep waiting in Slurm for so long goes back to corral's queue
    pending_seconds: Annotated[float, Field(ge=1, le=3600)] = 20.0

    @model_validator(mode="after")
    def _options_for_rest(self) -> SlurmSettings:
        if self.rest is not None:
            options_of(self.options)
        return self


class ClusterSettings(Section):
    name: Annotated[str, Field(min_length=1, max_length=63), matching(re.compile(r"[\w.-]+"), "GPU-Cluster-01")] = (
        "local"
    )
    engine: Engine = "local"
    #: of a Slurm cluster
    slurm: SlurmSettings = SlurmSettings()
    #: how many GPUs there should be; the server warns at the start when it finds another number
    total_gpus: GpuCount | None = None


class AllocationSettings(Section):
    strategy: Literal["static", "dynamic", "hybrid"] = "hybrid"
    reserved_ratio: Fraction = 0.3
    placement: PlacementPolicy = "fragmentation"
    #: the label of nodes that tells their rack; empty: gangs go wherever there is room
    rack_label: Annotated[str, Field(max_length=253)] = DEFAULT_RACK_LABEL


class WeightSettings(Section):
    """What counts how much under `weighted`."""

    priority: Weight = 1.0
    size: Weight = 1.0
    runtime: Weight = 1.0
    #: never nothing: age is what keeps jobs from starving
    age: Annotated[float, Field(ge=0.001, le=1000)] = 1.0


class SchedulingSettings(Section):
    algorithm: OrderingPolicy = "fair-share"
    blocking: Annotated[Blocking, Field(strict=False)] = Blocking.BACKFILL
    max_queue_size: Annotated[int, Field(ge=1)] | None = 100_000
    default_priority: Annotated[int, Field(ge=0, le=100)] = 5
    score_settling_hours: Annotated[float, Field(gt=0, le=8760)] = 6.0
    weights: WeightSettings = Field(default_factory=WeightSettings)
    #: under `shortest`: GPU-hours of work that an hour of waiting makes up for
    ageing: Annotated[float, Field(ge=0.001, le=1_000_000)] = 4.0
    #: under `shortest`: the power of its GPUs with which a job's size counts; 1 is GPU-time
    size_power: Annotated[float, Field(ge=0, le=2)] = 1.0
    #: jobs of each line whose start is protected: nothing that passes them may delay it
    protected_starts: Annotated[int, Field(ge=1, le=100)] = 4
    #: what a job without a time limit is expected to run while nothing is known of its like
    unknown_run_hours: Annotated[float, Field(gt=0, le=8760)] = 24.0
    #: the smallest share of a GPU that a job may ask for: thousands of tiny jobs on one GPU help nobody
    smallest_share: Annotated[float, Field(ge=0.001, le=1)] = 0.01


class AlertThresholds(Section):
    temperature: Annotated[float, Field(ge=0, le=150)] = 85
    utilization: Annotated[float, Field(ge=0, le=100)] = 95
    memory: Annotated[float, Field(ge=0, le=100)] = 90


class HealthSettings(Section):
    """When a GPU is not trusted any more. It is too hot above `alert_thresholds.temperature`."""

    #: bad readings in a row that turn a suspicion into a failure
    confirm_readings: Annotated[int, Field(ge=1, le=1000)] = 3
    #: how long a GPU under a running job may do nothing before it is suspected, and twice that before it has failed;
    #: null: idleness says nothing about health
    idle_grace_minutes: Annotated[float, Field(gt=0, le=10_080)] | None = 30
    #: how long a suspected GPU must be without fault to be trusted again; doubled with each relapse within a day
    recover_minutes: Annotated[float, Field(gt=0, le=10_080)] = 5


class IdleReclaimSettings(Section):
    """What happens to a job that holds GPUs and does nothing. Off unless switched on."""

    enabled: bool = False
    #: how far back is looked
    window_minutes: Annotated[float, Field(gt=0, le=10_080)] = 30
    #: mean use of its GPUs below which a job is idle
    utilization: Fraction = 0.02
    #: from the warning to the stop
    warning_minutes: Annotated[float, Field(ge=0, le=10_080)] = 10
    #: what its owner gets by asking, once per warning
    extension_minutes: Annotated[float, Field(gt=0, le=10_080)] = 60
    #: workbenches are idle while their owner thinks
    include_workbenches: bool = False


class MonitoringSettings(Section):
    interval_seconds: Annotated[float, Field(ge=0.5, le=3600)] = 5
    #: readings as they were taken
    raw_retention_hours: Annotated[float, Field(gt=0, le=8760)] = 24
    #: their means per minute
    metrics_retention_days: Annotated[float, Field(gt=0, le=3650)] = 30
    #: their means per hour
    hourly_retention_days: Annotated[float, Field(gt=0, le=36_500)] = 365
    #: addresses of exporters on other nodes, or NODE=ADDRESS: corral's own or NVIDIA's DCGM exporter
    scrape: Annotated[Texts, each_readable_by(readable_target)] = ()
    alert_thresholds: AlertThresholds = AlertThresholds()
    health: HealthSettings = HealthSettings()
    idle_reclaim: IdleReclaimSettings = IdleReclaimSettings()


class KindQuotaSettings(Section):
    gpus: Annotated[float, Field(ge=0, le=MAX_COUNT)] | None = None
    cpus: Annotated[float, Field(ge=0, le=MAX_COUNT)] | None = None
    memory: Size | None = None


class VolumeQuotaSettings(Section):
    block: Size | None = None
    filesystem: Size | None = None
    local: Size | None = None
    object: Size | None = None


class DefaultQuotaSettings(Section):
    """What a new user may hold; what is left out has no limit. Those who are there already keep their quotas."""

    workbench: KindQuotaSettings = KindQuotaSettings()
    training: KindQuotaSettings = KindQuotaSettings()
    distributed: KindQuotaSettings = KindQuotaSettings()
    preset: KindQuotaSettings = KindQuotaSettings()
    volumes: VolumeQuotaSettings = VolumeQuotaSettings()


class PolicySettings(Section):
    max_gpus_per_user: GpuCount | None = None
    max_gpus_per_task: GpuCount | None = None
    max_total_gpus: GpuCount | None = None
    max_job_duration_hours: Annotated[float, Field(gt=0, le=87_600)] | None = None
    enable_preemption: bool = True
    #: how long an attempt runs at least before it may be preempted
    preemption_min_run_minutes: Annotated[float, Field(ge=0, le=10_080)] = 10
    #: in queues whose order preempts: by which part of the other's cost a job must be ahead
    preemption_margin: Annotated[float, Field(ge=0, lt=1)] = 0.0
    #: in queues whose order preempts: whether jobs that save may be moved, so that what is free lies together
    preemption_moves: bool = False
    #: GPUs that `corral allocate TASK` takes without --gpus, and the most that --gpus may ask for
    max_auto_gpus: GpuCount = 2
    max_manual_gpus: GpuCount = 6
    default_quota: DefaultQuotaSettings = DefaultQuotaSettings()


class FaultToleranceSettings(Section):
    enable_checkpointing: bool = True
    checkpoint_interval_minutes: Annotated[float, Field(gt=0, le=10_080)] = 10
    auto_retry_failed_jobs: bool = True
    max_retries: Annotated[int, Field(ge=0, le=100)] = 3


class ScalingSettings(Section):
    enabled: bool = True
    min_gpus: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    max_gpus: Annotated[int, Field(ge=1, le=1_000_000)] = 4
    scale_up_threshold: Fraction = 0.8
    scale_down_threshold: Fraction = 0.3
    #: over how long the use of a job's GPUs is measured
    window_minutes: Annotated[float, Field(gt=0, le=10_080)] = 5
    #: at least so long between two resizes of a job, unless others need its GPUs
    interval_minutes: Annotated[float, Field(ge=0, le=10_080)] = 10

    @model_validator(mode="after")
    def _in_order(self) -> ScalingSettings:
        if self.min_gpus > self.max_gpus:
            raise ValueError(f"min_gpus ({self.min_gpus}) must not be more than max_gpus ({self.max_gpus})")
        if self.scale_down_threshold >= self.scale_up_threshold:
            raise ValueError("scale_down_threshold must be below scale_up_threshold")
        return self


class ProgramTemplateSettings(Section):
    command: Annotated[str, Field(min_length=1), readable_by(shlex.split)] = "python train.py"
    args: Texts = ("--gpus", "{gpu_list}")
    env_vars: Annotated[dict[str, str], AfterValidator(environment)] = {"CUDA_VISIBLE_DEVICES": "{gpu_list}"}
    #: stands before a task's name in the name of its job
    task_prefix: Annotated[str, Field(max_length=32), matching(_JOB_NAME_PART, "task_")] = "task_"


class NotificationSettings(Section):
    channels: Texts = ()
    gpu_available_threshold: Annotated[int, Field(ge=0, le=1_000_000)] = 1


class StorageSettings(Section):
    database: Annotated[str, AfterValidator(database_place)] = "sqlite"
    metrics: Annotated[str, AfterValidator(metrics_place)] = "embedded"
    #: where volumes are kept; empty: in the home directory
    volumes: Annotated[str, AfterValidator(whole_path)] = ""
    #: where jobs get room on the node's own disk; empty: in the home directory
    scratch: Annotated[str, AfterValidator(whole_path)] = ""
    #: where nodes keep what they fetched of buckets; empty: in the home directory
    object_cache: Annotated[str, AfterValidator(whole_path)] = ""
    #: how much that may be; 0: 50 GiB, or a tenth of the disk where that is less
    object_cache_size: Annotated[int, BeforeValidator(parse_bytes), Field(ge=0)] = 0
    #: where the built-in dataset target keeps its files; empty: in the home directory
    datasets: Annotated[str, AfterValidator(whole_path)] = ""
    #: where nodes keep versions that jobs have mounted; empty: in the home directory
    dataset_cache: Annotated[str, AfterValidator(whole_path)] = ""
    #: how much those may take before unused ones go
    dataset_cache_size: Annotated[int, BeforeValidator(parse_bytes), Field(ge=0)] = 100 * 2**30


class ServerSettings(Section):
    host: Annotated[str, Field(min_length=1, max_length=253)] = "127.0.0.1"
    #: 0 takes any free port, which the server then prints
    port: Annotated[int, Field(ge=0, le=65_535)] = 8470
    #: let monitoring read /metrics without signing in
    metrics_open: bool = False
    #: label some metrics with the user; it tells who works how much to whoever may read /metrics
    metrics_per_user: bool = False
    session_hours: Annotated[float, Field(gt=0, le=8760)] = 12
    token_days: Annotated[float, Field(gt=0, le=3650)] = 90
    #: wrong passwords for a user from one address before pauses follow; strangers' addresses may fail four times as
    #: often over all users
    login_attempts: Annotated[int, Field(ge=1, le=1000)] = 5
    #: the longest pause between two attempts; the first one is a second, each further one twice as long
    login_window_seconds: Annotated[float, Field(ge=1, le=86_400)] = 60
    #: how long the head of a request may take to arrive, and a new connection may say nothing
    header_seconds: Annotated[float, Field(ge=1, le=600)] = 10
    #: a body brings at least 256 bytes a second, on average over so many seconds
    body_seconds: Annotated[float, Field(ge=1, le=600)] = 30
    #: how long a connection stays open between two requests
    idle_seconds: Annotated[int, Field(ge=1, le=3600)] = 5
    #: connections at a time of one address, which may be a whole institute's; trusted_proxies have no limit
    max_connections_per_address: Annotated[int, Field(ge=4, le=1_000_000)] = 512
    #: send the session cookie over HTTPS only; switch on behind a TLS proxy
    secure_cookie: bool = False
    #: the address that people type, when a reverse proxy stands in front; sign-in providers send them back to it
    public_url: Annotated[str, AfterValidator(public_address)] | None = None
    #: addresses of reverse proxies whose X-Forwarded-For is believed
    trusted_proxies: Texts = ()
    #: who signs licence tokens (Ed25519, 32 bytes in base64url), instead of the key that corral comes with
    licence_public_key: Annotated[str, readable_by(check_public_key)] | None = None
    log_format: Literal["plain", "json"] = "plain"
    log_level: Literal["debug", "info", "warning", "error"] = "info"


class WorkbenchSettings(Section):
    #: the name or address under which people reach the nodes by SSH; null: that of this server
    ssh_host: Annotated[str, Field(min_length=1, max_length=253), matching(_HOST_NAME, "gpu1.example.org")] | None = (
        None
    )
    #: where a workbench's SSH server listens
    ssh_ports: Annotated[str, readable_by(parse_ports)] = "40000-49999"
    #: the origin of each workbench's pages, with {workbench} in its host name or {port} as its port; null: a name below
    #: localhost for those who come to this machine itself, and a port of this server for others
    url: Annotated[str, AfterValidator(workbench_address)] | None = None
    #: the ports of this server at which pages of workbenches are found, one for each
    ports: Annotated[str, readable_by(parse_ports)] = "8471-8670"
    #: let operators open others' workbenches in a browser
    operators_open: bool = False

    @property
    def port_range(self) -> tuple[int, int]:
        return parse_ports(self.ssh_ports)

    @property
    def page_ports(self) -> range:
        first, last = parse_ports(self.ports)
        return range(first, last + 1)


class RunAsSettings(Section):
    """Whose account of this machine jobs get, when the server runs as root."""

    #: `{user}` is the user's own name: who has an account of that name gets it, system accounts excepted
    account: Annotated[str, Field(min_length=1, max_length=64)] = "{user}"
    #: users whose account has another name
    users: dict[str, str] = {}
    #: the account of users who have none, with share_default
    default: Annotated[str, Field(min_length=1, max_length=64)] | None = "nobody"
    #: let all users without an account share the default one: they can read and change each other's files and
    #: processes. false: their jobs are refused
    share_default: bool = False


class LocalSettings(Section):
    """The local engine: virtual GPUs replace the real ones; without real ones there are eight virtual ones."""

    virtual_gpus: Annotated[str, readable_by(parse_virtual_gpus)] | None = None
    virtual_nodes: Annotated[str, readable_by(parse_virtual_nodes)] | None = None
    log_limit_bytes: Annotated[Size, Field(ge=4096)] = 64 * 1024 * 1024
    run_as: RunAsSettings = RunAsSettings()
    #: when the server runs as root. true: jobs do too, unless run_as says otherwise; false: none ever does; null: those
    #: of the first operator do, whose server it is
    allow_root: bool | None = None
    #: setuid programs and file capabilities, such as sudo, give a job no privileges, where jobs have accounts
    no_new_privileges: bool = True
    #: processes and threads of one instance together; null: no limit
    max_processes: Annotated[int, Field(ge=16, le=4_194_304)] | None = 8192
    #: let NVIDIA's MPS hold jobs to their shares of a GPU; all jobs must then have the same account
    mps: bool = False

    @model_validator(mode="after")
    def _one_fleet(self) -> LocalSettings:
        if self.virtual_gpus and self.virtual_nodes:
            raise ValueError("give virtual_gpus (one node) or virtual_nodes (several), not both")
        return self
