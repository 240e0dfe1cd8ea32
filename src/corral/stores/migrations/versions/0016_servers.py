"""Several servers over one store: the servers, and the lease of the leader."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "servers",
        *(_required(name, TEXT) for name in ("name", "url", "host")),
        _required("pid", sa.BigInteger()),
        *(_required(name, TEXT) for name in ("version", "session", "key")),
        _required("may_lead", sa.Boolean()),
        _required("detail", TEXT),
        _required("place", sa.BigInteger()),
        _required("started_at", sa.Double()),
        _required("seen_at", sa.Double()),
        sa.PrimaryKeyConstraint("name", name="pk_servers"),
    )
    op.create_table(
        "leases",
        *(_required(name, TEXT) for name in ("name", "server", "token")),
        _required("renewals", sa.BigInteger()),
        _required("session", TEXT),
        _required("backend", sa.BigInteger()),
        _required("since", sa.Double()),
        _required("changes", sa.BigInteger()),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
    )


def _required(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)
