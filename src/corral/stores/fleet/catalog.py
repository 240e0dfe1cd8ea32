"""The catalog: flavors (kinds of hardware) and packages (sizes)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, select

from corral.control.records import FlavorRecord, PackageRecord
from corral.core.model import JobKind
from corral.stores.database import row_codec
from corral.stores.database.statements import replace_rows
from corral.stores.schema.tables import flavor_rows, package_rows


class SqlCatalogTable:
    """Implements `corral.control.ports.CatalogTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def flavors(self) -> list[FlavorRecord]:
        rows = self._connection.execute(select(flavor_rows).order_by(flavor_rows.c.name))
        return [
            FlavorRecord(
                name=row.name,
                models=row_codec.decode_names(str, row.models),
                labels=row_codec.load_pairs(row_codec.from_json(row.labels)),
                cpu_milli_per_gpu=row.cpu_milli_per_gpu,
                memory_bytes_per_gpu=row.memory_bytes_per_gpu,
                default_gpus=row.default_gpus,
                description=row.description,
                created_at=row.created_at,
            )
            for row in rows
        ]

    def save_flavor(self, flavor: FlavorRecord) -> None:
        row = {
            "name": flavor.name,
            "models": row_codec.encode_names(flavor.models),
            "labels": row_codec.to_json(flavor.labels),
            "cpu_milli_per_gpu": flavor.cpu_milli_per_gpu,
            "memory_bytes_per_gpu": flavor.memory_bytes_per_gpu,
            "default_gpus": flavor.default_gpus,
            "description": flavor.description,
            "created_at": flavor.created_at,
        }
        replace_rows(self._connection, flavor_rows, [row])

    def delete_flavors(self, names: Sequence[str]) -> None:
        """Raises StoreConflict while a package needs one of them."""
        if names:
            self._connection.execute(delete(flavor_rows).where(flavor_rows.c.name.in_(names)))

    def packages(self) -> list[PackageRecord]:
        rows = self._connection.execute(select(package_rows).order_by(package_rows.c.name))
        return [
            PackageRecord(
                name=row.name,
                gpus=row.gpus,
                gpu_milli=row.gpu_milli,
                cpu_milli=row.cpu_milli,
                memory_bytes=row.memory_bytes,
                flavor=row.flavor,
                rdma=row.rdma,
                kinds=row_codec.decode_names(JobKind, row.kinds),
                description=row.description,
                created_at=row.created_at,
            )
            for row in rows
        ]

    def save_package(self, package: PackageRecord) -> None:
        """Raises StoreConflict when there is no such flavor."""
        row = {
            "name": package.name,
            "gpus": package.gpus,
            "gpu_milli": package.gpu_milli,
            "cpu_milli": package.cpu_milli,
            "memory_bytes": package.memory_bytes,
            "flavor": package.flavor,
            "rdma": package.rdma,
            "kinds": row_codec.encode_names(package.kinds),
            "description": package.description,
            "created_at": package.created_at,
        }
        replace_rows(self._connection, package_rows, [row])

    def delete_packages(self, names: Sequence[str]) -> None:
        if names:
            self._connection.execute(delete(package_rows).where(package_rows.c.name.in_(names)))
