"""One transaction as the control layer sees it: all tables on one connection."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from corral.control.ports import (
    AlertTable,
    AppShareTable,
    AttemptTable,
    BudgetTable,
    CatalogTable,
    ChannelTable,
    CredentialTable,
    CycleTable,
    DatasetTable,
    EstimateTable,
    EventTable,
    FleetTable,
    HealthTable,
    ImageTable,
    JobTable,
    MaintenanceTable,
    MetaTable,
    PeopleTable,
    PersonalChannelTable,
    ProviderTable,
    ReceiptTable,
    ReportTable,
    RequestKeyTable,
    ReservationTable,
    ScoreTable,
    SecretTable,
    ShadowTable,
    SimulationTable,
    SshKeyTable,
    UsageTable,
    VolumeTable,
)
from corral.control.records import UnreadableRow
from corral.stores.alerts.alerts import SqlAlertTable
from corral.stores.alerts.channels import SqlChannelTable
from corral.stores.database.commit_guard import changes_made
from corral.stores.database.rows import begin_rows, unreadable_rows
from corral.stores.datasets.datasets import SqlDatasetTable
from corral.stores.fleet.catalog import SqlCatalogTable
from corral.stores.fleet.maintenance import SqlMaintenanceTable
from corral.stores.fleet.nodes import SqlFleetTable
from corral.stores.jobs.attempts import SqlAttemptTable
from corral.stores.jobs.images import SqlImageTable
from corral.stores.jobs.jobs import SqlJobTable
from corral.stores.monitoring.gpu_health import SqlHealthTable
from corral.stores.monitoring.usage import SqlUsageTable
from corral.stores.people.budgets import SqlBudgetTable
from corral.stores.people.credentials import SqlCredentialTable, SqlSshKeyTable
from corral.stores.people.personal_channels import SqlPersonalChannelTable
from corral.stores.people.scores import SqlMetaTable, SqlScoreTable
from corral.stores.people.secrets import SqlSecretTable
from corral.stores.people.sign_in_providers import SqlProviderTable
from corral.stores.people.users import SqlPeopleTable
from corral.stores.reports.reports import SqlReportTable
from corral.stores.scheduling.estimates import SqlEstimateTable
from corral.stores.scheduling.receipts import SqlReceiptTable
from corral.stores.scheduling.reservations import SqlReservationTable
from corral.stores.storage.volumes import SqlVolumeTable
from corral.stores.system.event_log import SqlCycleTable, SqlEventTable
from corral.stores.system.request_keys import SqlRequestKeyTable
from corral.stores.whatif.simulations import SqlShadowTable, SqlSimulationTable
from corral.stores.workbenches.app_shares import SqlAppShareTable


class SqlTransaction:
    """Implements `corral.control.ports.Transaction`."""

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

    def __init__(self, connection: Connection) -> None:
        begin_rows(connection)
        self._connection = connection
        self.jobs = SqlJobTable(connection)
        self.attempts = SqlAttemptTable(connection)
        self.fleet = SqlFleetTable(connection)
        self.scores = SqlScoreTable(connection)
        self.people = SqlPeopleTable(connection)
        self.budgets = SqlBudgetTable(connection)
        self.credentials = SqlCredentialTable(connection)
        self.catalog = SqlCatalogTable(connection)
        self.ssh_keys = SqlSshKeyTable(connection)
        self.secrets = SqlSecretTable(connection)
        self.personal_channels = SqlPersonalChannelTable(connection)
        self.app_shares = SqlAppShareTable(connection)
        self.images = SqlImageTable(connection)
        self.providers = SqlProviderTable(connection)
        self.events = SqlEventTable(connection)
        self.cycles = SqlCycleTable(connection)
        self.usage = SqlUsageTable(connection)
        self.receipts = SqlReceiptTable(connection)
        self.health = SqlHealthTable(connection)
        self.alerts = SqlAlertTable(connection)
        self.channels = SqlChannelTable(connection)
        self.reports = SqlReportTable(connection)
        self.simulations = SqlSimulationTable(connection)
        self.shadow = SqlShadowTable(connection)
        self.datasets = SqlDatasetTable(connection)
        self.maintenance = SqlMaintenanceTable(connection)
        self.reservations = SqlReservationTable(connection)
        self.estimates = SqlEstimateTable(connection)
        self.volumes = SqlVolumeTable(connection)
        self.meta = SqlMetaTable(connection)
        self.request_keys = SqlRequestKeyTable(connection)

    @property
    def changes(self) -> int:
        return changes_made(self._connection)

    @property
    def unreadable(self) -> Sequence[UnreadableRow]:
        return unreadable_rows(self._connection)
