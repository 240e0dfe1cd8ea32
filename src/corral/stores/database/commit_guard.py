"""Whether a transaction that is under way may still be committed.

A batch that turned out stale may have been written in part, and PostgreSQL turns the commit of a failed transaction
silently into a rollback. So every error is noted with its connection; the transaction can then only be
rolled back, and says so even when the caller swallowed the error.
"""

from __future__ import annotations

from sqlalchemy import Connection

_KEY = "corral.refusal"


def begin_work(connection: Connection) -> None:
    connection.info.pop(_KEY, None)


def refuse(connection: Connection, error: BaseException) -> BaseException:
    """Note that this transaction must not be committed. Gives back the error, to be raised."""
    connection.info.setdefault(_KEY, error)
    return error


def check_work(connection: Connection) -> None:
    """Raises what made this transaction unfit for a commit."""
    refusal: BaseException | None = connection.info.pop(_KEY, None)
    if refusal is not None:
        raise refusal
