"""The part of the schema for secrets of users and groups, and for users' own channels. See `tables`."""

from __future__ import annotations

from sqlalchemy import PrimaryKeyConstraint, Table

from corral.stores.schema.tables import json_column, metadata, text_column, time_column

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

personal_channel_rows = Table(
    "personal_channels",
    metadata,
    text_column("user_name"),
    text_column("name"),
    text_column("kind"),
    # encrypted
    text_column("address"),
    json_column("body"),
    PrimaryKeyConstraint("user_name", "name"),
)
