"""The part of the schema for receipts of preemptions. See `tables`."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Index, Table, text

from corral.stores.schema.tables import json_column, metadata, number, row_id, text_column, time_column

#: A receipt outlives both jobs, so it has no foreign keys.
receipt_rows = Table(
    "receipts",
    metadata,
    row_id(),
    time_column("at"),
    text_column("rule"),
    number("job_id"),
    number("attempt"),
    text_column("user_name"),
    number("for_job"),
    text_column("for_user"),
    Column("is_open", Boolean, nullable=False),
    # everything else, as JSON
    json_column("body"),
    Index(None, "job_id", "id"),
    Index(None, "for_job", "id"),
    Index(None, "user_name", "id"),
    Index(None, "for_user", "id"),
    Index(None, "at"),
    Index("ix_receipts_open", "id", sqlite_where=text("is_open = 1"), postgresql_where=text("is_open")),
)
