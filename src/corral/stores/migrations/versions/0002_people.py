"""Pools, groups, permissions, a catalog, SSH keys, sign-in providers, and scores as they were.

A store that was in use goes on as before: everybody is in the group that has the default pool and may use the queues of
all others, and every pool that a GPU or a queue names is there.
"""

from __future__ import annotations

import json
import time
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

#: All functions of that time but seeing others' jobs.
FUNCTIONS = ["train", "distribute", "workbench", "tasks", "volumes", "datasets", "images", "tokens"]


def upgrade() -> None:
    _create_pools()
    _create_groups()
    _extend_users()
    _create_catalog()
    _create_keys_and_quotas()
    _create_providers()
    _create_score_points()


def _required(name: str, kind: sa.types.TypeEngine[Any], default: str | None = None) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, server_default=default)


def _optional(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=True)


def _create_pools() -> None:
    pools = op.create_table(
        "pools",
        _required("name", TEXT),
        _required("description", TEXT),
        _required("created_at", sa.Double()),
        sa.PrimaryKeyConstraint("name", name="pk_pools"),
    )
    named = op.get_bind().execute(sa.text("SELECT pool FROM gpus UNION SELECT pool FROM queues")).scalars()
    rows = [{"name": name, "description": "", "created_at": time.time()} for name in sorted({"default", *named})]
    op.bulk_insert(pools, rows)
    op.add_column("queues", _required("groups", sa.Text(), "[]"))
    op.execute("""UPDATE queues SET groups = '["default"]' WHERE pool <> 'default'""")


def _create_groups() -> None:
    groups = op.create_table(
        "groups",
        _required("name", TEXT),
        _optional("pool", TEXT),
        _required("description", TEXT),
        _required("created_at", sa.Double()),
        sa.PrimaryKeyConstraint("name", name="pk_groups"),
        sa.UniqueConstraint("pool", name="uq_groups_pool"),
        sa.ForeignKeyConstraint(["pool"], ["pools.name"], name="fk_groups_pool", ondelete="SET NULL"),
    )
    permission_groups = op.create_table(
        "permission_groups",
        _required("name", TEXT),
        _required("functions", sa.Text()),
        _required("description", TEXT),
        _required("created_at", sa.Double()),
        sa.PrimaryKeyConstraint("name", name="pk_permission_groups"),
    )
    new = {"description": "", "created_at": time.time()}
    op.bulk_insert(groups, [{"name": "default", "pool": "default", **new}])
    op.bulk_insert(permission_groups, [{"name": "everyone", "functions": json.dumps(FUNCTIONS), **new}])


def _extend_users() -> None:
    # No foreign keys here: SQLite cannot add one without making the table anew, and dropping the old one would
    # take everybody's credentials along.
    op.add_column("users", _optional("group_name", TEXT))
    op.execute("UPDATE users SET group_name = 'default'")
    op.add_column("users", _required("permission_group", TEXT, "everyone"))
    for name in ("display_name", "email"):
        op.add_column("users", _required(name, TEXT, ""))
    op.add_column("users", _required("provider", TEXT, "local"))
    op.add_column("users", _required("subject", TEXT, ""))
    from_provider = sa.text("provider <> 'local'")
    op.create_index(
        "ix_users_provider_subject",
        "users",
        ["provider", "subject"],
        unique=True,
        sqlite_where=from_provider,
        postgresql_where=from_provider,
    )
    op.add_column("credentials", _required("scopes", sa.Text(), '["full"]'))


def _create_catalog() -> None:
    op.create_table(
        "flavors",
        _required("name", TEXT),
        _required("models", sa.Text()),
        _required("labels", sa.Text()),
        _required("description", TEXT),
        _required("created_at", sa.Double()),
        sa.PrimaryKeyConstraint("name", name="pk_flavors"),
    )
    op.create_table(
        "packages",
        _required("name", TEXT),
        *(_required(name, sa.BigInteger()) for name in ("gpus", "gpu_milli", "cpu_milli", "memory_bytes")),
        _optional("flavor", TEXT),
        _required("rdma", sa.Boolean()),
        _required("kinds", sa.Text()),
        _required("description", TEXT),
        _required("created_at", sa.Double()),
        sa.PrimaryKeyConstraint("name", name="pk_packages"),
        sa.ForeignKeyConstraint(["flavor"], ["flavors.name"], name="fk_packages_flavor"),
    )


def _create_keys_and_quotas() -> None:
    op.create_table(
        "ssh_keys",
        *(_required(name, TEXT) for name in ("id", "user_name", "name", "public_key", "fingerprint")),
        _required("created_at", sa.Double()),
        sa.PrimaryKeyConstraint("id", name="pk_ssh_keys"),
        sa.UniqueConstraint("user_name", "fingerprint", name="uq_ssh_keys_user_name_fingerprint"),
        sa.ForeignKeyConstraint(["user_name"], ["users.name"], name="fk_ssh_keys_user_name", ondelete="CASCADE"),
    )
    op.create_index("ix_ssh_keys_fingerprint", "ssh_keys", ["fingerprint"])
    op.create_table(
        "volume_quotas",
        _required("user_name", TEXT),
        _required("type", TEXT),
        _required("max_bytes", sa.BigInteger()),
        sa.PrimaryKeyConstraint("user_name", "type", name="pk_volume_quotas"),
        sa.ForeignKeyConstraint(["user_name"], ["users.name"], name="fk_volume_quotas_user_name", ondelete="CASCADE"),
    )


def _create_providers() -> None:
    op.create_table(
        "providers",
        *(_required(name, TEXT) for name in ("id", "kind", "title", "issuer", "client_id", "client_secret")),
        _required("enabled", sa.Boolean()),
        _required("allow", sa.Text()),
        _optional("group_name", TEXT),
        *(_required(name, TEXT) for name in ("organisation", "api_token")),
        _required("created_at", sa.Double()),
        sa.PrimaryKeyConstraint("id", name="pk_providers"),
        sa.ForeignKeyConstraint(["group_name"], ["groups.name"], name="fk_providers_group_name", ondelete="SET NULL"),
    )
    op.create_table(
        "identities",
        *(_required(name, TEXT) for name in ("provider", "subject", "login", "name", "email")),
        _required("seen_at", sa.Double()),
        _optional("user_name", TEXT),
        sa.PrimaryKeyConstraint("provider", "subject", name="pk_identities"),
        sa.ForeignKeyConstraint(["provider"], ["providers.id"], name="fk_identities_provider", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_name"], ["users.name"], name="fk_identities_user_name", ondelete="SET NULL"),
    )
    op.create_index("ix_identities_user_name", "identities", ["user_name"])


def _create_score_points() -> None:
    op.create_table(
        "score_points",
        _required("user_name", TEXT),
        _required("model", TEXT),
        _required("at", sa.Double()),
        _required("value", sa.Double()),
        _required("usage", sa.Double()),
        sa.PrimaryKeyConstraint("user_name", "model", "at", name="pk_score_points"),
    )
    # Every history begins with what is known now.
    columns = "user_name, model, at, value, usage"
    op.execute(f"INSERT INTO score_points ({columns}) SELECT {columns} FROM scores")
