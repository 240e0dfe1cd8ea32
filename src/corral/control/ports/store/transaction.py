"""The store itself: all tables in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from corral.control.ports.store.alerts import AlertTable, ChannelTable, ReportTable
from corral.control.ports.store.apps import AppShareTable
from corral.control.ports.store.budgets import BudgetTable
from corral.control.ports.store.datasets import DatasetTable
from corral.control.ports.store.fleet import CatalogTable, FleetTable, HealthTable, ImageTable
from corral.control.ports.store.holder import Leadership
from corral.control.ports.store.jobs import (
    AttemptTable,
    CycleTable,
    EventTable,
    JobTable,
    ReceiptTable,
    ScoreTable,
    UsageTable,
)
from corral.control.ports.store.people import (
    CredentialTable,
    PeopleTable,
    PersonalChannelTable,
    ProviderTable,
    SecretTable,
    SshKeyTable,
)
from corral.control.ports.store.scheduling import EstimateTable, MaintenanceTable, ReservationTable
from corral.control.ports.store.volumes import VolumeTable
from corral.control.ports.store.whatif import ShadowTable, SimulationTable
from corral.control.records import RequestKeyRecord, UnreadableRow


class MetaTable(Protocol):
    """A few named values, such as the server's own secrets."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, value: str) -> None: ...


class RequestKeyTable(Protocol):
    """Requests under keys that their users chose."""

    def get(self, user: str, key: str) -> RequestKeyRecord | None: ...

    def add(self, record: RequestKeyRecord) -> None: ...

    def keep_answer(self, user: str, key: str, status: int, answer: bytes) -> None:
        """Store the answer of a request; without effect if its key is forgotten already."""

    def remove(self, user: str, key: str) -> None: ...

    def prune(self, before: float) -> int:
        """Remove keys from before that time; how many."""


class Transaction(Protocol):
    """All tables in one transaction; everything is written together or not at all."""

    jobs: JobTable
    attempts: AttemptTable
    fleet: FleetTable
    scores: ScoreTable
    people: PeopleTable
    budgets: BudgetTable
    credentials: CredentialTable
    catalog: CatalogTable
    ssh_keys: SshKeyTable
    secrets: SecretTable
    personal_channels: PersonalChannelTable
    app_shares: AppShareTable
    images: ImageTable
    providers: ProviderTable
    events: EventTable
    cycles: CycleTable
    usage: UsageTable
    receipts: ReceiptTable
    health: HealthTable
    alerts: AlertTable
    channels: ChannelTable
    reports: ReportTable
    simulations: SimulationTable
    shadow: ShadowTable
    reservations: ReservationTable
    maintenance: MaintenanceTable
    datasets: DatasetTable
    estimates: EstimateTable
    volumes: VolumeTable
    meta: MetaTable
    request_keys: RequestKeyTable

    @property
    def changes(self) -> int:
        """How many statements that insert, update or delete rows were executed so far."""

    @property
    def unreadable(self) -> Sequence[UnreadableRow]:
        """Damaged rows that were left out of the answers so far."""


class Store(Protocol):
    """The store. Synchronous; a transaction is never open during a network call."""

    def take_over(self, above: int = 0) -> Leadership:
        """Become the only writer: from now on every other server's `write` raises StoreSuperseded.

        The term is greater than every one before, and than `above`: engines may know a later one than a store that was
        restored. Raises StoreHeld.
        """

    def write(self) -> AbstractContextManager[Transaction]:
        """Committed, durably, when the block ends; rolled back when it raises. One at a time."""

    def read(self) -> AbstractContextManager[Transaction]:
        """A consistent view, beside writers. Writing through it is an error."""

    def describe(self) -> Mapping[str, str]:
        """Kind, version and place, without secrets."""

    def close(self) -> None: ...
