"""Rows as records, one by one: a damaged row is left out and logged, and does not affect other rows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from sqlalchemy import Connection

from corral.control.records import UnreadableRow

log = logging.getLogger("corral.stores")

Record = TypeVar("Record")

_KEY = "corral.unreadable"


def begin_rows(connection: Connection) -> None:
    connection.info.pop(_KEY, None)


def unreadable_rows(connection: Connection) -> list[UnreadableRow]:
    """Rows that were left out since the transaction began."""
    found: list[UnreadableRow] = connection.info.get(_KEY, [])
    return list(found)


def readable(
    connection: Connection,
    table: str,
    rows: Iterable[Any],
    decode: Callable[[Any], Record],
    key: Callable[[Any], str] = lambda row: str(row[0]),
) -> list[Record]:
    """The records of the rows, in their order."""
    records = []
    for row in rows:
        try:
            records.append(decode(row))
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            damaged = UnreadableRow(table=table, key=key(row), error=f"{type(error).__name__}: {error}")
            connection.info.setdefault(_KEY, []).append(damaged)
            log.error("row %s of table %s cannot be read and is left out: %s", damaged.key, table, damaged.error)
    return records
