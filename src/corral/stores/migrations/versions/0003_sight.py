"""Usage, health, alerts, channels and reports."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NUMBER = sa.BigInteger()
TIME: sa.types.TypeEngine[Any] = sa.Double()


def upgrade() -> None:
    op.add_column("nodes", _required("withheld", TEXT, "ready"))
    op.execute("UPDATE nodes SET withheld = state WHERE state IN ('cordoned', 'draining')")
    op.bulk_insert(
        sa.table("counters", sa.column("name"), sa.column("value")),
        [{"name": name, "value": 0} for name in ("alert", "delivery")],
    )
    _create_usage()
    _create_health()
    _create_alerts()
    _create_channels()
    _create_reports()


def _required(name: str, kind: sa.types.TypeEngine[Any], default: str | None = None) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, server_default=default)


def _optional(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=True)


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, columns)


def _partial_index(name: str, table: str, column: str, condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, table, [column], sqlite_where=where, postgresql_where=where)


def _row_id() -> sa.Column[Any]:
    return sa.Column("id", ROW_ID, nullable=False, autoincrement=False)


def _create_usage() -> None:
    op.create_table(
        "usage",
        _required("job_id", NUMBER),
        _required("number", NUMBER),
        _required("job_name", TEXT),
        _required("user_name", TEXT),
        _optional("group_name", TEXT),
        *(_required(name, TEXT) for name in ("kind", "queue", "pool", "model")),
        _required("nodes", NUMBER),
        _required("gpu_milli", NUMBER),
        _required("gpu_ids", sa.Text()),
        _required("queued_at", TIME),
        _required("planned_at", TIME),
        _optional("started_at", TIME),
        _optional("ended_at", TIME),
        _optional("end_reason", TEXT),
        _optional("outcome", TEXT),
        *(
            _required(name, TIME, "0")
            for name in ("gpu_seconds", "busy_gpu_seconds", "idle_gpu_seconds", "energy_joules")
        ),
        _required("memory_peak_bytes", NUMBER, "0"),
        sa.PrimaryKeyConstraint("job_id", "number", name="pk_usage"),
    )
    _index("usage", "planned_at", "job_id", "number")
    _index("usage", "ended_at")
    _partial_index("ix_usage_open", "usage", "job_id", "ended_at IS NULL")


def _create_health() -> None:
    op.create_table(
        "gpu_conditions",
        _required("gpu_id", TEXT),
        _required("health", TEXT),
        _required("since", TIME),
        _required("evidence", sa.Text()),
        _required("episodes", sa.Text()),
        sa.PrimaryKeyConstraint("gpu_id", name="pk_gpu_conditions"),
    )
    op.create_table(
        "idle_warnings",
        sa.Column("job_id", NUMBER, nullable=False, autoincrement=False),
        _required("attempt", NUMBER),
        _required("warned_at", TIME),
        _required("deadline", TIME),
        _optional("extended_at", TIME),
        sa.PrimaryKeyConstraint("job_id", name="pk_idle_warnings"),
    )


def _create_alerts() -> None:
    op.create_table(
        "alert_rules",
        _required("name", TEXT),
        _required("body", sa.Text()),
        sa.PrimaryKeyConstraint("name", name="pk_alert_rules"),
    )
    op.create_table(
        "alerts",
        _row_id(),
        *(_required(name, TEXT) for name in ("rule", "subject", "severity", "state", "owner")),
        _required("pending_since", TIME),
        _optional("resolved_at", TIME),
        _required("body", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_alerts"),
    )
    for column in ("rule", "subject", "owner"):
        _index("alerts", column, "id")
    _partial_index("ix_alerts_live", "alerts", "id", "state <> 'resolved'")
    op.create_table(
        "silences",
        _required("id", TEXT),
        _required("ends_at", TIME),
        _required("body", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_silences"),
    )


def _create_channels() -> None:
    op.create_table(
        "channels",
        _required("name", TEXT),
        _required("url", TEXT),
        _required("shown", TEXT),
        _required("enabled", sa.Boolean()),
        _required("min_severity", TEXT),
        _required("description", TEXT),
        _required("from_config", sa.Boolean()),
        _required("created_at", TIME),
        sa.PrimaryKeyConstraint("name", name="pk_channels"),
    )
    op.create_table(
        "deliveries",
        _row_id(),
        _required("channel", TEXT),
        _required("state", TEXT),
        _required("created_at", TIME),
        _required("body", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
    )
    _index("deliveries", "channel", "id")
    _partial_index("ix_deliveries_waiting", "deliveries", "id", "state = 'waiting'")


def _create_reports() -> None:
    op.create_table(
        "reports",
        _required("id", TEXT),
        _required("state", TEXT),
        _required("created_at", TIME),
        _required("body", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_reports"),
    )
    _index("reports", "created_at", "id")
    op.create_table(
        "report_schedules",
        _required("name", TEXT),
        _required("body", sa.Text()),
        sa.PrimaryKeyConstraint("name", name="pk_report_schedules"),
    )
