"""Links between the GPUs of a node. They are unknown for stored nodes until their engine reports them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("gpus", sa.Column("link_group", TEXT, nullable=False, server_default=""))
