"""Active checks of GPUs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "gpu_checks",
        sa.Column("job_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("gpu_id", TEXT, nullable=False),
        sa.Column("node", TEXT, nullable=False),
        sa.Column("model", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("requested_at", sa.Double(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", name="pk_gpu_checks"),
    )
    op.create_index("ix_gpu_checks_gpu_id_job_id", "gpu_checks", ["gpu_id", "job_id"])
    op.create_index(
        "ix_gpu_checks_open",
        "gpu_checks",
        ["job_id"],
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
