"""The texts of a job that its search looks at beside the name and the user. Stored jobs have none yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("jobs", sa.Column("search_text", TEXT, nullable=True))
    has_text = sa.text("search_text IS NOT NULL")
    op.create_index("ix_jobs_search_text", "jobs", ["id"], sqlite_where=has_text, postgresql_where=has_text)
