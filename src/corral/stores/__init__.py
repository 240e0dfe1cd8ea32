"""The store: SQLite or PostgreSQL behind the `Store` port. `open_store(url)` opens it."""

from corral.stores.database.errors import (
    BadStoreUrl,
    ReadOnlyTransaction,
    SchemaTooNew,
    StoreClosed,
    StoreError,
    StoreRefused,
    StoreUnreachable,
)
from corral.stores.database.opening import open_store

__all__ = [
    "BadStoreUrl",
    "ReadOnlyTransaction",
    "SchemaTooNew",
    "StoreClosed",
    "StoreError",
    "StoreRefused",
    "StoreUnreachable",
    "open_store",
]
