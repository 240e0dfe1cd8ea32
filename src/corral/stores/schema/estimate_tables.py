"""The part of the schema for estimated starts and their outcomes. See `tables`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, PrimaryKeyConstraint, Table, text

from corral.stores.schema.tables import metadata, text_column, time_column

#: Estimates of jobs that have not started.
IS_OPEN = "started_at IS NULL"

estimate_rows = Table(
    "start_estimates",
    metadata,
    Column("job_id", BigInteger, nullable=False),
    time_column("made_at"),
    Column("attempt", BigInteger, nullable=False),
    text_column("queue"),
    text_column("user_name"),
    time_column("p50"),
    time_column("p90"),
    time_column("raw_p50"),
    time_column("raw_p90"),
    time_column("started_at", nullable=True),
    PrimaryKeyConstraint("job_id", "made_at"),
    Index(None, "made_at"),
    Index("ix_start_estimates_open", "job_id", sqlite_where=text(IS_OPEN), postgresql_where=text(IS_OPEN)),
)
