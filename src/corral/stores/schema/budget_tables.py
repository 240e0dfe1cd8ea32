"""The part of the schema for budgets. See `tables`."""

from __future__ import annotations

from sqlalchemy import Index, PrimaryKeyConstraint, Table

from corral.stores.schema.tables import json_column, metadata, number, text_column, time_column

gpu_price_rows = Table(
    "gpu_prices",
    metadata,
    text_column("model"),
    number("weight_micro"),
    number("money_micro"),
    PrimaryKeyConstraint("model"),
)

budget_rows = Table(
    "budgets",
    metadata,
    text_column("account_kind"),
    text_column("account_name"),
    text_column("unit"),
    text_column("period"),
    number("soft_micro", nullable=True),
    number("hard_micro", nullable=True),
    # of the present period
    time_column("period_begin"),
    PrimaryKeyConstraint("account_kind", "account_name", "unit"),
)

#: Both sides of every entry: that of the account, and that of the platform (`side` 0 and 1). Rows outlive jobs and
#: accounts, so they have no foreign keys.
ledger_rows = Table(
    "ledger",
    metadata,
    text_column("entry"),
    text_column("account_kind"),
    text_column("account_name"),
    text_column("unit"),
    number("side"),
    text_column("kind"),
    time_column("at"),
    time_column("until", nullable=True),
    number("amount_micro"),
    number("job_id", nullable=True),
    number("attempt", nullable=True),
    # what a statement shows beside the amount
    json_column("body"),
    PrimaryKeyConstraint("entry", "account_kind", "account_name", "unit", "side"),
    Index(None, "account_kind", "account_name", "unit", "at"),
    Index(None, "job_id", "attempt"),
)
