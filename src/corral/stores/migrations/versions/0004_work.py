"""Images, logins to registries, presets."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME: sa.types.TypeEngine[Any] = sa.Double()


def upgrade() -> None:
    op.create_table(
        "images",
        *(_required(name, TEXT) for name in ("owner", "name", "address", "visibility")),
        *(_required(name, sa.Text()) for name in ("shared_users", "shared_groups")),
        sa.Column("credential", TEXT, nullable=True),
        _required("description", TEXT),
        _required("created_at", TIME),
        sa.PrimaryKeyConstraint("owner", "name", name="pk_images"),
    )
    op.create_table(
        "registry_credentials",
        *(_required(name, TEXT) for name in ("owner", "name", "registry", "username", "secret")),
        _required("created_at", TIME),
        sa.PrimaryKeyConstraint("owner", "name", name="pk_registry_credentials"),
    )
    op.create_table(
        "presets",
        _required("name", TEXT),
        _required("yaml", sa.Text()),
        _required("created_by", TEXT),
        _required("created_at", TIME),
        sa.PrimaryKeyConstraint("name", name="pk_presets"),
    )


def _required(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)
