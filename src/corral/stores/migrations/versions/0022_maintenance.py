"""Maintenance windows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "maintenance_windows",
        sa.Column("name", TEXT, nullable=False),
        sa.Column("nodes", sa.Text(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("until", sa.Double(), nullable=False),
        sa.Column("every_days", sa.BigInteger(), nullable=True),
        sa.Column("drain_seconds", sa.Double(), nullable=False),
        sa.Column("note", TEXT, nullable=False),
        sa.Column("created_by", TEXT, nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("begun", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_maintenance_windows"),
    )
