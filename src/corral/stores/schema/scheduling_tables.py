"""The part of the schema for reservations and maintenance windows. See `tables`."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Index, Table

from corral.stores.schema.tables import json_column, metadata, name_column, number, text_column, time_column

reservation_rows = Table(
    "reservations",
    metadata,
    name_column(),
    text_column("pool"),
    text_column("model"),
    json_column("gpus"),
    json_column("users"),
    json_column("groups"),
    time_column("since"),
    time_column("until", nullable=True),
    Column("lends", Boolean, nullable=False),
    Column("is_over", Boolean, nullable=False),
    text_column("note"),
    text_column("created_by"),
    time_column("created_at"),
    Index(None, "until"),
)

maintenance_rows = Table(
    "maintenance_windows",
    metadata,
    name_column(),
    json_column("nodes"),
    time_column("since"),
    time_column("until"),
    number("every_days", nullable=True),
    time_column("drain_seconds"),
    text_column("note"),
    text_column("created_by"),
    time_column("created_at"),
    json_column("begun"),
)
