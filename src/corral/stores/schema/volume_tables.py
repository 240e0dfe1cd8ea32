"""The part of the schema for volumes and object stores. See `tables`."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Table, UniqueConstraint

from corral.stores.schema.tables import json_column, metadata, name_column, number, row_id, text_column, time_column

volume_rows = Table(
    "volumes",
    metadata,
    row_id(),
    text_column("owner"),
    text_column("name"),
    text_column("type"),
    text_column("cluster"),
    number("size_bytes"),
    number("used_bytes", nullable=True),
    time_column("measured_at", nullable=True),
    text_column("object_store", nullable=True),
    text_column("prefix"),
    text_column("state"),
    text_column("message"),
    json_column("shared"),
    Column("read_only", Boolean, nullable=False),
    time_column("created_at"),
    text_column("description", default=""),
    UniqueConstraint("owner", "name"),
)

object_store_rows = Table(
    "object_stores",
    metadata,
    name_column(),
    text_column("kind"),
    text_column("bucket"),
    text_column("endpoint", nullable=True),
    text_column("region"),
    text_column("prefix"),
    text_column("access_key"),
    text_column("secret"),
    Column("allow_write", Boolean, nullable=False),
    time_column("created_at"),
)
