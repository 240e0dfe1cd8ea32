"""Whether an open transaction may still be committed.

A stale batch may have been written in part, and PostgreSQL silently turns the commit of a failed transaction into a
rollback. So every error is recorded with its connection; the transaction can then only be rolled back, and its commit
raises the error even if the caller ignored it.
"""

from __future__ import annotations

from sqlalchemy import Connection

_KEY = "corral.refusal"


def begin_work(connection: Connection) -> None:
    connection.info.pop(_KEY, None)


def refuse(connection: Connection, error: BaseException) -> BaseException:
    """Record that this transaction must not be committed. Returns the error, to be raised."""
    connection.info.setdefault(_KEY, error)
    return error


def check_work(connection: Connection) -> None:
    """Raises the recorded error, if there is one."""
    refusal: BaseException | None = connection.info.pop(_KEY, None)
    if refusal is not None:
        raise refusal
