"""Usage, health, alerts, channels and reports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NUMBER = sa.BigInteger()
TIME: sa.types.TypeEngine[Any] = sa.Double()

#: Past attempts that are written at once.
CHUNK = 1000
#: What a job went on as after an attempt that ended so; after every other end it had failed.
OUTCOMES = {
    **dict.fromkeys(("preempted", "node_lost", "gpu_failed", "lost"), "queued"),
    **dict.fromkeys(("stopped_by_user", "stopped_by_operator"), "stopped"),
}


def upgrade() -> None:
    op.add_column("nodes", _required("withheld", TEXT, "ready"))
    op.execute("UPDATE nodes SET withheld = state WHERE state IN ('cordoned', 'draining')")
    op.bulk_insert(
        sa.table("counters", sa.column("name"), sa.column("value")),
        [{"name": name, "value": 0} for name in ("alert", "delivery")],
    )
    _create_usage()
    _tell_past_usage(op.get_bind())
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
        _required("used_gpu_ids", sa.Text(), "[]"),
        sa.PrimaryKeyConstraint("job_id", "number", name="pk_usage"),
    )
    _index("usage", "planned_at", "job_id", "number")
    _index("usage", "ended_at")
    _partial_index("ix_usage_open", "usage", "job_id", "ended_at IS NULL")


def _tell_past_usage(connection: sa.Connection) -> None:
    """Derives the usage of earlier attempts from attempts and jobs; nothing of it was measured."""
    rows: list[dict[str, Any]] = []
    columns = "job_id number job_name user_name group_name kind queue pool model nodes gpu_milli gpu_ids queued_at"
    columns += " planned_at started_at ended_at end_reason outcome"
    usage = sa.table("usage", *(sa.column(name) for name in columns.split()))
    for row in _past_usage(connection):
        rows.append(row)
        if len(rows) == CHUNK:
            connection.execute(usage.insert(), rows)
            rows = []
    if rows:
        connection.execute(usage.insert(), rows)


def _past_usage(connection: sa.Connection) -> Iterator[dict[str, Any]]:
    """Groups and pools are those of today: the former ones were not stored."""
    found = connection.execute(
        sa.text(
            "SELECT a.job_id, a.number, a.planned_at, a.started_at, a.ended_at, a.end_reason, a.exit_code,"
            " a.allocation, j.name, j.user_name, j.kind, j.queue, j.state, j.attempt, j.created_at, j.queued_at,"
            " u.group_name, q.pool"
            " FROM attempts a JOIN jobs j ON j.id = a.job_id LEFT JOIN users u ON u.name = j.user_name"
            " LEFT JOIN queues q ON q.name = j.queue ORDER BY a.job_id, a.number"
        ),
        # There may be very many.
        execution_options={"yield_per": CHUNK},
    )
    job, ended_before = None, None
    for row in found:
        if row.job_id != job:
            job, ended_before = row.job_id, None
        allocation = json.loads(row.allocation)
        gpus = [gpu for grant in allocation["grants"] for gpu in grant.get("gpus", ())]
        # The row of the job has the time at which its last attempt was queued. An earlier one waited since the end of
        # the one before, or since the job was created.
        is_last = row.number == row.attempt and row.state != "queued"
        queued_at = row.queued_at if is_last and row.queued_at is not None else ended_before or row.created_at
        yield {
            "job_id": row.job_id,
            "number": row.number,
            "job_name": row.name,
            "user_name": row.user_name,
            "group_name": row.group_name,
            "kind": row.kind,
            "queue": row.queue,
            "pool": row.pool or "default",
            "model": allocation["model"],
            "nodes": len(allocation["grants"]),
            "gpu_milli": sum(len(grant.get("gpus", ())) * grant["gpu_milli"] for grant in allocation["grants"]),
            "gpu_ids": json.dumps(gpus, separators=(",", ":")),
            "queued_at": min(queued_at, row.planned_at),
            "planned_at": row.planned_at,
            "started_at": row.started_at,
            "ended_at": row.ended_at,
            "end_reason": row.end_reason,
            "outcome": _past_outcome(row),
        }
        ended_before = row.ended_at


def _past_outcome(row: Any) -> str | None:
    if row.ended_at is None:
        return None
    if row.number == row.attempt and row.state in ("stopped", "completed", "failed"):
        return str(row.state)
    if row.end_reason == "exit_code" and row.exit_code == 0:
        return "completed"
    return OUTCOMES.get(row.end_reason, "failed")


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
