"""Errors of a store as a whole, with messages for operators.

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
    """The database does not answer, stays locked, or its disk is full: try again later."""


class StoreRefused(StoreUnreachable):
    """The database answers, but cannot be used: a wrong password, no such database, a damaged file. Only an operator
    can fix this, so a server that finds it at its start reports it and ends."""


class SchemaTooNew(StoreError):
    """The database was written by a newer corral. Nothing was touched."""


class ReadOnlyTransaction(StoreError):
    """A write inside a `read` block, which is a bug in the caller."""


class StoreClosed(StoreError, StoreUnavailable):
    """The store was closed before this call: the server stops, or starts again."""
