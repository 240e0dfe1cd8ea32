"""One transaction as the control layer sees it: all tables on one connection."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from corral.control.ports import (
    AlertTable,
    AttemptTable,
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
    MetaTable,
    PeopleTable,
    ProviderTable,
    ReceiptTable,
    ReportTable,
    ReservationTable,
    ScoreTable,
    ShadowTable,
    SimulationTable,
    SshKeyTable,
    UsageTable,
    VolumeTable,
)
from corral.control.records import UnreadableRow
from corral.stores.alerts import SqlAlertTable
from corral.stores.attempts import SqlAttemptTable
from corral.stores.catalog import SqlCatalogTable
from corral.stores.channels import SqlChannelTable
from corral.stores.credentials import SqlCredentialTable, SqlSshKeyTable
from corral.stores.datasets import SqlDatasetTable
from corral.stores.estimates import SqlEstimateTable
from corral.stores.fleet import SqlFleetTable
from corral.stores.health import SqlHealthTable
from corral.stores.history import SqlCycleTable, SqlEventTable
from corral.stores.images import SqlImageTable
from corral.stores.jobs import SqlJobTable
from corral.stores.people import SqlPeopleTable
from corral.stores.providers import SqlProviderTable
from corral.stores.receipts import SqlReceiptTable
from corral.stores.reports import SqlReportTable
from corral.stores.reservations import SqlReservationTable
from corral.stores.rows import begin_rows, unreadable_rows
from corral.stores.scores import SqlMetaTable, SqlScoreTable
from corral.stores.usage import SqlUsageTable
from corral.stores.volumes import SqlVolumeTable
from corral.stores.whatif import SqlShadowTable, SqlSimulationTable


class SqlTransaction:
    """Implements `corral.control.ports.Transaction`."""

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
    receipts: ReceiptTable
    health: HealthTable
    alerts: AlertTable
    channels: ChannelTable
    reports: ReportTable
    simulations: SimulationTable
    shadow: ShadowTable
    reservations: ReservationTable
    datasets: DatasetTable
    estimates: EstimateTable
    volumes: VolumeTable
    meta: MetaTable

    def __init__(self, connection: Connection) -> None:
        begin_rows(connection)
        self._connection = connection
        self.jobs = SqlJobTable(connection)
        self.attempts = SqlAttemptTable(connection)
        self.fleet = SqlFleetTable(connection)
        self.scores = SqlScoreTable(connection)
        self.people = SqlPeopleTable(connection)
        self.credentials = SqlCredentialTable(connection)
        self.catalog = SqlCatalogTable(connection)
        self.ssh_keys = SqlSshKeyTable(connection)
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
        self.reservations = SqlReservationTable(connection)
        self.estimates = SqlEstimateTable(connection)
        self.volumes = SqlVolumeTable(connection)
        self.meta = SqlMetaTable(connection)

    @property
    def unreadable(self) -> Sequence[UnreadableRow]:
        return unreadable_rows(self._connection)
