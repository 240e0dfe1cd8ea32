"""GPUs that move to another pool when their jobs have ended."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("gpus", sa.Column("next_pool", TEXT, nullable=False, server_default=""))
