"""What can go wrong with a store as a whole, in words for the operator.

Errors that belong to a single change (a stale version, a taken name, a newer server) are the port's own and
live in `corral.control.ports`. Messages here never contain a password.
"""

from __future__ import annotations

from corral.control.ports import StoreUnavailable


class StoreError(Exception):
    """The store cannot do its work."""


class BadStoreUrl(StoreError, ValueError):
    """The address names no store that corral knows."""


class StoreUnreachable(StoreError, StoreUnavailable):
    """The database does not answer, stays locked, or has no room: try again later."""


class StoreRefused(StoreUnreachable):
    """The database answers, and will not be used: a wrong password, no such database, a damaged file. Without an
    operator that does not change, so a server that finds it at its start says so and ends."""


class SchemaTooNew(StoreError):
    """The database was written by a newer corral. Nothing was touched."""


class ReadOnlyTransaction(StoreError):
    """Something was written inside a `read` block, which is a mistake of the caller."""


class StoreClosed(StoreError):
    """The store was closed before this call."""
