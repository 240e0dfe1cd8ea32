"""Rules for the groups of sign-in providers. Stored providers have none yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("providers", sa.Column("groups_claim", TEXT, nullable=False, server_default="groups"))
    op.add_column("providers", sa.Column("group_rules", sa.Text(), nullable=False, server_default="[]"))
