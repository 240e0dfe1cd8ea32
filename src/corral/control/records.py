"""What is kept about things, beyond what the scheduler needs to decide.

Records are values like those of the core: a use case reads one, makes a changed copy and hands it to the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

from corral.core.alerts.model import AlertState, Severity
from corral.core.measuring import NOTHING_MEASURED, Measured
from corral.core.model import WHOLE, Allocation, EndReason, Job, JobKind, JobState, Quota

#: A word of a spec that marks the job of a task, with the task's name.
TASK_LABEL = "task"


@dataclass(frozen=True, kw_only=True, slots=True)
class JobSpec:
    """What a job runs. Set when it is created, never changed after."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str | None = None
    #: words of the request as the user gave them, kept for showing and cloning
    labels: Mapping[str, str] = field(default_factory=dict)
    #: the name of an image or its address; None means the environment of the node
    image: str | None = None
    #: a virtual environment or conda prefix on the node whose programs come first
    venv: str | None = None
    #: which services a workbench offers
    jupyter: bool = False
    ssh: bool = False
    #: a workbench that nobody has used for so long is stopped; None means never
    idle_stop_seconds: float | None = None
    #: how often its program shall save; None means as often as the installation says
    checkpoint_interval_seconds: float | None = None
    #: its place in an array of jobs, what the array is called and how many jobs it was submitted with
    array_index: int | None = None
    array_name: str = ""
    array_size: int = 0
    #: the preset that it was made from, and what was given for it
    preset: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class JobRecord:
    job: Job
    spec: JobSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptRecord:
    """One run of a job on one allocation, kept after its end."""

    id: str
    job_id: str
    number: int
    allocation: Allocation
    planned_at: float
    started_at: float | None = None
    ended_at: float | None = None
    end_reason: EndReason | None = None
    exit_code: int | None = None
    message: str = ""


class Role(StrEnum):
    OPERATOR = "operator"
    SCIENTIST = "scientist"


#: The group and the permission group that every installation has.
DEFAULT_GROUP = "default"
EVERYONE = "everyone"
#: Whose word a password is checked against; other users come from a sign-in provider.
LOCAL_PROVIDER = "local"


class Function(StrEnum):
    """What a permission group can allow. Operators may do everything."""

    TRAIN = "train"
    DISTRIBUTE = "distribute"
    WORKBENCH = "workbench"
    TASKS = "tasks"
    VOLUMES = "volumes"
    DATASETS = "datasets"
    IMAGES = "images"
    SEE_OTHERS_JOBS = "see-others-jobs"
    TOKENS = "tokens"


#: What `everyone` may do on a fresh install.
USUAL_FUNCTIONS = frozenset(Function) - {Function.SEE_OTHERS_JOBS}


class Scope(StrEnum):
    """How far a token reaches, within what its user may do."""

    #: look, change nothing
    READ = "read"
    #: look, and submit, start, stop and order jobs
    JOBS = "jobs"
    #: everything that the user may do
    FULL = "full"


@dataclass(frozen=True, kw_only=True, slots=True)
class UserRecord:
    name: str
    role: Role = Role.SCIENTIST
    #: None means: cannot sign in with a password
    password_hash: str | None = None
    #: the first password is for one use: it must be replaced at the first sign-in in a browser
    must_change_password: bool = False
    disabled: bool = False
    created_at: float = 0.0
    #: None means: in no group, and so without a pool
    group: str | None = DEFAULT_GROUP
    permission_group: str = EVERYONE
    display_name: str = ""
    email: str = ""
    #: who signs this user in, and by which unchanging id; "" for local users
    provider: str = LOCAL_PROVIDER
    subject: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolRecord:
    """A named set of GPUs of one model. Which GPUs it has is kept with the GPUs."""

    name: str
    description: str = ""
    created_at: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupRecord:
    """Users who share one pool. Who is in it is kept with the users."""

    name: str
    pool: str | None = None
    description: str = ""
    created_at: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PermissionGroupRecord:
    name: str
    functions: tuple[Function, ...] = ()
    description: str = ""
    created_at: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class FlavorRecord:
    """A named kind of hardware."""

    name: str
    #: GPU models that will do; empty means any, or work without GPUs
    models: tuple[str, ...] = ()
    #: labels that a node must have, sorted
    labels: tuple[tuple[str, str], ...] = ()
    description: str = ""
    created_at: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PackageRecord:
    """A size that a user picks, for every node of the job."""

    name: str
    gpus: int = 0
    gpu_milli: int = 0
    cpu_milli: int = 0
    memory_bytes: int = 0
    flavor: str | None = None
    #: only nodes with the label rdma=true
    rdma: bool = False
    #: the kinds it is offered to; empty means every kind
    kinds: tuple[JobKind, ...] = ()
    description: str = ""
    created_at: float = 0.0


class Visibility(StrEnum):
    PRIVATE = "private"
    #: seen by the users and groups that it is shared with
    SHARED = "shared"
    PUBLIC = "public"


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageRecord:
    """What jobs can run in, by name."""

    name: str
    address: str
    #: whose it is; "" for a public one that operators keep
    owner: str = ""
    visibility: Visibility = Visibility.PRIVATE
    shared_users: tuple[str, ...] = ()
    shared_groups: tuple[str, ...] = ()
    #: the login that it is pulled with
    credential: str | None = None
    description: str = ""
    created_at: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RegistryCredentialRecord:
    name: str
    owner: str
    registry: str
    username: str
    #: encrypted; never shown
    secret: str
    created_at: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PresetRecord:
    """A template that an operator has added; those that come with corral are files."""

    name: str
    #: as it was given, checked
    yaml: str
    created_at: float = 0.0
    created_by: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class SshKeyRecord:
    id: str
    user: str
    name: str
    #: one line in OpenSSH's format, without a comment
    public_key: str
    #: SHA256:…
    fingerprint: str
    created_at: float = 0.0


class ProviderKind(StrEnum):
    GITHUB = "github"
    GITLAB = "gitlab"
    OIDC = "oidc"


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderRecord:
    """Somebody who signs users in, configured by an operator."""

    id: str
    kind: ProviderKind
    #: what the button says
    title: str = ""
    #: the address of the provider
    issuer: str = ""
    client_id: str = ""
    #: encrypted; never shown
    client_secret: str = ""
    enabled: bool = False
    #: logins or e-mail addresses that may come in without being on-boarded by hand; "*" lets everybody in
    allow: tuple[str, ...] = ()
    #: where people who come in by the allow-list are put; None means: in no group
    group: str | None = DEFAULT_GROUP
    #: the GitHub organisation or GitLab group whose members can be listed
    organisation: str = ""
    #: for listing them; encrypted, never shown
    api_token: str = ""
    created_at: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class IdentityRecord:
    """Somebody whom a provider knows, on-boarded or not."""

    provider: str
    subject: str
    login: str
    name: str = ""
    email: str = ""
    seen_at: float = 0.0
    #: the corral user, once on-boarded
    user: str | None = None


class CredentialKind(StrEnum):
    TOKEN = "token"
    SESSION = "session"


@dataclass(frozen=True, kw_only=True, slots=True)
class CredentialRecord:
    """A bearer token or a browser session. Only a hash of the secret is kept."""

    id: str
    kind: CredentialKind
    user: str
    name: str = ""
    secret_hash: str
    #: how far a token reaches; sessions reach everywhere
    scopes: tuple[Scope, ...] = (Scope.FULL,)
    #: the value that a browser must send back in a header; only sessions have one
    csrf: str = ""
    created_at: float = 0.0
    expires_at: float | None = None
    last_used_at: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class QuotaRecord:
    user: str
    kind: JobKind
    quota: Quota


class VolumeType(StrEnum):
    BLOCK = "block"
    FILESYSTEM = "filesystem"
    LOCAL = "local"
    OBJECT = "object"


@dataclass(frozen=True, kw_only=True, slots=True)
class VolumeQuotaRecord:
    """The most bytes that one user's volumes of one type may have; None means no limit."""

    user: str
    type: VolumeType
    max_bytes: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ScorePoint:
    """A user's score when an allocation began or ended; between two points it follows from the first."""

    user: str
    model: str
    at: float
    value: float
    usage: float


@dataclass(frozen=True, kw_only=True, slots=True)
class EventRecord:
    """One line of the audit log: who did what to which thing, when and from where."""

    #: given by the store, growing without repetition
    id: int = 0
    at: float
    #: a user's name, or "corral" for what the platform did by itself
    actor: str
    #: noun.verb, such as "job.submitted"
    action: str
    #: the id of the thing
    subject: str
    #: the owner of the thing, for deciding who may see the event; "" means operators only or everyone by action
    owner: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)
    #: the address that the request came from
    source: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class UsageRecord:
    """What one attempt held and used. Kept when its job is deleted: reports are made from it."""

    attempt_id: str
    job_id: str
    job_name: str
    user: str
    #: of its user when it was planned
    group: str | None
    kind: JobKind
    queue: str
    pool: str
    #: "" without GPUs
    model: str
    nodes: int
    gpu_milli: int
    gpu_ids: tuple[str, ...] = ()
    #: since when the job waited for this attempt
    queued_at: float
    planned_at: float
    started_at: float | None = None
    ended_at: float | None = None
    end_reason: EndReason | None = None
    #: of the job after this attempt; None while it lasts
    outcome: JobState | None = None
    measured: Measured = NOTHING_MEASURED

    @property
    def wait_seconds(self) -> float:
        return max(0.0, self.planned_at - self.queued_at)

    def gpu_seconds(self, since: float, until: float) -> float:
        """GPU time that it held within a span."""
        begin, end = max(self.planned_at, since), min(until if self.ended_at is None else self.ended_at, until)
        return max(0.0, end - begin) * self.gpu_milli / WHOLE


@dataclass(frozen=True, kw_only=True, slots=True)
class UsageCourse:
    """How one attempt goes on: the part of its usage that changes after it was planned."""

    attempt_id: str
    started_at: float | None = None
    ended_at: float | None = None
    end_reason: EndReason | None = None
    outcome: JobState | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class IdleWarning:
    """A job that holds GPUs and does nothing has been told so."""

    job_id: str
    attempt: int
    warned_at: float
    #: when something is done about it
    deadline: float
    #: its owner has asked for more time, which can be done once
    extended_at: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelRecord:
    """Where news go."""

    name: str
    #: encrypted; never shown
    url: str
    #: the address without its secrets
    shown: str
    enabled: bool = True
    #: alerts below this severity are not sent here
    min_severity: Severity = Severity.INFO
    description: str = ""
    #: it came from the configuration file and follows it
    from_config: bool = False
    created_at: float = 0.0


class DeliveryState(StrEnum):
    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliveryRecord:
    """One notice to one channel."""

    id: int = 0
    channel: str
    #: fired, resolved, test, report, idle
    kind: str
    title: str
    body: str
    #: the alerts that it tells of
    alert_ids: tuple[int, ...] = ()
    #: the rules of those alerts
    rules: tuple[str, ...] = ()
    #: files that go with it
    attachments: tuple[str, ...] = ()
    state: DeliveryState = DeliveryState.WAITING
    created_at: float = 0.0
    attempts: int = 0
    next_try_at: float = 0.0
    sent_at: float | None = None
    error: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertFilter:
    states: tuple[AlertState, ...] = ()
    severities: tuple[Severity, ...] = ()
    rule: str | None = None
    subject: str | None = None
    owner: str | None = None
    since: float | None = None


class ReportPeriod(StrEnum):
    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"
    #: a span that somebody asked for
    CUSTOM = "custom"


class ReportState(StrEnum):
    WORKING = "working"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportRecord:
    id: str
    title: str
    period: ReportPeriod
    since: float
    until: float
    created_at: float
    created_by: str
    #: the schedule that asked for it; "" for a person
    schedule: str = ""
    state: ReportState = ReportState.WORKING
    error: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportSchedule:
    name: str
    period: ReportPeriod
    #: of the day, in UTC
    hour: int = 6
    #: of the week, Monday is 0; only of weekly ones
    weekday: int = 0
    channels: tuple[str, ...] = ()
    enabled: bool = True
    created_at: float = 0.0
    #: the end of the last span that was reported
    last_until: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CycleRecord:
    """One entry of the scheduler's journal: the inputs as changes since the entry before, and the plan."""

    id: int = 0
    at: float
    #: True when `changes` is a whole snapshot from which later entries start
    is_base: bool
    #: digest of the snapshot that the plan was made from
    digest: str
    changes: bytes
    plan: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class JobFilter:
    """Which jobs a list shows; an empty field lets every job through."""

    states: tuple[JobState, ...] = ()
    kinds: tuple[JobKind, ...] = ()
    user: str | None = None
    queue: str | None = None
    name_contains: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class EventFilter:
    actor: str | None = None
    action: str | None = None
    subject: str | None = None
    owner: str | None = None
    since: float | None = None
    until: float | None = None
    #: somewhere in the actor, the action, the subject or the detail, in any case
    text: str | None = None


Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True, slots=True)
class Page(Generic[Item]):
    items: tuple[Item, ...]
    #: where the next page begins; None on the last page
    next_cursor: str | None = None
