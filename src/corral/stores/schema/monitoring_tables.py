"""The part of the schema for usage, health, alerts, channels and reports. See `tables`."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, PrimaryKeyConstraint, Table, text

from corral.stores.schema.tables import (
    PlainText,
    json_column,
    metadata,
    name_column,
    number,
    row_id,
    text_column,
    time_column,
)

#: A literal text, because SQLite uses a partial index only for a query with exactly the same condition.
NOT_RESOLVED = "state <> 'resolved'"
STILL_WAITING = "state = 'waiting'"
CHECK_IS_OPEN = "state = 'open'"
NOT_OVER = "ended_at IS NULL"

usage_rows = Table(
    "usage",
    metadata,
    # No foreign key: a job's usage is kept after the job is deleted.
    number("job_id"),
    number("number"),
    text_column("job_name"),
    text_column("user_name"),
    text_column("group_name", nullable=True),
    text_column("kind"),
    text_column("queue"),
    text_column("pool"),
    text_column("model"),
    number("nodes"),
    number("gpu_milli"),
    json_column("gpu_ids"),
    time_column("queued_at"),
    time_column("planned_at"),
    time_column("started_at", nullable=True),
    time_column("ended_at", nullable=True),
    text_column("end_reason", nullable=True),
    text_column("outcome", nullable=True),
    time_column("gpu_seconds", default="0"),
    time_column("busy_gpu_seconds", default="0"),
    time_column("idle_gpu_seconds", default="0"),
    time_column("energy_joules", default="0"),
    number("memory_peak_bytes", default="0"),
    json_column("used_gpu_ids", default="[]"),
    PrimaryKeyConstraint("job_id", "number"),
    Index(None, "planned_at", "job_id", "number"),
    Index(None, "ended_at"),
    Index("ix_usage_open", "job_id", sqlite_where=text(NOT_OVER), postgresql_where=text(NOT_OVER)),
)

condition_rows = Table(
    "gpu_conditions",
    metadata,
    Column("gpu_id", PlainText, primary_key=True),
    text_column("health"),
    time_column("since"),
    json_column("evidence"),
    json_column("episodes"),
)

check_rows = Table(
    "gpu_checks",
    metadata,
    # No foreign key: a check is kept after its job is deleted.
    Column("job_id", BigInteger, primary_key=True, autoincrement=False),
    text_column("gpu_id"),
    text_column("node"),
    text_column("model"),
    text_column("state"),
    time_column("requested_at"),
    json_column("body"),
    Index(None, "gpu_id", "job_id"),
    Index("ix_gpu_checks_open", "job_id", sqlite_where=text(CHECK_IS_OPEN), postgresql_where=text(CHECK_IS_OPEN)),
)

idle_warning_rows = Table(
    "idle_warnings",
    metadata,
    Column("job_id", BigInteger, primary_key=True, autoincrement=False),
    number("attempt"),
    time_column("warned_at"),
    time_column("deadline"),
    time_column("extended_at", nullable=True),
)

alert_rule_rows = Table("alert_rules", metadata, name_column(), json_column("body"))

alert_rows = Table(
    "alerts",
    metadata,
    row_id(),
    text_column("rule"),
    text_column("subject"),
    text_column("severity"),
    text_column("state"),
    text_column("owner"),
    time_column("pending_since"),
    time_column("resolved_at", nullable=True),
    # everything else, as JSON
    json_column("body"),
    Index(None, "rule", "id"),
    Index(None, "subject", "id"),
    Index(None, "owner", "id"),
    Index("ix_alerts_live", "id", sqlite_where=text(NOT_RESOLVED), postgresql_where=text(NOT_RESOLVED)),
)

silence_rows = Table(
    "silences",
    metadata,
    Column("id", PlainText, primary_key=True),
    time_column("ends_at"),
    json_column("body"),
)

channel_rows = Table(
    "channels",
    metadata,
    name_column(),
    text_column("url"),
    text_column("shown"),
    Column("enabled", Boolean, nullable=False),
    text_column("min_severity"),
    text_column("description"),
    Column("from_config", Boolean, nullable=False),
    time_column("created_at"),
)

delivery_rows = Table(
    "deliveries",
    metadata,
    row_id(),
    text_column("channel"),
    text_column("state"),
    time_column("created_at"),
    json_column("body"),
    Index(None, "channel", "id"),
    Index("ix_deliveries_waiting", "id", sqlite_where=text(STILL_WAITING), postgresql_where=text(STILL_WAITING)),
)

report_rows = Table(
    "reports",
    metadata,
    Column("id", PlainText, primary_key=True),
    text_column("state"),
    time_column("created_at"),
    json_column("body"),
    Index(None, "created_at", "id"),
)

report_schedule_rows = Table("report_schedules", metadata, name_column(), json_column("body"))
