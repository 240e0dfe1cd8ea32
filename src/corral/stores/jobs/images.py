"""Images, logins to registries, presets, and the models and data sets of presets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, select

from corral.control.records import (
    AssetKind,
    ImageRecord,
    PresetAssetRecord,
    PresetRecord,
    RegistryCredentialRecord,
    Visibility,
)
from corral.stores.database import row_codec
from corral.stores.database.statements import upsert
from corral.stores.schema.image_tables import image_rows, preset_asset_rows, preset_rows, registry_credential_rows

_SAVE_IMAGE = upsert(image_rows)
_SAVE_CREDENTIAL = upsert(registry_credential_rows)
_SAVE_PRESET = upsert(preset_rows)
_SAVE_ASSET = upsert(preset_asset_rows)


class SqlImageTable:
    """Implements `corral.control.ports.ImageTable`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def images(self) -> list[ImageRecord]:
        rows = self._connection.execute(select(image_rows).order_by(image_rows.c.name, image_rows.c.owner))
        return [_image_of(row) for row in rows]

    def save_image(self, image: ImageRecord) -> None:
        row = (
            image.owner,
            image.name,
            image.address,
            image.visibility.value,
            row_codec.encode_names(image.shared_users),
            row_codec.encode_names(image.shared_groups),
            image.credential,
            image.description,
            image.created_at,
        )
        _SAVE_IMAGE.run(self._connection, [_storable(row)])

    def delete_image(self, owner: str, name: str) -> None:
        self._connection.execute(delete(image_rows).where(image_rows.c.owner == owner, image_rows.c.name == name))

    def credentials(self, owner: str) -> list[RegistryCredentialRecord]:
        return [credential for credential in self.all_credentials() if credential.owner == owner]

    def all_credentials(self) -> list[RegistryCredentialRecord]:
        rows = self._connection.execute(
            select(registry_credential_rows).order_by(registry_credential_rows.c.name, registry_credential_rows.c.owner)
        )
        return [RegistryCredentialRecord(**row._mapping) for row in rows]

    def save_credential(self, credential: RegistryCredentialRecord) -> None:
        row = (
            credential.owner,
            credential.name,
            credential.registry,
            credential.username,
            credential.secret,
            credential.created_at,
        )
        _SAVE_CREDENTIAL.run(self._connection, [_storable(row)])

    def delete_credential(self, owner: str, name: str) -> None:
        rows = registry_credential_rows
        self._connection.execute(delete(rows).where(rows.c.owner == owner, rows.c.name == name))

    def presets(self) -> list[PresetRecord]:
        rows = self._connection.execute(select(preset_rows).order_by(preset_rows.c.name))
        return [
            PresetRecord(
                name=row.name, yaml=row_codec.from_json(row.yaml), created_by=row.created_by, created_at=row.created_at
            )
            for row in rows
        ]

    def save_preset(self, preset: PresetRecord) -> None:
        row = (preset.name, row_codec.to_json(preset.yaml), preset.created_by, preset.created_at)
        _SAVE_PRESET.run(self._connection, [_storable(row)])

    def delete_preset(self, name: str) -> None:
        self._connection.execute(delete(preset_rows).where(preset_rows.c.name == name))

    def preset_assets(self) -> list[PresetAssetRecord]:
        rows = self._connection.execute(
            select(preset_asset_rows).order_by(preset_asset_rows.c.kind, preset_asset_rows.c.name)
        )
        return [
            PresetAssetRecord(
                **{**row._mapping, "kind": AssetKind(row.kind), "classes": row_codec.decode_names(str, row.classes)}
            )
            for row in rows
        ]

    def save_preset_asset(self, asset: PresetAssetRecord) -> None:
        row = (
            asset.kind.value,
            asset.name,
            asset.format,
            asset.source,
            asset.path,
            row_codec.encode_names(asset.classes),
            asset.description,
            asset.created_by,
            asset.created_at,
        )
        _SAVE_ASSET.run(self._connection, [_storable(row)])

    def delete_preset_asset(self, kind: AssetKind, name: str) -> None:
        rows = preset_asset_rows
        self._connection.execute(delete(rows).where(rows.c.kind == kind.value, rows.c.name == name))


def _storable(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(row_codec.storable(value) if isinstance(value, str) else value for value in row)


def _image_of(row: Any) -> ImageRecord:
    return ImageRecord(
        name=row.name,
        address=row.address,
        owner=row.owner,
        visibility=Visibility(row.visibility),
        shared_users=row_codec.decode_names(str, row.shared_users),
        shared_groups=row_codec.decode_names(str, row.shared_groups),
        credential=row.credential,
        description=row.description,
        created_at=row.created_at,
    )
