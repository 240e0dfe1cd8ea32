"""Budgets: prices of GPU time, limits of accounts, and the ledger."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "gpu_prices",
        sa.Column("model", TEXT, nullable=False),
        sa.Column("weight_micro", sa.BigInteger(), nullable=False),
        sa.Column("money_micro", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("model", name="pk_gpu_prices"),
    )
    op.create_table(
        "budgets",
        sa.Column("account_kind", TEXT, nullable=False),
        sa.Column("account_name", TEXT, nullable=False),
        sa.Column("unit", TEXT, nullable=False),
        sa.Column("period", TEXT, nullable=False),
        sa.Column("soft_micro", sa.BigInteger(), nullable=True),
        sa.Column("hard_micro", sa.BigInteger(), nullable=True),
        sa.Column("period_begin", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("account_kind", "account_name", "unit", name="pk_budgets"),
    )
    op.create_table(
        "ledger",
        sa.Column("entry", TEXT, nullable=False),
        sa.Column("account_kind", TEXT, nullable=False),
        sa.Column("account_name", TEXT, nullable=False),
        sa.Column("unit", TEXT, nullable=False),
        sa.Column("side", sa.BigInteger(), nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("until", sa.Double(), nullable=True),
        sa.Column("amount_micro", sa.BigInteger(), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=True),
        sa.Column("attempt", sa.BigInteger(), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("entry", "account_kind", "account_name", "unit", "side", name="pk_ledger"),
    )
    op.create_index(
        "ix_ledger_account_kind_account_name_unit_at", "ledger", ["account_kind", "account_name", "unit", "at"]
    )
    op.create_index("ix_ledger_job_id_attempt", "ledger", ["job_id", "attempt"])
