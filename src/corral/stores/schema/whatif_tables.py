"""The part of the schema for simulations and the shadow policy. See `tables`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Table, Text, text

from corral.stores.schema.tables import json_column, metadata, row_id, text_column, time_column

#: A literal text, because SQLite uses a partial index only for a query with exactly the same condition.
NOT_FINISHED = "state IN ('waiting', 'working')"

simulation_rows = Table(
    "simulations",
    metadata,
    row_id(),
    text_column("state"),
    json_column("body"),
    # Large, and only read for a single simulation.
    Column("result", Text, nullable=True),
    Index("ix_simulations_unfinished", "id", sqlite_where=text(NOT_FINISHED), postgresql_where=text(NOT_FINISHED)),
)

shadow_difference_rows = Table(
    "shadow_differences",
    metadata,
    Column("cycle", BigInteger, primary_key=True, autoincrement=False),
    time_column("at"),
    json_column("body"),
)
