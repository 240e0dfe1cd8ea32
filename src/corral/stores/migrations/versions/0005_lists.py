"""Jobs by kind: workbenches are few among many jobs, and people look for theirs."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_index("ix_jobs_kind_id", "jobs", ["kind", "id"])
