"""Estimated starts and what became of them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME: sa.types.TypeEngine[Any] = sa.Double()
NUMBER = sa.BigInteger()


def upgrade() -> None:
    op.create_table(
        "start_estimates",
        _required("job_id", NUMBER),
        _required("made_at", TIME),
        _required("attempt", NUMBER),
        *(_required(name, TEXT) for name in ("queue", "user_name")),
        *(_required(name, TIME) for name in ("p50", "p90", "raw_p50", "raw_p90")),
        sa.Column("started_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("job_id", "made_at", name="pk_start_estimates"),
    )
    op.create_index("ix_start_estimates_made_at", "start_estimates", ["made_at"])
    is_open = sa.text("started_at IS NULL")
    op.create_index(
        "ix_start_estimates_open", "start_estimates", ["job_id"], sqlite_where=is_open, postgresql_where=is_open
    )


def _required(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)
