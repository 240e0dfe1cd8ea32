"""The sections of `corral.yaml`: their keys, defaults and ranges.

Decides what a valid configuration is. `settings` decides where values come from and which source wins.
The defaults set no limits: a single user on one machine needs no configuration at all.
"""

from __future__ import annotations

import re
import shlex
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from corral.control.system.licence import check_public_key
from corral.core.model import Blocking
from corral.core.quantities import MAX_COUNT, parse_bytes
from corral.core.scheduling.ordering import POLICIES as ORDERING_POLICIES
from corral.core.scheduling.placement import POLICIES as PLACEMENT_POLICIES
from corral.core.snapshot.installation import DEFAULT_RACK_LABEL
from corral.engines.local.virtual import parse_virtual_gpus, parse_virtual_nodes
from corral.server.schemas.base import environment
from corral.server.settings.monitoring_sections import (
    CheckSettings,
    HealthSettings,
    IdleReclaimSettings,
    PaceSettings,
)
from corral.server.settings.section_base import GpuCount, Section, Size, Texts
from corral.server.settings.section_rules import (
    database_place,
    each_readable_by,
    matching,
    metrics_place,
    one_of,
    parse_ports,
    public_address,
    readable_by,
    warning_way,
    whole_path,
    workbench_address,
)
from corral.telemetry.scraper import readable_target

_JOB_NAME_PART = re.compile(r"[A-Za-z0-9_-]*")
_REGISTRY_PLACE = re.compile(r"(http://)?[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?")
_HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:-]*")


OrderingPolicy = Annotated[str, one_of(ORDERING_POLICIES, "ordering policy")]
PlacementPolicy = Annotated[str, one_of(PLACEMENT_POLICIES, "placement policy")]
Weight = Annotated[float, Field(ge=0, le=1000)]
Fraction = Annotated[float, Field(ge=0, le=1)]


class AllocationSettings(Section):
    #: how GPUs are allocated: `static`, only to the owners of reservations; `dynamic`, on demand; `hybrid`,
    #: both
    strategy: Literal["static", "dynamic", "hybrid"] = "hybrid"
    #: the part of each pool that permanent reservations may take together under `hybrid`
    reserved_ratio: Fraction = 0.3
    #: whether the share `reserved_ratio` is reserved without an operator under `hybrid`; null: if the configuration
    #: sets the strategy
    reserve_share: bool | None = None
    #: users and groups (`group:NAME`) for which it is reserved
    reserved_for: Texts = ()
    #: which node a job gets; the first setting of the queue `default`
    placement: PlacementPolicy = "fragmentation"
    #: the node label with the rack; empty: gangs are placed without regard to racks
    rack_label: Annotated[str, Field(max_length=253)] = DEFAULT_RACK_LABEL


class WeightSettings(Section):
    """Weights of the policy `weighted`."""

    #: cost of each level of priority
    priority: Weight = 1.0
    #: cost of each doubling of the GPUs
    size: Weight = 1.0
    #: cost of each doubling of the expected run time
    runtime: Weight = 1.0
    #: above 0: the weight of the waiting time prevents starvation
    age: Annotated[float, Field(ge=0.001, le=1000)] = 1.0


class SchedulingSettings(Section):
    #: the order of jobs; the first setting of the queue `default`
    algorithm: OrderingPolicy = "fair-share"
    #: whether a later job may pass a waiting one without delaying it, or all later jobs of the same GPU model
    #: wait; for queues that are created without a choice
    blocking: Annotated[Blocking, Field(strict=False)] = Blocking.BACKFILL
    #: every user sees the names of all waiting jobs in the queue, not only of the user's own
    show_queued_names: bool = False
    #: jobs that may wait in all queues together
    max_queue_size: Annotated[int, Field(ge=1)] | None = 100_000
    #: priority of jobs that set none; smaller goes first
    default_priority: Annotated[int, Field(ge=0, le=100)] = 5
    #: the time constant of the fair-share score
    score_settling_hours: Annotated[float, Field(gt=0, le=8760)] = 6.0
    weights: WeightSettings = Field(default_factory=WeightSettings)
    #: under `shortest`: GPU-hours of work that one hour of waiting compensates
    ageing: Annotated[float, Field(ge=0.001, le=1_000_000)] = 0.01
    #: under `shortest`: exponent of the number of GPUs in a job's cost; 1 is GPU-time
    size_power: Annotated[float, Field(ge=0, le=2)] = 1.0
    #: under `shortest`, in queues whose order preempts: the margin, as a share of the victim's cost, by which a job
    #: must be ahead of a victim without a time limit
    unknown_margin: Annotated[float, Field(ge=0, lt=1)] = 0.8
    #: jobs of each waiting line with a planned start, which backfilled jobs must not delay
    protected_starts: Annotated[int, Field(ge=1, le=100)] = 1
    #: waiting time from which on free GPUs are held for a planned start that rests on predictions and not on time
    #: limits
    hold_after_hours: Annotated[float, Field(ge=0, le=8760)] = 168.0
    #: predicted run time of a job without a time limit and without similar completed jobs
    unknown_run_hours: Annotated[float, Field(gt=0, le=8760)] = 1.0
    #: smallest share of a GPU that a job may request, so that one GPU is not split into thousands of shares
    smallest_share: Annotated[float, Field(ge=0.001, le=1)] = 0.01


class AlertThresholds(Section):
    """Readings that raise alerts. Utilisation, memory and power do so if the configuration sets them."""

    #: °C above which a GPU is suspect and an alert fires
    temperature: Annotated[float, Field(ge=0, le=150)] = 85
    #: percent of use above which an alert fires, if the configuration sets it
    utilization: Annotated[float, Field(ge=0, le=100)] = 95
    #: percent of memory above which an alert fires, if the configuration sets it
    memory: Annotated[float, Field(ge=0, le=100)] = 90
    #: watts above which an alert fires
    power_watts: Annotated[float, Field(gt=0, le=100_000)] | None = None
    #: how long a threshold of the configuration must be crossed
    duration_seconds: Annotated[float, Field(ge=0, le=2_592_000)] = 60


class MonitoringSettings(Section):
    #: between two readings of the GPUs
    interval_seconds: Annotated[float, Field(ge=0.5, le=3600)] = 5
    #: retention of raw readings
    raw_retention_hours: Annotated[float, Field(gt=0, le=8760)] = 24
    #: retention of means per minute
    metrics_retention_days: Annotated[float, Field(gt=0, le=3650)] = 30
    #: retention of means per hour
    hourly_retention_days: Annotated[float, Field(gt=0, le=36_500)] = 365
    #: addresses of exporters on other nodes, or NODE=ADDRESS: corral's own or NVIDIA's DCGM exporter
    scrape: Annotated[Texts, each_readable_by(readable_target)] = ()
    alert_thresholds: AlertThresholds = AlertThresholds()
    health: HealthSettings = HealthSettings()
    idle_reclaim: IdleReclaimSettings = IdleReclaimSettings()
    pace: PaceSettings = PaceSettings()
    checks: CheckSettings = CheckSettings()


class KindQuotaSettings(Section):
    #: GPUs of a new user's jobs of this kind
    gpus: Annotated[float, Field(ge=0, le=MAX_COUNT)] | None = None
    #: CPUs of a new user's jobs of this kind
    cpus: Annotated[float, Field(ge=0, le=MAX_COUNT)] | None = None
    #: memory of a new user's jobs of this kind
    memory: Size | None = None


class VolumeQuotaSettings(Section):
    #: sizes of a new user's block volumes, together
    block: Size | None = None
    #: sizes of a new user's filesystem volumes, together
    filesystem: Size | None = None
    #: sizes of a new user's local volumes, together
    local: Size | None = None
    #: sizes of a new user's object volumes, together
    object: Size | None = None


class DefaultQuotaSettings(Section):
    """Quota of new users; limits that are left out are none. Existing users keep their quotas."""

    workbench: KindQuotaSettings = KindQuotaSettings()
    training: KindQuotaSettings = KindQuotaSettings()
    distributed: KindQuotaSettings = KindQuotaSettings()
    preset: KindQuotaSettings = KindQuotaSettings()
    volumes: VolumeQuotaSettings = VolumeQuotaSettings()


class PolicySettings(Section):
    #: GPUs that one user may hold
    max_gpus_per_user: GpuCount | None = None
    #: GPUs that one job may request
    max_gpus_per_task: GpuCount | None = None
    #: GPUs that all jobs may hold together
    max_total_gpus: GpuCount | None = None
    #: longest run time; a job beyond it ends as `timed_out`
    max_job_duration_hours: Annotated[float, Field(gt=0, le=87_600)] | None = None
    #: whether a running job may be sent back to its queue for one that is before it
    enable_preemption: bool = True
    #: minimum run time of an attempt before it may be preempted
    preemption_min_run_minutes: Annotated[float, Field(ge=0, le=10_080)] = 10
    #: in queues whose order preempts: the margin, as a share of the victim's cost, by which a job must be ahead
    preemption_margin: Annotated[float, Field(ge=0, lt=1)] = 0.0
    #: in queues whose order preempts: whether jobs with checkpoints may be moved to defragment free GPUs
    preemption_moves: bool = False
    #: the time of day at which jobs that have saved are moved so that whole nodes are free; null: only on request
    defragment_at: Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")] | None = None
    #: waiting time after which a gang takes back nodes from younger jobs that passed it and write checkpoints;
    #: null: never
    gang_patience_hours: Annotated[float, Field(gt=0, le=8760)] | None = 4.0
    #: GPUs that `corral allocate TASK` takes without --gpus, and the maximum of --gpus
    max_auto_gpus: GpuCount = 2
    #: GPUs of a user's tasks with `--gpus N`, together
    max_manual_gpus: GpuCount = 6
    default_quota: DefaultQuotaSettings = DefaultQuotaSettings()


class FaultToleranceSettings(Section):
    #: jobs get the interval for saving, the checkpoint to resume from and the helper; off: only a checkpoint
    #: directory
    enable_checkpointing: bool = True
    #: the interval for saving of jobs without `--checkpoint-interval`
    checkpoint_interval_minutes: Annotated[float, Field(gt=0, le=10_080)] = 10
    #: retry failures that are not the program's own; if the configuration sets it, failures of programs, too
    auto_retry_failed_jobs: bool = True
    #: retries of jobs that set none
    max_retries: Annotated[int, Field(ge=0, le=100)] = 3


class ScalingSettings(Section):
    #: elastic jobs may be submitted and are resized
    enabled: bool = True
    #: least GPUs of elastic jobs, and the minimum of jobs that set none
    min_gpus: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    #: most GPUs of elastic jobs, and the maximum of jobs that set none
    max_gpus: Annotated[int, Field(ge=1, le=1_000_000)] = 4
    #: use of its GPUs at which a job may grow
    scale_up_threshold: Fraction = 0.8
    #: use of its GPUs below which a job releases GPUs
    scale_down_threshold: Fraction = 0.3
    #: period over which the utilisation of a job's GPUs is measured
    window_minutes: Annotated[float, Field(gt=0, le=10_080)] = 5
    #: minimum time between two resizes of a job, unless other jobs need its GPUs
    interval_minutes: Annotated[float, Field(ge=0, le=10_080)] = 10

    @model_validator(mode="after")
    def _in_order(self) -> ScalingSettings:
        if self.min_gpus > self.max_gpus:
            raise ValueError(f"min_gpus ({self.min_gpus}) must not be more than max_gpus ({self.max_gpus})")
        if self.scale_down_threshold >= self.scale_up_threshold:
            raise ValueError("scale_down_threshold must be below scale_up_threshold")
        return self


class ProgramTemplateSettings(Section):
    #: the program of `corral start-program`
    command: Annotated[str, Field(min_length=1), readable_by(shlex.split)] = "python train.py"
    #: its arguments; `{gpu_list}` becomes the GPU indexes, `{gpu_count}` their number
    args: Texts = ("--gpus", "{gpu_list}")
    #: its environment variables, with the same placeholders
    env_vars: Annotated[dict[str, str], AfterValidator(environment)] = Field(
        default_factory=lambda: {"CUDA_VISIBLE_DEVICES": "{gpu_list}"}
    )
    #: how a program is warned before it is started again with other GPUs, or stopped: restart: SIGTERM; file: a file
    #: named by CORRAL_NOTICE_FILE; SIGUSR1 and the like: this signal
    notify: Annotated[str, readable_by(warning_way)] = "restart"
    #: programs that never wrote a checkpoint may be restarted for a resize
    restart_unsaved: bool = False
    #: prefix of the names of tasks' jobs
    task_prefix: Annotated[str, Field(max_length=32), matching(_JOB_NAME_PART, "task_")] = "task_"


class NotificationSettings(Section):
    #: Apprise URLs of channels that get all notices: config-1, config-2, …
    channels: Texts = ()
    #: number of free GPUs of a pool that causes a notice; only when it is set
    gpu_available_threshold: Annotated[int, Field(ge=0, le=1_000_000)] = 1


class StorageSettings(Section):
    #: `sqlite` is a file in `CORRAL_HOME`; also `sqlite:///FILE` and `postgresql://…`
    database: Annotated[str, AfterValidator(database_place)] = "sqlite"
    #: where readings are kept: `embedded`, or the URL of a Prometheus
    metrics: Annotated[str, AfterValidator(metrics_place)] = "embedded"
    #: directory of volumes; empty: in the home directory
    volumes: Annotated[str, AfterValidator(whole_path)] = ""
    #: directory of jobs' local disk space on the node; empty: in the home directory
    scratch: Annotated[str, AfterValidator(whole_path)] = ""
    #: cache of buckets on the nodes; empty: in the home directory
    object_cache: Annotated[str, AfterValidator(whole_path)] = ""
    #: size of that cache; 0: 50 GiB, or a tenth of the disk if that is less
    object_cache_size: Annotated[int, BeforeValidator(parse_bytes), Field(ge=0)] = 0
    #: directory of the built-in dataset target; empty: in the home directory
    datasets: Annotated[str, AfterValidator(whole_path)] = ""
    #: cache of mounted dataset versions on the nodes; empty: in the home directory
    dataset_cache: Annotated[str, AfterValidator(whole_path)] = ""
    #: size of that cache; unused versions are removed beyond it
    dataset_cache_size: Annotated[int, BeforeValidator(parse_bytes), Field(ge=0)] = 100 * 2**30


class ServerSettings(Section):
    #: the address at which the server listens
    host: Annotated[str, Field(min_length=1, max_length=253)] = "127.0.0.1"
    #: 0: any free port, which the server prints
    port: Annotated[int, Field(ge=0, le=65_535)] = 8470
    #: files of a certificate (with its chain) and of its key: the server speaks HTTPS, and reads changed files again
    tls_certificate: Annotated[str, AfterValidator(whole_path)] = ""
    #: the key of `tls_certificate`
    tls_key: Annotated[str, AfterValidator(whole_path)] = ""
    #: /metrics can be read without signing in
    metrics_open: bool = False
    #: some metrics have a label with the user; every reader of /metrics then sees each user's usage
    metrics_per_user: bool = False
    #: /metrics has the series of every GPU; without them a large fleet is read in a fraction of the time
    metrics_per_gpu: bool = True
    #: how long a browser stays signed in
    session_hours: Annotated[float, Field(gt=0, le=8760)] = 12
    #: lifetime of a token that sets none
    token_days: Annotated[float, Field(gt=0, le=3650)] = 90
    #: wrong passwords for a user from one address before pauses follow; an address from which the user never
    #: signed in may fail four times as often over all users
    login_attempts: Annotated[int, Field(ge=1, le=1000)] = 5
    #: longest pause between two attempts; the first pause is one second, each further one is twice as long
    login_window_seconds: Annotated[float, Field(ge=1, le=86_400)] = 60
    #: time within which the header of a request must arrive, also the first one of a new connection
    header_seconds: Annotated[float, Field(ge=1, le=600)] = 10
    #: a body must arrive with at least 256 bytes per second, on average over so many seconds
    body_seconds: Annotated[float, Field(ge=1, le=600)] = 30
    #: time that a connection stays open between two requests
    idle_seconds: Annotated[int, Field(ge=1, le=3600)] = 5
    #: simultaneous connections of one address, which may be that of a whole institute; trusted_proxies have no limit
    max_connections_per_address: Annotated[int, Field(ge=4, le=1_000_000)] = 512
    #: send the session cookie over HTTPS only; switch on behind a TLS proxy
    secure_cookie: bool = False
    #: the server's public address, if it is behind a reverse proxy; sign-in providers redirect to it
    public_url: Annotated[str, AfterValidator(public_address)] | None = None
    #: addresses of reverse proxies whose X-Forwarded-For is trusted
    trusted_proxies: Texts = ()
    #: public key for licence tokens (Ed25519, 32 bytes in base64url), instead of the built-in one
    licence_public_key: Annotated[str, readable_by(check_public_key)] | None = None
    #: file of the server's own log, besides standard error; a relative path is in the home directory; null: none
    log_file: Annotated[str, Field(min_length=1)] | None = "corral.log"
    #: size at which that file is rotated, and how many older ones are kept
    log_file_size: Annotated[int, BeforeValidator(parse_bytes), Field(ge=4096)] = 10 * 2**20
    #: older log files that are kept
    log_file_count: Annotated[int, Field(ge=1, le=1000)] = 5
    #: the form of the server's own log
    log_format: Literal["plain", "json"] = "plain"
    #: the least severity of the server's own log
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @model_validator(mode="after")
    def _both_tls_files(self) -> ServerSettings:
        if bool(self.tls_certificate) != bool(self.tls_key):
            raise ValueError("give tls_certificate and tls_key, or neither")
        return self

    @property
    def has_tls(self) -> bool:
        return bool(self.tls_certificate)


class ImageSettings(Section):
    #: registries whose images the server lists for users who have a login there: a host, with a port if it has one;
    #: http:// before it for a registry without TLS
    registries: Annotated[
        list[Annotated[str, matching(_REGISTRY_PLACE, "gitlab.example.org:5050")]], Field(max_length=100)
    ] = Field(default_factory=list)


class WorkbenchSettings(Section):
    #: the host name or address for SSH to the nodes; null: that of this server
    ssh_host: Annotated[str, Field(min_length=1, max_length=253), matching(_HOST_NAME, "gpu1.example.org")] | None = (
        None
    )
    #: ports for the SSH servers of workbenches
    ssh_ports: Annotated[str, readable_by(parse_ports)] = "40000-49999"
    #: the origin of each workbench's pages, with {workbench} in its host name or {port} as its port; null: a name below
    #: localhost for browsers on this machine, and a port of this server for others
    url: Annotated[str, AfterValidator(workbench_address)] | None = None
    #: ports of this server for the pages of workbenches, one for each workbench
    ports: Annotated[str, readable_by(parse_ports)] = "8471-8670"
    #: operators may open other users' workbenches in a browser
    operators_open: bool = False

    @property
    def port_range(self) -> tuple[int, int]:
        return parse_ports(self.ssh_ports)

    @property
    def page_ports(self) -> range:
        first, last = parse_ports(self.ports)
        return range(first, last + 1)


class RunAsSettings(Section):
    """The operating system accounts of jobs, if the server runs as root."""

    #: `{user}` is the user's name: a user with an account of that name gets it, except for system accounts
    account: Annotated[str, Field(min_length=1, max_length=64)] = "{user}"
    #: accounts by user, for users whose account has another name
    users: dict[str, str] = Field(default_factory=dict)
    #: the account of users without an account, with share_default
    default: Annotated[str, Field(min_length=1, max_length=64)] | None = "nobody"
    #: all users without an account share the default one: they can read and change each other's files and processes.
    #: false: their jobs are refused
    share_default: bool = False


class LocalSettings(Section):
    """The local engine: virtual GPUs replace the real ones; a machine without GPUs gets eight virtual ones."""

    #: virtual GPUs instead of the real ones, such as `8xA100-80G`
    virtual_gpus: Annotated[str, readable_by(parse_virtual_gpus)] | None = None
    #: several virtual nodes, such as `11x4xA10`; not together with `virtual_gpus`
    virtual_nodes: Annotated[str, readable_by(parse_virtual_nodes)] | None = None
    #: size of one job process's log, before the oldest part is dropped
    log_limit_bytes: Annotated[Size, Field(ge=4096)] = 64 * 1024 * 1024
    run_as: RunAsSettings = RunAsSettings()
    #: if the server runs as root: true: jobs run as root, too, unless run_as sets an account; false: no job does;
    #: null: only jobs of the first operator, who owns the server, run as root
    allow_root: bool | None = None
    #: setuid programs and file capabilities, such as sudo, give a job no privileges, if jobs have accounts
    no_new_privileges: bool = True
    #: limit on processes and threads of one instance together; null: no limit
    max_processes: Annotated[int, Field(ge=16, le=4_194_304)] | None = 8192
    #: NVIDIA's MPS limits jobs to their shares of a GPU; all jobs must then have the same account
    mps: bool = False

    @model_validator(mode="after")
    def _one_fleet(self) -> LocalSettings:
        if self.virtual_gpus and self.virtual_nodes:
            raise ValueError("give virtual_gpus (one node) or virtual_nodes (several), not both")
        return self
