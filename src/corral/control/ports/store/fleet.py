"""Tables of nodes, GPUs, GPU health, and the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from corral.control.records import (
    AssetKind,
    CheckRecord,
    FlavorRecord,
    IdleWarning,
    ImageRecord,
    PackageRecord,
    PoolRecord,
    PresetAssetRecord,
    PresetRecord,
    RegistryCredentialRecord,
)
from corral.core.model import Gpu, Node, Queue
from corral.core.monitoring.health.model import Condition


class FleetTable(Protocol):
    """Queues, and what operators or health checks decided about nodes and GPUs."""

    def nodes(self) -> list[Node]: ...

    def save_nodes(self, nodes: Sequence[Node]) -> None:
        """Insert or replace, with their GPUs (state, labels, health and pool included)."""

    def delete_nodes(self, node_ids: Sequence[str]) -> None: ...

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


class HealthTable(Protocol):
    def conditions(self) -> dict[str, Condition]:
        """The conditions of all GPUs that are not healthy or were suspected lately."""

    def save_conditions(self, conditions: Sequence[Condition]) -> None:
        """Insert or replace by GPU."""

    def delete_conditions(self, gpu_ids: Sequence[str]) -> None: ...

    def idle_warnings(self) -> dict[str, IdleWarning]:
        """The idle warnings by job."""

    def save_idle_warning(self, warning: IdleWarning) -> None:
        """Insert or replace by job."""

    def delete_idle_warnings(self, job_ids: Sequence[str]) -> None: ...

    def add_checks(self, records: Sequence[CheckRecord]) -> None: ...

    def save_check(self, record: CheckRecord) -> None:
        """Replace by job."""

    def check(self, job_id: str) -> CheckRecord | None: ...

    def open_checks(self) -> list[CheckRecord]:
        """Checks whose jobs wait or run, or have ended and were not evaluated yet."""

    def checks(
        self, *, gpu_id: str | None = None, node: str | None = None, before: str | None = None, limit: int
    ) -> list[CheckRecord]:
        """The newest first; `before` is the job of the last one of the page before."""

    def latest_checks(self, model: str | None = None) -> list[CheckRecord]:
        """The latest check of each GPU that passed or failed."""

    def prune_checks(self, before: float) -> int:
        """Remove checks from before that time, but not the latest of each GPU; how many."""


class CatalogTable(Protocol):
    """The flavors and packages of the catalog, sorted by name; `save_` inserts or replaces by name."""

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

    def preset_assets(self) -> list[PresetAssetRecord]:
        """Models and data sets for presets, sorted by kind and name."""
        ...

    def save_preset_asset(self, asset: PresetAssetRecord) -> None:
        """Add or replace by kind and name."""
        ...

    def delete_preset_asset(self, kind: AssetKind, name: str) -> None: ...
