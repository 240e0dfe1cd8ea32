"""The part of the schema for requests that must not be carried out twice. See `tables`."""

from __future__ import annotations

from sqlalchemy import Column, Index, LargeBinary, PrimaryKeyConstraint, Table

from corral.stores.schema.tables import json_column, metadata, number, text_column, time_column

#: A row outlives its user for at most a day, so it has no foreign key.
request_key_rows = Table(
    "request_keys",
    metadata,
    text_column("user_name"),
    text_column("key"),
    # of method, address and body
    text_column("digest"),
    time_column("at"),
    # the result of the use case; null if it cannot be stored
    json_column("result"),
    # the answer that was sent, once it is known
    number("status", nullable=True),
    Column("answer", LargeBinary, nullable=True),
    PrimaryKeyConstraint("user_name", "key"),
    Index(None, "at"),
)
