"""The part of the schema for several servers over one store: the servers, and the lease of the leader. See `tables`."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Table

from corral.stores.schema.tables import metadata, name_column, number, text_column, time_column

server_rows = Table(
    "servers",
    metadata,
    name_column(),
    text_column("url"),
    text_column("host"),
    number("pid"),
    text_column("version"),
    #: random, of this process: the name of its sessions in the database, and its key for forwarded requests
    text_column("session"),
    text_column("key"),
    Column("may_lead", Boolean, nullable=False),
    text_column("detail"),
    #: the last event that it has followed
    number("place"),
    #: both by the clock of the database
    time_column("started_at"),
    time_column("seen_at"),
)

#: One row, from the first server with high availability on.
lease_rows = Table(
    "leases",
    metadata,
    name_column(),
    text_column("server"),
    #: random, of one leader; empty: no server leads
    text_column("token"),
    number("renewals"),
    #: the leader's sessions in the database: their name, and the process that renews the lease
    text_column("session"),
    number("backend"),
    #: by the clock of the database; shown, never compared
    time_column("since"),
    number("changes"),
)
