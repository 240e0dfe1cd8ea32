"""When each user was last seen, and what a flavor gives per GPU.

The time is kept with the user, because a session and its times are deleted at sign-out.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("users", sa.Column("last_seen_at", sa.Double(), nullable=True))
    op.execute(
        "UPDATE users SET last_seen_at = ("
        "SELECT MAX(COALESCE(credentials.last_used_at, credentials.created_at)) FROM credentials "
        "WHERE credentials.user_name = users.name)"
    )
    for name in ("cpu_milli_per_gpu", "memory_bytes_per_gpu", "default_gpus"):
        op.add_column("flavors", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
