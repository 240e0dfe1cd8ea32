"""The schema: every table, for SQLite and PostgreSQL.

A field that queries filter, sort or join by is a column; the other fields are one JSON text (see `row_codec`).
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
    false,
    text,
)
from sqlalchemy.types import TypeEngine

from corral.stores.database.row_codec import storable

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

#: Users of sign-in providers: a provider's account belongs to one user only.
FROM_PROVIDER = "provider <> 'local'"

#: A literal text, because SQLite uses a partial index only for a query with exactly the same condition.
NOT_ENDED = "state NOT IN ('stopped', 'completed', 'failed')"


#: Most jobs have no such text, and the index holds the others only.
HAS_SEARCH_TEXT = "search_text IS NOT NULL"


class PlainText(TypeDecorator[str]):
    """Text that sorts by code point on both databases and takes any string."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[str]:
        # Not through dialect.type_descriptor: with psycopg that makes a VARCHAR of it.
        return Text(collation="C" if dialect.name == "postgresql" else None)

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else storable(value)


def number(name: str, *, nullable: bool = False, default: str | None = None) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable, server_default=default)


def time_column(name: str, *, nullable: bool = False, default: str | None = None) -> Column[float]:
    return Column(name, Double, nullable=nullable, server_default=default)


def text_column(name: str, *, nullable: bool = False, default: str | None = None) -> Column[str]:
    return Column(name, PlainText, nullable=nullable, server_default=default)


def name_column() -> Column[str]:
    return Column("name", PlainText, primary_key=True)


def json_column(name: str, *, default: str | None = None) -> Column[str]:
    return Column(name, Text, nullable=False, server_default=default)


def _of_user() -> Column[str]:
    """The owner; the row is deleted with the user."""
    return Column("user_name", PlainText, ForeignKey("users.name", ondelete="CASCADE"), nullable=False)


def row_id() -> Column[int]:
    # INTEGER, so that SQLite uses its row id, which needs no further index.
    return Column(
        "id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False, nullable=False
    )


# ------------------------------------------------------------------------------------------------ the store itself

#: `epoch` (the server that may write), and the last ids of jobs, events and cycles
counter_rows = Table("counters", metadata, Column("name", PlainText, primary_key=True), number("value"))

meta_rows = Table("meta", metadata, Column("key", PlainText, primary_key=True), text_column("value"))

# ------------------------------------------------------------------------------------------------ jobs

job_rows = Table(
    "jobs",
    metadata,
    row_id(),
    text_column("name"),
    # Not "user": an unquoted user is the database's own account in PostgreSQL.
    text_column("user_name"),
    text_column("kind"),
    text_column("state"),
    text_column("queue"),
    number("priority"),
    time_column("created_at"),
    time_column("queued_at", nullable=True),
    time_column("pinned_at", nullable=True),
    time_column("started_at", nullable=True),
    time_column("ended_at", nullable=True),
    number("attempt"),
    number("version"),
    Column("body", Text, nullable=False),
    Column("spec", Text, nullable=False),
    # The fields of the spec that a search looks at, for searches only.
    text_column("search_text", nullable=True),
    UniqueConstraint("user_name", "name"),
    Index(None, "name", "id"),
    Index(None, "priority", "id"),
    Index(None, "created_at", "id"),
    Index(None, "state", "id"),
    Index(None, "user_name", "id"),
    Index(None, "user_name", "created_at", "id"),
    Index(None, "queue", "id"),
    Index(None, "kind", "id"),
    Index("ix_jobs_not_ended", "id", sqlite_where=text(NOT_ENDED), postgresql_where=text(NOT_ENDED)),
    Index("ix_jobs_search_text", "id", sqlite_where=text(HAS_SEARCH_TEXT), postgresql_where=text(HAS_SEARCH_TEXT)),
)

attempt_rows = Table(
    "attempts",
    metadata,
    Column("job_id", BigInteger, ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False),
    number("number"),
    time_column("planned_at"),
    time_column("started_at", nullable=True),
    time_column("ended_at", nullable=True),
    text_column("end_reason", nullable=True),
    number("exit_code", nullable=True),
    Column("allocation", Text, nullable=False),
    # JSON, as an engine's message may contain any character
    Column("message", Text, nullable=False),
    PrimaryKeyConstraint("job_id", "number"),
    Index(None, "planned_at", "job_id", "number"),
)

# ------------------------------------------------------------------------------------------------ fleet

node_rows = Table(
    "nodes",
    metadata,
    Column("id", PlainText, primary_key=True),
    text_column("cluster"),
    text_column("state"),
    number("cpu_milli"),
    number("memory_bytes"),
    Column("labels", Text, nullable=False),
    time_column("load", nullable=True),
    # the state set by an operator: it is kept while the node is down
    text_column("withheld", default="ready"),
)

gpu_rows = Table(
    "gpus",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("node_id", PlainText, ForeignKey("nodes.id", ondelete="CASCADE"), nullable=False),
    number("gpu_index"),
    text_column("model"),
    number("memory_bytes"),
    text_column("health"),
    text_column("pool"),
    # GPUs of a node with the same value are linked; empty if no link is known
    text_column("link_group", default=""),
    # the pool that it moves to when its jobs have ended; empty if it stays
    text_column("next_pool", default=""),
    Index(None, "node_id", "gpu_index"),
)

queue_rows = Table(
    "queues",
    metadata,
    Column("name", PlainText, primary_key=True),
    text_column("pool"),
    text_column("policy"),
    text_column("blocking"),
    text_column("placement"),
    Column("weight", Double, nullable=False),
    number("guaranteed_gpus"),
    number("max_gpus", nullable=True),
    number("max_length", nullable=True),
    Column("max_seconds", Double, nullable=True),
    Column("kinds", Text, nullable=False),
    number("min_job_gpus", nullable=True),
    number("max_job_gpus", nullable=True),
    json_column("groups", default="[]"),
    Column("preempts", Boolean, nullable=False, server_default=false()),
    text_column("description", default=""),
)

pool_rows = Table("pools", metadata, name_column(), text_column("description"), time_column("created_at"))

# ------------------------------------------------------------------------------------------------ catalog

flavor_rows = Table(
    "flavors",
    metadata,
    name_column(),
    json_column("models"),
    json_column("labels"),
    Column("cpu_milli_per_gpu", BigInteger, nullable=False, server_default="0"),
    Column("memory_bytes_per_gpu", BigInteger, nullable=False, server_default="0"),
    Column("default_gpus", BigInteger, nullable=False, server_default="0"),
    text_column("description"),
    time_column("created_at"),
)

package_rows = Table(
    "packages",
    metadata,
    name_column(),
    number("gpus"),
    number("gpu_milli"),
    number("cpu_milli"),
    number("memory_bytes"),
    # Without its flavor a package would fit everywhere: a flavor cannot be deleted while a package uses it.
    Column("flavor", PlainText, ForeignKey("flavors.name"), nullable=True),
    Column("rdma", Boolean, nullable=False),
    json_column("kinds"),
    text_column("description"),
    time_column("created_at"),
)

# ------------------------------------------------------------------------------------------------ people

user_rows = Table(
    "users",
    metadata,
    Column("name", PlainText, primary_key=True),
    text_column("role"),
    text_column("password_hash", nullable=True),
    Column("must_change_password", Boolean, nullable=False),
    Column("disabled", Boolean, nullable=False),
    time_column("created_at"),
    text_column("group_name", nullable=True),
    text_column("permission_group", default="everyone"),
    text_column("display_name", default=""),
    text_column("email", default=""),
    text_column("provider", default="local"),
    text_column("subject", default=""),
    time_column("last_seen_at", nullable=True),
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
    name_column(),
    Column("pool", PlainText, ForeignKey("pools.name", ondelete="SET NULL"), nullable=True),
    text_column("description"),
    time_column("created_at"),
    # A pool belongs to one group at most.
    UniqueConstraint("pool"),
)

permission_group_rows = Table(
    "permission_groups",
    metadata,
    name_column(),
    json_column("functions"),
    text_column("description"),
    time_column("created_at"),
)

quota_rows = Table(
    "quotas",
    metadata,
    _of_user(),
    text_column("kind"),
    number("gpu_milli", nullable=True),
    number("cpu_milli", nullable=True),
    number("memory_bytes", nullable=True),
    PrimaryKeyConstraint("user_name", "kind"),
)

volume_quota_rows = Table(
    "volume_quotas",
    metadata,
    _of_user(),
    text_column("type"),
    number("max_bytes"),
    PrimaryKeyConstraint("user_name", "type"),
)

credential_rows = Table(
    "credentials",
    metadata,
    Column("id", PlainText, primary_key=True),
    text_column("kind"),
    _of_user(),
    text_column("name"),
    text_column("secret_hash"),
    text_column("csrf"),
    time_column("created_at"),
    time_column("expires_at", nullable=True),
    time_column("last_used_at", nullable=True),
    json_column("scopes", default='["full"]'),
    UniqueConstraint("secret_hash"),
    Index(None, "user_name", "kind"),
)

ssh_key_rows = Table(
    "ssh_keys",
    metadata,
    Column("id", PlainText, primary_key=True),
    _of_user(),
    text_column("name"),
    text_column("public_key"),
    text_column("fingerprint"),
    time_column("created_at"),
    UniqueConstraint("user_name", "fingerprint"),
    Index(None, "fingerprint"),
)

provider_rows = Table(
    "providers",
    metadata,
    Column("id", PlainText, primary_key=True),
    text_column("kind"),
    text_column("title"),
    text_column("issuer"),
    text_column("client_id"),
    text_column("client_secret"),
    Column("enabled", Boolean, nullable=False),
    json_column("allow"),
    Column("group_name", PlainText, ForeignKey("groups.name", ondelete="SET NULL"), nullable=True),
    text_column("groups_claim"),
    json_column("group_rules"),
    text_column("organisation"),
    text_column("api_token"),
    json_column("directory", default=""),
    time_column("created_at"),
)

identity_rows = Table(
    "identities",
    metadata,
    Column("provider", PlainText, ForeignKey("providers.id", ondelete="CASCADE"), nullable=False),
    text_column("subject"),
    text_column("login"),
    text_column("name"),
    text_column("email"),
    time_column("seen_at"),
    # The account stays known when its user is deleted, and can be on-boarded again.
    Column("user_name", PlainText, ForeignKey("users.name", ondelete="SET NULL"), nullable=True),
    time_column("gone_at", default="0"),
    PrimaryKeyConstraint("provider", "subject"),
    Index(None, "user_name"),
)

score_rows = Table(
    "scores",
    metadata,
    text_column("user_name"),
    text_column("model"),
    Column("value", Double, nullable=False),
    Column("usage", Double, nullable=False),
    time_column("at"),
    PrimaryKeyConstraint("user_name", "model"),
)

#: the history of `scores`
score_point_rows = Table(
    "score_points",
    metadata,
    text_column("user_name"),
    text_column("model"),
    time_column("at"),
    Column("value", Double, nullable=False),
    Column("usage", Double, nullable=False),
    PrimaryKeyConstraint("user_name", "model", "at"),
)

# ------------------------------------------------------------------------------------------------ history

event_rows = Table(
    "events",
    metadata,
    row_id(),
    time_column("at"),
    text_column("actor"),
    text_column("action"),
    text_column("subject"),
    text_column("owner"),
    Column("detail", Text, nullable=False),
    text_column("source"),
    Index(None, "at", "id"),
    Index(None, "actor", "id"),
    Index(None, "subject", "id"),
    Index(None, "owner", "id"),
)

cycle_rows = Table(
    "cycles",
    metadata,
    row_id(),
    time_column("at"),
    Column("is_base", Boolean, nullable=False),
    text_column("digest"),
    Column("changes", LargeBinary, nullable=False),
    Column("plan", LargeBinary, nullable=False),
    Index(None, "at"),
    Index("ix_cycles_base", "id", sqlite_where=text("is_base = 1"), postgresql_where=text("is_base")),
)
