"""The protocols of the store, as the control layer needs it."""

from corral.control.ports.store.alerts import (
    AlertTable,
    ChannelTable,
    ReportTable,
)
from corral.control.ports.store.apps import AppShareTable
from corral.control.ports.store.budgets import BudgetTable
from corral.control.ports.store.datasets import DatasetTable
from corral.control.ports.store.errors import (
    NameTaken,
    OutcomeUnknown,
    StoreConflict,
    StoreSuperseded,
    StoreUnavailable,
)
from corral.control.ports.store.fleet import (
    CatalogTable,
    FleetTable,
    HealthTable,
    ImageTable,
)
from corral.control.ports.store.holder import NO_LEADERSHIP, Leadership, Place, StoreHeld, StoreHolder
from corral.control.ports.store.jobs import (
    STEADY_FIELDS,
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
from corral.control.ports.store.servers import LeaseRecord, ServerRecord, ServerRegistry
from corral.control.ports.store.transaction import (
    MetaTable,
    RequestKeyTable,
    Store,
    Transaction,
)
from corral.control.ports.store.volumes import VolumeTable
from corral.control.ports.store.whatif import (
    ShadowTable,
    SimulationTable,
)

__all__ = [
    "NO_LEADERSHIP",
    "STEADY_FIELDS",
    "AlertTable",
    "AppShareTable",
    "AttemptTable",
    "BudgetTable",
    "CatalogTable",
    "ChannelTable",
    "CredentialTable",
    "CycleTable",
    "DatasetTable",
    "EstimateTable",
    "EventTable",
    "FleetTable",
    "HealthTable",
    "ImageTable",
    "JobTable",
    "Leadership",
    "LeaseRecord",
    "MaintenanceTable",
    "MetaTable",
    "NameTaken",
    "OutcomeUnknown",
    "PeopleTable",
    "PersonalChannelTable",
    "Place",
    "ProviderTable",
    "ReceiptTable",
    "ReportTable",
    "RequestKeyTable",
    "ReservationTable",
    "ScoreTable",
    "SecretTable",
    "ServerRecord",
    "ServerRegistry",
    "ShadowTable",
    "SimulationTable",
    "SshKeyTable",
    "Store",
    "StoreConflict",
    "StoreHeld",
    "StoreHolder",
    "StoreSuperseded",
    "StoreUnavailable",
    "Transaction",
    "UsageTable",
    "VolumeTable",
]
