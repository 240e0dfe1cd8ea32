"""Which GPUs of a node are linked to each other. Nothing is known of those that are stored; their engine will tell."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("gpus", sa.Column("link_group", TEXT, nullable=False, server_default=""))
