"""Volumes, what they hold, with whom they are shared, and the buckets behind some of them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.bulk_insert(sa.table("counters", sa.column("name"), sa.column("value")), [{"name": "volume", "value": 0}])
    op.create_table(
        "volumes",
        sa.Column("id", ROW_ID, nullable=False, autoincrement=False),
        *(_required(name, TEXT) for name in ("owner", "name", "type", "cluster")),
        _required("size_bytes", sa.BigInteger()),
        sa.Column("used_bytes", sa.BigInteger(), nullable=True),
        sa.Column("measured_at", sa.Double(), nullable=True),
        sa.Column("object_store", TEXT, nullable=True),
        *(_required(name, TEXT) for name in ("prefix", "state", "message")),
        _required("shared", sa.Text()),
        _required("read_only", sa.Boolean()),
        _required("created_at", sa.Double()),
        sa.PrimaryKeyConstraint("id", name="pk_volumes"),
        sa.UniqueConstraint("owner", "name", name="uq_volumes_owner_name"),
    )
    op.create_table(
        "object_stores",
        *(_required(name, TEXT) for name in ("name", "kind", "bucket")),
        sa.Column("endpoint", TEXT, nullable=True),
        *(_required(name, TEXT) for name in ("region", "prefix", "access_key", "secret")),
        _required("allow_write", sa.Boolean()),
        _required("created_at", sa.Double()),
        sa.PrimaryKeyConstraint("name", name="pk_object_stores"),
    )


def _required(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)
