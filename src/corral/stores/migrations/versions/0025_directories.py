"""Sign-in by directories (LDAP), and the people whom their directory no longer has. There are none yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    op.add_column("providers", sa.Column("directory", sa.Text(), nullable=False, server_default=""))
    op.add_column("identities", sa.Column("gone_at", sa.Double(), nullable=False, server_default="0"))
