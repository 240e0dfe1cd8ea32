"""Notes about the transaction of a connection: whether it may still be committed, and how many statements wrote rows.

A stale batch may have been written in part, and PostgreSQL silently turns the commit of a failed transaction into a
rollback. So every error is recorded with its connection; the transaction can then only be rolled back, and its commit
raises the error even if the caller ignored it.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, event

_KEY = "corral.refusal"
_CHANGES = "corral.changes"
_WRITES = ("INSERT", "UPDATE", "DELETE")


def begin_work(connection: Connection) -> None:
    connection.info.pop(_KEY, None)
    connection.info[_CHANGES] = 0


def count_changes(engine: Engine) -> None:
    """Count the statements that write rows, for `changes_made`."""

    # With `retval` SQLAlchemy calls it without a function around it.
    @event.listens_for(engine, "before_cursor_execute", retval=True)
    def count(connection: Connection, _cursor: Any, statement: str, parameters: Any, *_: Any) -> tuple[str, Any]:
        if statement.startswith(_WRITES):
            connection.info[_CHANGES] = connection.info.get(_CHANGES, 0) + 1
        return statement, parameters


def changes_made(connection: Connection) -> int:
    """How many statements of this transaction wrote rows so far."""
    changes: int = connection.info.get(_CHANGES, 0)
    return changes


def refuse(connection: Connection, error: BaseException) -> BaseException:
    """Record that this transaction must not be committed. Returns the error, to be raised."""
    connection.info.setdefault(_KEY, error)
    return error


def check_work(connection: Connection) -> None:
    """Raises the recorded error, if there is one."""
    refusal: BaseException | None = connection.info.pop(_KEY, None)
    if refusal is not None:
        raise refusal
