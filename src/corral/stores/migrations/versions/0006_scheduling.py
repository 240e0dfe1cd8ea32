"""Reservations, receipts of preemptions, and queues whose order preempts."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME: sa.types.TypeEngine[Any] = sa.Double()


def upgrade() -> None:
    _create_reservations()


def _create_reservations() -> None:
    op.create_table(
        "reservations",
        *(_required(name, TEXT) for name in ("name", "pool", "model")),
        *(_required(name, sa.Text()) for name in ("gpus", "users", "groups")),
        _required("since", TIME),
        sa.Column("until", TIME, nullable=True),
        _required("lends", sa.Boolean()),
        *(_required(name, TEXT) for name in ("note", "created_by")),
        _required("created_at", TIME),
        sa.PrimaryKeyConstraint("name", name="pk_reservations"),
    )
    op.create_index("ix_reservations_until", "reservations", ["until"])


def _required(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)
