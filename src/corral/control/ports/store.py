"""Where everything is kept, as the control layer needs it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from corral.control.records import (
    AlertFilter,
    AttemptRecord,
    ChannelRecord,
    CredentialKind,
    CredentialRecord,
    CycleRecord,
    DeliveryRecord,
    EventFilter,
    EventRecord,
    FlavorRecord,
    GroupRecord,
    IdentityRecord,
    IdleWarning,
    ImageRecord,
    JobFilter,
    JobRecord,
    PackageRecord,
    Page,
    PermissionGroupRecord,
    PoolRecord,
    PresetRecord,
    ProviderRecord,
    QuotaRecord,
    RegistryCredentialRecord,
    ReportRecord,
    ReportSchedule,
    ScorePoint,
    SshKeyRecord,
    UsageCourse,
    UsageRecord,
    UserRecord,
    VolumeQuotaRecord,
)
from corral.core.alerts.model import Alert, AlertRule, Silence
from corral.core.health.model import Condition
from corral.core.measuring import Measured
from corral.core.model import Gpu, Job, Node, Queue, Score


class StoreConflict(Exception):
    """Somebody changed the same row first. Nothing was written: load again and decide anew."""


class NameTaken(Exception):
    """A thing with this name exists already. Nothing was written."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"{kind} name {name!r} is taken")
        self.kind = kind
        self.name = name


class StoreSuperseded(Exception):
    """Another server has taken over this store. Nothing was written, and this server must stop."""


class JobTable(Protocol):
    def next_ids(self, count: int) -> list[str]:
        """Ids that nobody else will ever get, growing: j-1, j-2, …"""

    def add(self, records: Sequence[JobRecord]) -> None:
        """Raises NameTaken if one of these names is taken by the same user."""

    def save(self, jobs: Sequence[Job]) -> None:
        """Write each job if its stored version is `version - 1` (the caller has counted up), in one statement
        for all of them. Raises StoreConflict otherwise, and then none was written."""

    def get(self, job_id: str) -> JobRecord | None: ...

    def find(self, user: str | None, name: str) -> list[JobRecord]:
        """Jobs of that exact name, of one user or of all, newest first."""

    def names_taken(self, user: str, names: Sequence[str]) -> set[str]:
        """Which of these names the user's jobs have already."""

    def delete(self, job_ids: Sequence[str]) -> None:
        """With their attempts. Unknown ids are left alone."""

    def live(self) -> list[Job]:
        """Every job that is not ended, in the order of their ids."""

    def page(self, where: JobFilter, *, sort: str, cursor: str | None, limit: int) -> Page[JobRecord]:
        """Keyset paging. `sort` is one of id, name, priority, created_at, with "-" in front for descending.
        Raises ValueError with a readable message for a bad cursor or sort."""

    def counts(self) -> dict[str, int]:
        """Number of jobs per state."""


class AttemptTable(Protocol):
    def add(self, attempts: Sequence[AttemptRecord]) -> None: ...

    def save(self, attempts: Sequence[AttemptRecord]) -> None:
        """What is known of their course and end; the allocation is never changed."""

    def get(self, attempt_ids: Collection[str]) -> dict[str, AttemptRecord]: ...

    def of_job(self, job_id: str) -> list[AttemptRecord]:
        """Oldest first."""

    def all_allocations(self) -> Iterable[AttemptRecord]:
        """Every attempt ever made, in the order of planning: the audit of who held which GPU when."""


class FleetTable(Protocol):
    """Queues, and what operators or health checks decided about nodes and GPUs."""

    def nodes(self) -> list[Node]: ...

    def save_nodes(self, nodes: Sequence[Node]) -> None:
        """Insert or replace, with their GPUs (state, labels, health and pool included)."""

    def delete_nodes(self, node_ids: Sequence[str]) -> None: ...

    def save_gpu(self, gpu: Gpu) -> None:
        """Health or pool of a known GPU changed."""

    def pools(self) -> list[PoolRecord]:
        """Sorted by name; `default` is always there."""

    def save_pool(self, pool: PoolRecord) -> None:
        """Insert or replace by name."""

    def delete_pool(self, name: str) -> None: ...

    def save_gpus(self, gpus: Sequence[Gpu]) -> None:
        """Health or pool of known GPUs changed."""

    def queues(self) -> list[Queue]: ...

    def save_queue(self, queue: Queue) -> None:
        """Insert or replace by name."""

    def delete_queue(self, name: str) -> None: ...


class ScoreTable(Protocol):
    def all(self) -> dict[tuple[str, str], Score]:
        """By user and GPU model."""

    def save(self, scores: Mapping[tuple[str, str], Score]) -> None:
        """Insert or replace, and remember the point for the history."""

    def history(self, user: str, model: str, since: float) -> list[ScorePoint]:
        """The points from that time on, oldest first, and the last one before it."""

    def prune(self, before: float) -> int:
        """Drop points of the history that are older, but each user's and model's last one before."""


class PeopleTable(Protocol):
    def users(self) -> list[UserRecord]: ...

    def user(self, name: str) -> UserRecord | None: ...

    def add_user(self, user: UserRecord) -> None:
        """Raises NameTaken."""

    def save_user(self, user: UserRecord) -> None: ...

    def delete_user(self, name: str) -> None:
        """With credentials and quotas."""

    def quotas(self) -> list[QuotaRecord]: ...

    def save_quota(self, quota: QuotaRecord) -> None:
        """Insert or replace; a quota without any limit removes the row."""

    def volume_quotas(self) -> list[VolumeQuotaRecord]: ...

    def save_volume_quota(self, quota: VolumeQuotaRecord) -> None:
        """Insert or replace; no limit removes the row."""

    def groups(self) -> list[GroupRecord]:
        """Sorted by name; `default` is always there."""

    def save_group(self, group: GroupRecord) -> None:
        """Insert or replace by name."""

    def delete_group(self, name: str) -> None: ...

    def permission_groups(self) -> list[PermissionGroupRecord]:
        """Sorted by name; `everyone` is always there, with every function on a fresh install but see-others-jobs."""

    def save_permission_group(self, group: PermissionGroupRecord) -> None:
        """Insert or replace by name."""

    def delete_permission_group(self, name: str) -> None: ...


class CatalogTable(Protocol):
    """What users pick from. Sorted by name; `save_` inserts or replaces by name."""

    def flavors(self) -> list[FlavorRecord]: ...

    def save_flavor(self, flavor: FlavorRecord) -> None: ...

    def delete_flavors(self, names: Sequence[str]) -> None: ...

    def packages(self) -> list[PackageRecord]: ...

    def save_package(self, package: PackageRecord) -> None: ...

    def delete_packages(self, names: Sequence[str]) -> None: ...


class ImageTable(Protocol):
    """Images, the logins to pull them with, and presets. Sorted by name."""

    def images(self) -> list[ImageRecord]: ...

    def save_image(self, image: ImageRecord) -> None:
        """Insert or replace by owner and name."""

    def delete_image(self, owner: str, name: str) -> None: ...

    def credentials(self, owner: str) -> list[RegistryCredentialRecord]: ...

    def all_credentials(self) -> list[RegistryCredentialRecord]: ...

    def save_credential(self, credential: RegistryCredentialRecord) -> None:
        """Insert or replace by owner and name."""

    def delete_credential(self, owner: str, name: str) -> None: ...

    def presets(self) -> list[PresetRecord]: ...

    def save_preset(self, preset: PresetRecord) -> None:
        """Insert or replace by name."""

    def delete_preset(self, name: str) -> None: ...


class SshKeyTable(Protocol):
    def add(self, key: SshKeyRecord) -> None: ...

    def of_user(self, user: str) -> list[SshKeyRecord]: ...

    def by_fingerprint(self, fingerprint: str) -> list[SshKeyRecord]: ...

    def delete(self, key_ids: Sequence[str]) -> None: ...


class ProviderTable(Protocol):
    """Sign-in providers and the people whom they know."""

    def all(self) -> list[ProviderRecord]:
        """Sorted by id."""

    def get(self, provider_id: str) -> ProviderRecord | None: ...

    def save(self, provider: ProviderRecord) -> None:
        """Insert or replace by id."""

    def delete(self, provider_id: str) -> None:
        """With the identities that it knows."""

    def identities(self, provider_id: str) -> list[IdentityRecord]:
        """Sorted by login."""

    def identity(self, provider_id: str, subject: str) -> IdentityRecord | None: ...

    def save_identities(self, identities: Sequence[IdentityRecord]) -> None:
        """Insert or replace by provider and subject."""


class CredentialTable(Protocol):
    def add(self, credential: CredentialRecord) -> None: ...

    def by_hash(self, secret_hash: str) -> CredentialRecord | None: ...

    def of_user(self, user: str, kind: CredentialKind) -> list[CredentialRecord]: ...

    def touch(self, credential_id: str, at: float) -> None:
        """It was used at this time."""

    def last_used(self) -> dict[str, float]:
        """When each user last used any of their credentials; users who never did are left out."""

    def delete(self, credential_ids: Sequence[str]) -> None: ...


class EventTable(Protocol):
    def append(self, events: Sequence[EventRecord]) -> list[EventRecord]:
        """The same events with their ids."""

    def after(self, event_id: int, limit: int) -> list[EventRecord]:
        """The events that followed, oldest first."""

    def last_id(self) -> int: ...

    def page(self, where: EventFilter, *, cursor: str | None, limit: int) -> Page[EventRecord]:
        """Newest first. Raises ValueError for a bad cursor."""

    def count(self, where: EventFilter) -> int: ...


class CycleTable(Protocol):
    """The scheduler's journal."""

    def append(self, cycle: CycleRecord) -> int:
        """Its id."""

    def since_base(self) -> list[CycleRecord]:
        """The newest base and all entries after it, oldest first."""

    def prune(self, before: float) -> int:
        """Drop whole runs (a base and its entries) that ended before that time; how many entries went."""


class UsageTable(Protocol):
    """What attempts held and used. Rows outlive their jobs."""

    def save(self, records: Sequence[UsageRecord]) -> None:
        """Insert or replace by attempt, without touching what was measured."""

    def save_course(self, courses: Sequence[UsageCourse]) -> None:
        """How these attempts went on; unknown attempts are left alone."""

    def save_measured(self, measured: Mapping[str, Measured]) -> None:
        """What was measured of these attempts so far; unknown attempts are left alone."""

    def of_job(self, job_id: str) -> list[UsageRecord]:
        """Oldest first."""

    def open(self) -> list[UsageRecord]:
        """Of the attempts that have not ended."""

    def between(self, since: float, until: float) -> list[UsageRecord]:
        """Every attempt that held something within the span, or was planned in it, in the order of planning."""

    def prune(self, before: float) -> int:
        """Drop attempts that ended earlier."""


class HealthTable(Protocol):
    def conditions(self) -> dict[str, Condition]:
        """Of every GPU that is not healthy or was suspected lately."""

    def save_conditions(self, conditions: Sequence[Condition]) -> None:
        """Insert or replace by GPU."""

    def delete_conditions(self, gpu_ids: Sequence[str]) -> None: ...

    def idle_warnings(self) -> dict[str, IdleWarning]:
        """By job."""

    def save_idle_warning(self, warning: IdleWarning) -> None:
        """Insert or replace by job."""

    def delete_idle_warnings(self, job_ids: Sequence[str]) -> None: ...


class AlertTable(Protocol):
    def rules(self) -> list[AlertRule]:
        """Sorted by name."""

    def save_rule(self, rule: AlertRule) -> None:
        """Insert or replace by name."""

    def delete_rule(self, name: str) -> None: ...

    def add(self, alerts: Sequence[Alert]) -> list[Alert]:
        """The same alerts with their ids, growing without repetition."""

    def save(self, alerts: Sequence[Alert]) -> None: ...

    def delete(self, alert_ids: Sequence[int]) -> None:
        """Of those that ended before they fired."""

    def get(self, alert_id: int) -> Alert | None: ...

    def live(self) -> list[Alert]:
        """Pending and firing."""

    def page(self, where: AlertFilter, *, cursor: str | None, limit: int) -> Page[Alert]:
        """Newest first. Raises ValueError for a bad cursor."""

    def silences(self) -> list[Silence]:
        """Those that have not been deleted, by their end."""

    def save_silence(self, silence: Silence) -> None: ...

    def delete_silence(self, silence_id: str) -> None: ...

    def prune(self, before: float) -> int:
        """Drop alerts that were resolved, and silences that ended, earlier."""


class ChannelTable(Protocol):
    def all(self) -> list[ChannelRecord]:
        """Sorted by name."""

    def save(self, channel: ChannelRecord) -> None:
        """Insert or replace by name."""

    def delete(self, name: str) -> None:
        """Its deliveries stay."""

    def add_deliveries(self, deliveries: Sequence[DeliveryRecord]) -> list[DeliveryRecord]:
        """The same with their ids."""

    def save_delivery(self, delivery: DeliveryRecord) -> None: ...

    def delivery(self, delivery_id: int) -> DeliveryRecord | None: ...

    def waiting(self) -> list[DeliveryRecord]:
        """Oldest first."""

    def deliveries(self, channel: str | None, *, cursor: str | None, limit: int) -> Page[DeliveryRecord]:
        """Newest first. Raises ValueError for a bad cursor."""

    def prune(self, before: float) -> int:
        """Drop deliveries that were made or given up, and created earlier."""


class ReportTable(Protocol):
    def get(self, report_id: str) -> ReportRecord | None: ...

    def page(self, *, cursor: str | None, limit: int) -> Page[ReportRecord]:
        """Newest first. Raises ValueError for a bad cursor."""

    def of_schedule(self, name: str) -> list[ReportRecord]:
        """Those that this schedule has asked for, newest first."""

    def ids(self) -> set[str]: ...

    def save(self, report: ReportRecord) -> None:
        """Insert or replace by id."""

    def delete(self, report_id: str) -> None: ...

    def working(self) -> list[ReportRecord]:
        """Oldest first."""

    def schedules(self) -> list[ReportSchedule]:
        """Sorted by name."""

    def save_schedule(self, schedule: ReportSchedule) -> None:
        """Insert or replace by name."""

    def delete_schedule(self, name: str) -> None: ...


class MetaTable(Protocol):
    """A few named values, such as the server's own secrets."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, value: str) -> None: ...


class Transaction(Protocol):
    """All tables in one transaction; everything is written together or not at all."""

    jobs: JobTable
    attempts: AttemptTable
    fleet: FleetTable
    scores: ScoreTable
    people: PeopleTable
    credentials: CredentialTable
    catalog: CatalogTable
    ssh_keys: SshKeyTable
    images: ImageTable
    providers: ProviderTable
    events: EventTable
    cycles: CycleTable
    usage: UsageTable
    health: HealthTable
    alerts: AlertTable
    channels: ChannelTable
    reports: ReportTable
    meta: MetaTable


class Store(Protocol):
    """Where everything is kept. Synchronous; never held open across a network call."""

    def take_over(self) -> None:
        """Become the only writer: from now on every other server's `write` raises StoreSuperseded."""

    def write(self) -> AbstractContextManager[Transaction]:
        """Committed, durably, when the block ends; rolled back when it raises. One at a time."""

    def read(self) -> AbstractContextManager[Transaction]:
        """A consistent view, beside writers. Writing through it is an error."""

    def describe(self) -> Mapping[str, str]:
        """Kind, version and place, without secrets."""

    def close(self) -> None: ...
