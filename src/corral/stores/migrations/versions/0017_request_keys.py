"""Keys of requests that must not be carried out twice."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "request_keys",
        sa.Column("user_name", TEXT, nullable=False),
        sa.Column("key", TEXT, nullable=False),
        sa.Column("digest", TEXT, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("status", sa.BigInteger(), nullable=True),
        sa.Column("answer", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("user_name", "key", name="pk_request_keys"),
    )
    op.create_index("ix_request_keys_at", "request_keys", ["at"])
