"""One transaction as the control layer sees it: all tables on one connection."""

from __future__ import annotations

from sqlalchemy import Connection

from corral.control.ports import (
    AttemptTable,
    CatalogTable,
    CredentialTable,
    CycleTable,
    EventTable,
    FleetTable,
    JobTable,
    MetaTable,
    PeopleTable,
    ProviderTable,
    ScoreTable,
    SshKeyTable,
)
from corral.stores.attempts import SqlAttemptTable
from corral.stores.catalog import SqlCatalogTable
from corral.stores.credentials import SqlCredentialTable, SqlSshKeyTable
from corral.stores.fleet import SqlFleetTable
from corral.stores.history import SqlCycleTable, SqlEventTable
from corral.stores.jobs import SqlJobTable
from corral.stores.people import SqlPeopleTable
from corral.stores.providers import SqlProviderTable
from corral.stores.scores import SqlMetaTable, SqlScoreTable


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
    providers: ProviderTable
    events: EventTable
    cycles: CycleTable
    meta: MetaTable

    def __init__(self, connection: Connection) -> None:
        self.jobs = SqlJobTable(connection)
        self.attempts = SqlAttemptTable(connection)
        self.fleet = SqlFleetTable(connection)
        self.scores = SqlScoreTable(connection)
        self.people = SqlPeopleTable(connection)
        self.credentials = SqlCredentialTable(connection)
        self.catalog = SqlCatalogTable(connection)
        self.ssh_keys = SqlSshKeyTable(connection)
        self.providers = SqlProviderTable(connection)
        self.events = SqlEventTable(connection)
        self.cycles = SqlCycleTable(connection)
        self.meta = SqlMetaTable(connection)
