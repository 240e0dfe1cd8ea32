"""The part of the schema for images, logins to registries and presets. See `tables`."""

from __future__ import annotations

from sqlalchemy import PrimaryKeyConstraint, Table

from corral.stores.schema.tables import json_column, metadata, name_column, text_column, time_column

image_rows = Table(
    "images",
    metadata,
    text_column("owner"),
    text_column("name"),
    text_column("address"),
    text_column("visibility"),
    json_column("shared_users"),
    json_column("shared_groups"),
    text_column("credential", nullable=True),
    text_column("description"),
    time_column("created_at"),
    PrimaryKeyConstraint("owner", "name"),
)

registry_credential_rows = Table(
    "registry_credentials",
    metadata,
    text_column("owner"),
    text_column("name"),
    text_column("registry"),
    text_column("username"),
    text_column("secret"),
    time_column("created_at"),
    PrimaryKeyConstraint("owner", "name"),
)

preset_asset_rows = Table(
    "preset_assets",
    metadata,
    text_column("kind"),
    text_column("name"),
    text_column("format"),
    text_column("source"),
    text_column("path"),
    json_column("classes"),
    text_column("description"),
    text_column("created_by"),
    time_column("created_at"),
    PrimaryKeyConstraint("kind", "name"),
)

preset_rows = Table(
    "presets", metadata, name_column(), json_column("yaml"), text_column("created_by"), time_column("created_at")
)
