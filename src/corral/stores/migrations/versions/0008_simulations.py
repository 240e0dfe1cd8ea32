"""What-if questions and where a shadow policy would differ."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.bulk_insert(sa.table("counters", sa.column("name"), sa.column("value")), [{"name": "simulation", "value": 0}])
    op.create_table(
        "simulations",
        sa.Column("id", ROW_ID, nullable=False, autoincrement=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_simulations"),
    )
    unfinished = sa.text("state IN ('waiting', 'working')")
    op.create_index(
        "ix_simulations_unfinished", "simulations", ["id"], sqlite_where=unfinished, postgresql_where=unfinished
    )
    op.create_table(
        "shadow_differences",
        sa.Column("cycle", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("cycle", name="pk_shadow_differences"),
    )
