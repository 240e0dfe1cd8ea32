"""Makes the tables of one database equal to those of another, by the differences only.

Run again after an interruption, it continues; run again after changes, it copies these. Cost: both sides are read once,
page beside page; the differences are written, and read back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Table, bindparam, delete, select, tuple_, update

from corral.stores.copying.store_marks import MARKS
from corral.stores.copying.table_rows import PAGE, Row, TableDigest, encode_rows, key_positions, pages_of
from corral.stores.database.errors import StoreError


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One row that is missing, superfluous or different in the target."""

    key: Row
    #: None: the row must be deleted
    row: Row | None
    is_new: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class CopiedTable:
    """The result for one table: the rows that are in it, and those that had to be written or deleted."""

    name: str
    rows: int
    changed: int
    #: the digest of all rows; "" if none was requested
    digest: str = ""


class NotEqual(StoreError):
    """A row was written, and read back as another one."""


def synchronise(
    source: Connection,
    target: Connection,
    tables: Sequence[Table],
    *,
    commit: Callable[[], None] = lambda: None,
    progress: Callable[[CopiedTable], None] = lambda _: None,
    with_digests: bool = False,
) -> list[CopiedTable]:
    """Make the target's tables equal. `commit` is called after each table, `tables` are in order of references.

    All rows of both sides are compared and those that were written are read back, so the tables are equal then, if
    nothing else writes into them. Raises StoreConflict if a row takes over the unique value of another row: `empty` the
    target then, and copy again; and NotEqual.
    """
    # Rows go before others come, and those that refer to others go first.
    found = {table.name: _Found.of(source, target, table, with_digests) for table in reversed(tables)}
    for table in reversed(tables):
        _delete(target, table, found[table.name].gone)
    commit()
    copied = []
    for table in tables:
        few = found[table.name]
        seen, changed = few.seen, len(few.changed) + len(few.gone)
        if few.is_complete:
            _write(target, table, few.changed)
        else:
            seen, changed = _Seen.of(with_digests), len(few.gone)
            for batch in _batches(differences(source, target, table, seen), PAGE):
                _write(target, table, batch)
                changed += len(batch)
        commit()
        digest = seen.digest.hex if seen.digest is not None else ""
        copied.append(CopiedTable(name=table.name, rows=seen.rows, changed=changed, digest=digest))
        progress(copied[-1])
    return copied


@dataclass(slots=True)
class _Seen:
    """The rows of the source, counted."""

    digest: TableDigest | None
    rows: int = 0

    @classmethod
    def of(cls, with_digest: bool) -> _Seen:
        return cls(TableDigest() if with_digest else None)

    def add(self, rows: Sequence[Row]) -> None:
        self.rows += len(rows)
        if self.digest is not None:
            self.digest.add(rows)


@dataclass(slots=True)
class _Found:
    """The differences of one table; both sides are read once if there are few."""

    gone: list[Row]
    changed: list[Difference]
    seen: _Seen
    is_complete: bool = True

    @classmethod
    def of(cls, source: Connection, target: Connection, table: Table, with_digest: bool) -> _Found:
        found = cls([], [], _Seen.of(with_digest))
        for change in differences(source, target, table, found.seen):
            if change.row is None:
                found.gone.append(change.key)
            elif len(found.changed) < PAGE:
                found.changed.append(change)
            else:
                found.is_complete = False
        return found


def empty(target: Connection, tables: Sequence[Table]) -> None:
    """Delete all rows but the marks of copies."""
    for table in reversed(tables):
        statement = delete(table)
        if table.name == "meta":
            statement = statement.where(table.c.key.not_in(MARKS))
        target.execute(statement)


def differences(
    source: Connection, target: Connection, table: Table, seen: _Seen | None = None
) -> Iterator[Difference]:
    """Yields the necessary changes of the target, in the order of keys. `seen` gets the rows of the source.

    Rows that are equal on both sides are compared many at a time, which is most of the work of a second copy.
    """
    at = key_positions(table)
    ours, theirs = pages_of(source, table), pages_of(target, table)
    wanted: list[Row] = []
    present: list[Row] = []
    while True:
        wanted = wanted or next(ours, [])
        present = present or next(theirs, [])
        if not wanted and not present:
            return
        count = min(len(wanted), len(present))
        if count and wanted[:count] == present[:count]:
            used, met = count, count
        else:
            changes, used, met = _merged(wanted, present, at)
            yield from changes
        if seen is not None and used:
            seen.add(wanted[:used])
        wanted, present = wanted[used:], present[met:]


def _merged(wanted: Sequence[Row], present: Sequence[Row], at: Sequence[int]) -> tuple[list[Difference], int, int]:
    """The differences up to the end of one of both, or of the other if one is empty; and how many rows they used."""
    changes: list[Difference] = []
    i, j = 0, 0
    while (i < len(wanted) and j < len(present)) or not (wanted and present):
        ours = tuple(wanted[i][place] for place in at) if i < len(wanted) else None
        theirs = tuple(present[j][place] for place in at) if j < len(present) else None
        if ours is None and theirs is None:
            break
        if theirs is None or (ours is not None and ours < theirs):
            assert ours is not None
            changes.append(Difference(key=ours, row=wanted[i], is_new=True))
            i += 1
        elif ours is None or theirs < ours:
            changes.append(Difference(key=theirs, row=None, is_new=False))
            j += 1
        else:
            if wanted[i] != present[j]:
                changes.append(Difference(key=ours, row=wanted[i], is_new=False))
            i, j = i + 1, j + 1
    return changes, i, j


def insert_rows(target: Connection, table: Table, rows: Sequence[Row]) -> None:
    names = [column.name for column in table.columns]
    if rows:
        target.execute(table.insert(), [dict(zip(names, row, strict=True)) for row in rows])


def _write(target: Connection, table: Table, batch: Sequence[Difference]) -> None:
    insert_rows(target, table, [change.row for change in batch if change.is_new and change.row is not None])
    _update(target, table, [change.row for change in batch if not change.is_new and change.row is not None])
    _read_back(target, table, batch)


def _update(target: Connection, table: Table, rows: Sequence[Row]) -> None:
    if not rows:
        return
    keys = {column.name for column in table.primary_key.columns}
    statement = update(table)
    for column in table.primary_key.columns:
        statement = statement.where(column == bindparam(f"key_{column.name}"))
    names = [column.name for column in table.columns]
    others: dict[str, Any] = {name: bindparam(f"new_{name}") for name in names if name not in keys}
    parameters = [
        {f"key_{name}" if name in keys else f"new_{name}": value for name, value in zip(names, row, strict=True)}
        for row in rows
    ]
    target.execute(statement.values(others), parameters)


def _read_back(target: Connection, table: Table, batch: Sequence[Difference]) -> None:
    """Raises NotEqual. As written for a backup, so that 1 and 1.0 differ."""
    columns = list(table.primary_key.columns)
    written = {change.key: change.row for change in batch if change.row is not None}
    at = key_positions(table)
    for some in _batches(iter(written), 200):
        key = columns[0].in_([row_key[0] for row_key in some]) if len(columns) == 1 else tuple_(*columns).in_(some)
        found = {tuple(row[place] for place in at): tuple(row) for row in target.execute(select(table).where(key))}
        for row_key in some:
            row = written[row_key]
            if row is None or row_key not in found or encode_rows([found[row_key]]) != encode_rows([row]):
                raise NotEqual(f"table {table.name} differs after the copy, at {row_key}; the store was not moved")


def _delete(target: Connection, table: Table, keys: Sequence[Row]) -> None:
    columns = list(table.primary_key.columns)
    for start in range(0, len(keys), 200):
        some = keys[start : start + 200]
        if len(columns) == 1:
            target.execute(delete(table).where(columns[0].in_([key[0] for key in some])))
        else:
            target.execute(delete(table).where(tuple_(*columns).in_(list(some))))


def _batches(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while batch := list(islice(items, size)):
        yield batch
