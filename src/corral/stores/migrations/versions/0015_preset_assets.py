"""Models and data sets that operators register for presets."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0013"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    texts = ("kind", "name", "format", "source", "path", "description", "created_by")
    op.create_table(
        "preset_assets",
        *(sa.Column(name, TEXT, nullable=False) for name in texts),
        sa.Column("classes", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "name"),
    )
