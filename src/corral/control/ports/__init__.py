"""What the control layer needs of the world, as protocols. Adapters implement them; nothing here does anything.

Docstrings are contracts: what must be quick, what must tolerate absence, and which error means "try again".
"""

from corral.control.ports.engine import (
    AttemptPhase,
    AttemptStatus,
    Engine,
    EngineUnavailable,
    Instance,
    LaunchOrder,
    LaunchRefused,
    LogChunk,
    Observation,
)
from corral.control.ports.store import (
    AttemptTable,
    CatalogTable,
    CredentialTable,
    CycleTable,
    EventTable,
    FleetTable,
    JobTable,
    MetaTable,
    NameTaken,
    PeopleTable,
    ProviderTable,
    ScoreTable,
    SshKeyTable,
    Store,
    StoreConflict,
    StoreSuperseded,
    Transaction,
)
from corral.control.ports.world import (
    Clock,
    Collector,
    GpuReading,
    Workspace,
)

__all__ = [
    "AttemptPhase",
    "AttemptStatus",
    "AttemptTable",
    "CatalogTable",
    "Clock",
    "Collector",
    "CredentialTable",
    "CycleTable",
    "Engine",
    "EngineUnavailable",
    "EventTable",
    "FleetTable",
    "GpuReading",
    "Instance",
    "JobTable",
    "LaunchOrder",
    "LaunchRefused",
    "LogChunk",
    "MetaTable",
    "NameTaken",
    "Observation",
    "PeopleTable",
    "ProviderTable",
    "ScoreTable",
    "SshKeyTable",
    "Store",
    "StoreConflict",
    "StoreSuperseded",
    "Transaction",
    "Workspace",
]
