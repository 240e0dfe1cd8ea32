"""How Alembic runs: on the connection, and in the transaction, that `migrating` hands over."""

from __future__ import annotations

from alembic import context

from corral.stores.schema.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
