"""The part of the schema for apps. See `tables`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, PrimaryKeyConstraint, Table

from corral.stores.schema.tables import metadata, text_column, time_column

app_share_rows = Table(
    "app_shares",
    metadata,
    Column("job_id", BigInteger, ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False),
    text_column("kind"),
    text_column("name"),
    text_column("secret_hash"),
    time_column("created_at"),
    time_column("expires_at", nullable=True),
    PrimaryKeyConstraint("job_id", "kind", "name"),
)
