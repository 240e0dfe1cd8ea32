"""The part of the schema for secrets of users and groups. See `tables`."""

from __future__ import annotations

from sqlalchemy import PrimaryKeyConstraint, Table

from corral.stores.schema.tables import metadata, text_column, time_column

secret_rows = Table(
    "secrets",
    metadata,
    text_column("owner_kind"),
    text_column("owner"),
    text_column("name"),
    # encrypted
    text_column("value"),
    text_column("set_by"),
    time_column("set_at"),
    PrimaryKeyConstraint("owner_kind", "owner", "name"),
)
