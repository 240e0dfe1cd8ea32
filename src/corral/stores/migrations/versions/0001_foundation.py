"""The first schema: jobs, attempts, fleet, people, scores, history, and the default queue."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
NOT_ENDED = sa.text("state NOT IN ('stopped', 'completed', 'failed')")


def upgrade() -> None:
    _create_own_tables()
    _create_jobs()
    _create_fleet()
    _create_people()
    _create_history()


def _required(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def _optional(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=True)


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, columns)


def _create_own_tables() -> None:
    counters = op.create_table(
        "counters",
        _required("name", TEXT),
        _required("value", sa.BigInteger()),
        sa.PrimaryKeyConstraint("name", name="pk_counters"),
    )
    op.bulk_insert(counters, [{"name": name, "value": 0} for name in ("epoch", "job", "event", "cycle")])
    op.create_table(
        "meta",
        _required("key", TEXT),
        _required("value", TEXT),
        sa.PrimaryKeyConstraint("key", name="pk_meta"),
    )


def _create_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", ROW_ID, nullable=False, autoincrement=False),
        _required("name", TEXT),
        _required("user_name", TEXT),
        _required("kind", TEXT),
        _required("state", TEXT),
        _required("queue", TEXT),
        _required("priority", sa.BigInteger()),
        _required("created_at", sa.Double()),
        _optional("queued_at", sa.Double()),
        _optional("pinned_at", sa.Double()),
        _optional("started_at", sa.Double()),
        _optional("ended_at", sa.Double()),
        _required("attempt", sa.BigInteger()),
        _required("version", sa.BigInteger()),
        _required("body", sa.Text()),
        _required("spec", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
        sa.UniqueConstraint("user_name", "name", name="uq_jobs_user_name_name"),
    )
    for column in ("name", "priority", "created_at", "state", "user_name", "queue"):
        _index("jobs", column, "id")
    _index("jobs", "user_name", "created_at", "id")
    op.create_index("ix_jobs_not_ended", "jobs", ["id"], sqlite_where=NOT_ENDED, postgresql_where=NOT_ENDED)
    op.create_table(
        "attempts",
        _required("job_id", sa.BigInteger()),
        _required("number", sa.BigInteger()),
        _required("planned_at", sa.Double()),
        _optional("started_at", sa.Double()),
        _optional("ended_at", sa.Double()),
        _optional("end_reason", TEXT),
        _optional("exit_code", sa.BigInteger()),
        _required("allocation", sa.Text()),
        _required("message", sa.Text()),
        sa.PrimaryKeyConstraint("job_id", "number", name="pk_attempts"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_attempts_job_id", ondelete="CASCADE"),
    )
    _index("attempts", "planned_at", "job_id", "number")


def _create_fleet() -> None:
    op.create_table(
        "nodes",
        _required("id", TEXT),
        _required("cluster", TEXT),
        _required("state", TEXT),
        _required("cpu_milli", sa.BigInteger()),
        _required("memory_bytes", sa.BigInteger()),
        _required("labels", sa.Text()),
        _optional("load", sa.Double()),
        sa.PrimaryKeyConstraint("id", name="pk_nodes"),
    )
    op.create_table(
        "gpus",
        _required("id", TEXT),
        _required("node_id", TEXT),
        _required("gpu_index", sa.BigInteger()),
        _required("model", TEXT),
        _required("memory_bytes", sa.BigInteger()),
        _required("health", TEXT),
        _required("pool", TEXT),
        sa.PrimaryKeyConstraint("id", name="pk_gpus"),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="fk_gpus_node_id", ondelete="CASCADE"),
    )
    _index("gpus", "node_id", "gpu_index")
    queues = op.create_table(
        "queues",
        _required("name", TEXT),
        _required("pool", TEXT),
        _required("policy", TEXT),
        _required("blocking", TEXT),
        _required("placement", TEXT),
        _required("weight", sa.Double()),
        _required("guaranteed_gpus", sa.BigInteger()),
        _optional("max_gpus", sa.BigInteger()),
        _optional("max_length", sa.BigInteger()),
        _optional("max_seconds", sa.Double()),
        _required("kinds", sa.Text()),
        _optional("min_job_gpus", sa.BigInteger()),
        _optional("max_job_gpus", sa.BigInteger()),
        sa.PrimaryKeyConstraint("name", name="pk_queues"),
    )
    # Every pool has its queue; an operator may change or delete this one, and then it stays so.
    default = {
        "name": "default",
        "pool": "default",
        "policy": "fair-share",
        "blocking": "backfill",
        "placement": "pack",
        "weight": 1.0,
        "guaranteed_gpus": 0,
        "kinds": "[]",
    }
    op.bulk_insert(queues, [default])


def _create_people() -> None:
    op.create_table(
        "users",
        _required("name", TEXT),
        _required("role", TEXT),
        _optional("password_hash", TEXT),
        _required("must_change_password", sa.Boolean()),
        _required("disabled", sa.Boolean()),
        _required("created_at", sa.Double()),
        sa.PrimaryKeyConstraint("name", name="pk_users"),
    )
    op.create_table(
        "quotas",
        _required("user_name", TEXT),
        _required("kind", TEXT),
        _optional("gpu_milli", sa.BigInteger()),
        _optional("cpu_milli", sa.BigInteger()),
        _optional("memory_bytes", sa.BigInteger()),
        sa.PrimaryKeyConstraint("user_name", "kind", name="pk_quotas"),
        sa.ForeignKeyConstraint(["user_name"], ["users.name"], name="fk_quotas_user_name", ondelete="CASCADE"),
    )
    op.create_table(
        "credentials",
        _required("id", TEXT),
        _required("kind", TEXT),
        _required("user_name", TEXT),
        _required("name", TEXT),
        _required("secret_hash", TEXT),
        _required("csrf", TEXT),
        _required("created_at", sa.Double()),
        _optional("expires_at", sa.Double()),
        _optional("last_used_at", sa.Double()),
        sa.PrimaryKeyConstraint("id", name="pk_credentials"),
        sa.UniqueConstraint("secret_hash", name="uq_credentials_secret_hash"),
        sa.ForeignKeyConstraint(["user_name"], ["users.name"], name="fk_credentials_user_name", ondelete="CASCADE"),
    )
    _index("credentials", "user_name", "kind")
    op.create_table(
        "scores",
        _required("user_name", TEXT),
        _required("model", TEXT),
        _required("value", sa.Double()),
        _required("usage", sa.Double()),
        _required("at", sa.Double()),
        sa.PrimaryKeyConstraint("user_name", "model", name="pk_scores"),
    )


def _create_history() -> None:
    op.create_table(
        "events",
        sa.Column("id", ROW_ID, nullable=False, autoincrement=False),
        _required("at", sa.Double()),
        _required("actor", TEXT),
        _required("action", TEXT),
        _required("subject", TEXT),
        _required("owner", TEXT),
        _required("detail", sa.Text()),
        _required("source", TEXT),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
    )
    for column in ("at", "actor", "subject", "owner"):
        _index("events", column, "id")
    op.create_table(
        "cycles",
        sa.Column("id", ROW_ID, nullable=False, autoincrement=False),
        _required("at", sa.Double()),
        _required("is_base", sa.Boolean()),
        _required("digest", TEXT),
        _required("changes", sa.LargeBinary()),
        _required("plan", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("id", name="pk_cycles"),
    )
    _index("cycles", "at")
    op.create_index(
        "ix_cycles_base",
        "cycles",
        ["id"],
        sqlite_where=sa.text("is_base = 1"),
        postgresql_where=sa.text("is_base"),
    )
