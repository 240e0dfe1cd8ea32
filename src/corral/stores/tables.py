"""The schema: every table, once, for SQLite and PostgreSQL alike.

A field that is filtered, sorted or joined by is a column; the rest of a thing is one JSON text (see `codec`).
The migrations create exactly this; a test compares the two on both databases.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)
from sqlalchemy.types import TypeEngine

from corral.stores.codec import storable

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

#: Users whom somebody else signs in: nobody comes from there twice.
FROM_PROVIDER = "provider <> 'local'"

#: Written out, because SQLite uses a partial index only for a query with the very same words.
NOT_ENDED = "state NOT IN ('stopped', 'completed', 'failed')"


class PlainText(TypeDecorator[str]):
    """Text that sorts by code point on both databases and takes any string."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[str]:
        # Not through dialect.type_descriptor: with psycopg that makes a VARCHAR of it.
        return Text(collation="C" if dialect.name == "postgresql" else None)

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else storable(value)


def _number(name: str, *, nullable: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable)


def _time(name: str, *, nullable: bool = False) -> Column[float]:
    return Column(name, Double, nullable=nullable)


def _text(name: str, *, nullable: bool = False, default: str | None = None) -> Column[str]:
    return Column(name, PlainText, nullable=nullable, server_default=default)


def _name() -> Column[str]:
    return Column("name", PlainText, primary_key=True)


def _json(name: str, *, default: str | None = None) -> Column[str]:
    return Column(name, Text, nullable=False, server_default=default)


def _of_user() -> Column[str]:
    """Whose it is; it goes with the user."""
    return Column("user_name", PlainText, ForeignKey("users.name", ondelete="CASCADE"), nullable=False)


def _row_id() -> Column[int]:
    # SQLite's row id, which costs nothing, must be called INTEGER.
    return Column(
        "id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False, nullable=False
    )


# ------------------------------------------------------------------------------------------------ the store itself

#: `epoch` (which server may write), and the last id given to a job, an event and a cycle
counter_rows = Table("counters", metadata, Column("name", PlainText, primary_key=True), _number("value"))

meta_rows = Table("meta", metadata, Column("key", PlainText, primary_key=True), _text("value"))

# ------------------------------------------------------------------------------------------------ jobs

job_rows = Table(
    "jobs",
    metadata,
    _row_id(),
    _text("name"),
    # Not "user": an unquoted user is the database's own account in PostgreSQL.
    _text("user_name"),
    _text("kind"),
    _text("state"),
    _text("queue"),
    _number("priority"),
    _time("created_at"),
    _time("queued_at", nullable=True),
    _time("pinned_at", nullable=True),
    _time("started_at", nullable=True),
    _time("ended_at", nullable=True),
    _number("attempt"),
    _number("version"),
    Column("body", Text, nullable=False),
    Column("spec", Text, nullable=False),
    UniqueConstraint("user_name", "name"),
    Index(None, "name", "id"),
    Index(None, "priority", "id"),
    Index(None, "created_at", "id"),
    Index(None, "state", "id"),
    Index(None, "user_name", "id"),
    Index(None, "user_name", "created_at", "id"),
    Index(None, "queue", "id"),
    Index("ix_jobs_not_ended", "id", sqlite_where=text(NOT_ENDED), postgresql_where=text(NOT_ENDED)),
)

attempt_rows = Table(
    "attempts",
    metadata,
    Column("job_id", BigInteger, ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False),
    _number("number"),
    _time("planned_at"),
    _time("started_at", nullable=True),
    _time("ended_at", nullable=True),
    _text("end_reason", nullable=True),
    _number("exit_code", nullable=True),
    Column("allocation", Text, nullable=False),
    # JSON, as an engine's message may hold any character
    Column("message", Text, nullable=False),
    PrimaryKeyConstraint("job_id", "number"),
    Index(None, "planned_at", "job_id", "number"),
)

# ------------------------------------------------------------------------------------------------ fleet

node_rows = Table(
    "nodes",
    metadata,
    Column("id", PlainText, primary_key=True),
    _text("cluster"),
    _text("state"),
    _number("cpu_milli"),
    _number("memory_bytes"),
    Column("labels", Text, nullable=False),
    _time("load", nullable=True),
)

gpu_rows = Table(
    "gpus",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("node_id", PlainText, ForeignKey("nodes.id", ondelete="CASCADE"), nullable=False),
    _number("gpu_index"),
    _text("model"),
    _number("memory_bytes"),
    _text("health"),
    _text("pool"),
    Index(None, "node_id", "gpu_index"),
)

queue_rows = Table(
    "queues",
    metadata,
    Column("name", PlainText, primary_key=True),
    _text("pool"),
    _text("policy"),
    _text("blocking"),
    _text("placement"),
    Column("weight", Double, nullable=False),
    _number("guaranteed_gpus"),
    _number("max_gpus", nullable=True),
    _number("max_length", nullable=True),
    Column("max_seconds", Double, nullable=True),
    Column("kinds", Text, nullable=False),
    _number("min_job_gpus", nullable=True),
    _number("max_job_gpus", nullable=True),
    _json("groups", default="[]"),
)

pool_rows = Table("pools", metadata, _name(), _text("description"), _time("created_at"))

# ------------------------------------------------------------------------------------------------ catalog

flavor_rows = Table(
    "flavors", metadata, _name(), _json("models"), _json("labels"), _text("description"), _time("created_at")
)

package_rows = Table(
    "packages",
    metadata,
    _name(),
    _number("gpus"),
    _number("gpu_milli"),
    _number("cpu_milli"),
    _number("memory_bytes"),
    # Without its flavor a package would fit everywhere: a flavor stays as long as a package names it.
    Column("flavor", PlainText, ForeignKey("flavors.name"), nullable=True),
    Column("rdma", Boolean, nullable=False),
    _json("kinds"),
    _text("description"),
    _time("created_at"),
)

# ------------------------------------------------------------------------------------------------ people

user_rows = Table(
    "users",
    metadata,
    Column("name", PlainText, primary_key=True),
    _text("role"),
    _text("password_hash", nullable=True),
    Column("must_change_password", Boolean, nullable=False),
    Column("disabled", Boolean, nullable=False),
    _time("created_at"),
    _text("group_name", nullable=True),
    _text("permission_group", default="everyone"),
    _text("display_name", default=""),
    _text("email", default=""),
    _text("provider", default="local"),
    _text("subject", default=""),
    Index(
        "ix_users_provider_subject",
        "provider",
        "subject",
        unique=True,
        sqlite_where=text(FROM_PROVIDER),
        postgresql_where=text(FROM_PROVIDER),
    ),
)

group_rows = Table(
    "groups",
    metadata,
    _name(),
    Column("pool", PlainText, ForeignKey("pools.name", ondelete="SET NULL"), nullable=True),
    _text("description"),
    _time("created_at"),
    # A pool belongs to one group at most.
    UniqueConstraint("pool"),
)

permission_group_rows = Table(
    "permission_groups", metadata, _name(), _json("functions"), _text("description"), _time("created_at")
)

quota_rows = Table(
    "quotas",
    metadata,
    _of_user(),
    _text("kind"),
    _number("gpu_milli", nullable=True),
    _number("cpu_milli", nullable=True),
    _number("memory_bytes", nullable=True),
    PrimaryKeyConstraint("user_name", "kind"),
)

volume_quota_rows = Table(
    "volume_quotas",
    metadata,
    _of_user(),
    _text("type"),
    _number("max_bytes"),
    PrimaryKeyConstraint("user_name", "type"),
)

credential_rows = Table(
    "credentials",
    metadata,
    Column("id", PlainText, primary_key=True),
    _text("kind"),
    _of_user(),
    _text("name"),
    _text("secret_hash"),
    _text("csrf"),
    _time("created_at"),
    _time("expires_at", nullable=True),
    _time("last_used_at", nullable=True),
    _json("scopes", default='["full"]'),
    UniqueConstraint("secret_hash"),
    Index(None, "user_name", "kind"),
)

ssh_key_rows = Table(
    "ssh_keys",
    metadata,
    Column("id", PlainText, primary_key=True),
    _of_user(),
    _text("name"),
    _text("public_key"),
    _text("fingerprint"),
    _time("created_at"),
    UniqueConstraint("user_name", "fingerprint"),
    Index(None, "fingerprint"),
)

provider_rows = Table(
    "providers",
    metadata,
    Column("id", PlainText, primary_key=True),
    _text("kind"),
    _text("title"),
    _text("issuer"),
    _text("client_id"),
    _text("client_secret"),
    Column("enabled", Boolean, nullable=False),
    _json("allow"),
    Column("group_name", PlainText, ForeignKey("groups.name", ondelete="SET NULL"), nullable=True),
    _text("organisation"),
    _text("api_token"),
    _time("created_at"),
)

identity_rows = Table(
    "identities",
    metadata,
    Column("provider", PlainText, ForeignKey("providers.id", ondelete="CASCADE"), nullable=False),
    _text("subject"),
    _text("login"),
    _text("name"),
    _text("email"),
    _time("seen_at"),
    # Somebody whose user was deleted is known as before, and can be on-boarded again.
    Column("user_name", PlainText, ForeignKey("users.name", ondelete="SET NULL"), nullable=True),
    PrimaryKeyConstraint("provider", "subject"),
    Index(None, "user_name"),
)

score_rows = Table(
    "scores",
    metadata,
    _text("user_name"),
    _text("model"),
    Column("value", Double, nullable=False),
    Column("usage", Double, nullable=False),
    _time("at"),
    PrimaryKeyConstraint("user_name", "model"),
)

#: what `scores` was at every change
score_point_rows = Table(
    "score_points",
    metadata,
    _text("user_name"),
    _text("model"),
    _time("at"),
    Column("value", Double, nullable=False),
    Column("usage", Double, nullable=False),
    PrimaryKeyConstraint("user_name", "model", "at"),
)

# ------------------------------------------------------------------------------------------------ history

event_rows = Table(
    "events",
    metadata,
    _row_id(),
    _time("at"),
    _text("actor"),
    _text("action"),
    _text("subject"),
    _text("owner"),
    Column("detail", Text, nullable=False),
    _text("source"),
    Index(None, "at", "id"),
    Index(None, "actor", "id"),
    Index(None, "subject", "id"),
    Index(None, "owner", "id"),
)

cycle_rows = Table(
    "cycles",
    metadata,
    _row_id(),
    _time("at"),
    Column("is_base", Boolean, nullable=False),
    _text("digest"),
    Column("changes", LargeBinary, nullable=False),
    Column("plan", LargeBinary, nullable=False),
    Index(None, "at"),
    Index("ix_cycles_base", "id", sqlite_where=text("is_base = 1"), postgresql_where=text("is_base")),
)
