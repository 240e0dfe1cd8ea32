"""Reservations, receipts of preemptions, and queues whose order preempts."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME: sa.types.TypeEngine[Any] = sa.Double()
NUMBER = sa.BigInteger()


def upgrade() -> None:
    op.add_column("queues", sa.Column("preempts", sa.Boolean(), nullable=False, server_default=sa.false()))
    _create_receipts()
    _create_reservations()


def _create_receipts() -> None:
    op.create_table(
        "receipts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False, autoincrement=False),
        _required("at", TIME),
        _required("rule", TEXT),
        _required("job_id", NUMBER),
        _required("attempt", NUMBER),
        _required("user_name", TEXT),
        _required("for_job", NUMBER),
        _required("for_user", TEXT),
        _required("is_open", sa.Boolean()),
        _required("body", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_receipts"),
    )
    for column in ("job_id", "for_job", "user_name", "for_user"):
        op.create_index(f"ix_receipts_{column}_id", "receipts", [column, "id"])
    op.create_index("ix_receipts_at", "receipts", ["at"])
    op.create_index(
        "ix_receipts_open",
        "receipts",
        ["id"],
        sqlite_where=sa.text("is_open = 1"),
        postgresql_where=sa.text("is_open"),
    )
    op.bulk_insert(
        sa.table("counters", sa.column("name"), sa.column("value")),
        [{"name": "receipt", "value": 0}],
    )


def _create_reservations() -> None:
    op.create_table(
        "reservations",
        *(_required(name, TEXT) for name in ("name", "pool", "model")),
        *(_required(name, sa.Text()) for name in ("gpus", "users", "groups")),
        _required("since", TIME),
        sa.Column("until", TIME, nullable=True),
        *(_required(name, sa.Boolean()) for name in ("lends", "is_over")),
        *(_required(name, TEXT) for name in ("note", "created_by")),
        _required("created_at", TIME),
        sa.PrimaryKeyConstraint("name", name="pk_reservations"),
    )
    op.create_index("ix_reservations_until", "reservations", ["until"])


def _required(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)
