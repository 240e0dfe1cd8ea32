"""The tables of a store as pages of encoded rows, out of one consistent view, and back into an empty database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import Connection, Table

from corral.core.counts import counted
from corral.stores.copying.store_marks import check_marks
from corral.stores.copying.table_rows import TableDigest, decode_rows, digest_of, encode_rows, pages_of, tables_of
from corral.stores.copying.table_sync import empty, insert_rows
from corral.stores.copying.whole_view import keep_open, whole_view
from corral.stores.database.database import Database
from corral.stores.database.errors import StoreError
from corral.stores.database.schema_upgrade import current_revision, migrate
from corral.stores.database.store_holder import known_installation
from corral.stores.people.scores import SqlMetaTable

#: How far the numbers of jobs, events and other things go on after those of the backup: the store that was backed up
#: may have given the numbers in between.
SKIPPED_IDS = 10_000


@dataclass(slots=True)
class DumpedTable:
    connection: Connection
    table: Table
    digest: TableDigest = field(default_factory=TableDigest)

    @property
    def name(self) -> str:
        return str(self.table.name)

    @property
    def columns(self) -> Sequence[str]:
        return [column.name for column in self.table.columns]

    def pages(self) -> Iterator[bytes]:
        """Encoded rows, some thousand at a time."""
        for page in pages_of(self.connection, self.table):
            encoded = encode_rows(page)
            self.digest.add(page, encoded)
            yield encoded

    def counted(self) -> tuple[int, str]:
        return self.digest.rows, self.digest.hex


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreDump:
    kind: str
    schema: str
    installation: str
    tables: Sequence[DumpedTable]


@dataclass(frozen=True, kw_only=True, slots=True)
class TableContent:
    """A table of an archive."""

    columns: Sequence[str]
    rows: int
    digest: str
    pages: Iterable[bytes]


@contextmanager
def dumped(database: Database) -> Iterator[StoreDump]:
    """Every table, as it is when the block begins. Raises StoreError if there is no store."""
    with whole_view(database) as connection:
        check_marks(connection)
        schema, installation = current_revision(connection), None
        if schema is not None:
            installation = known_installation(connection)
        if schema is None or installation is None:
            raise StoreError(f"{database.place} holds no store that a server has used")
        tables = [DumpedTable(connection, table) for table in tables_of(connection)]
        yield StoreDump(kind=database.kind, schema=schema, installation=installation, tables=tables)


def check_empty(database: Database) -> None:
    """Raises StoreError unless the database has no tables."""
    with database.reader.connect() as connection:
        found = [table.name for table in tables_of(connection)]
    if found:
        raise StoreError(
            f"{database.place} is not empty (it has {counted(len(found), 'table')}): nothing is overwritten"
        )


def load_store(
    database: Database, schema: str, tables: Mapping[str, TableContent], notes: Mapping[str, str], *, skipped: int
) -> None:
    """Fill an empty database, in one transaction: schema of that time, rows, comparison, migration to the present one.

    `notes` are put into `meta`; all counters continue `skipped` numbers later. Raises StoreError, and then the database
    is as it was.
    """
    check_empty(database)
    with database.writer.connect() as connection, connection.begin():
        keep_open(connection)
        migrate(connection, database.place, schema)
        present = tables_of(connection)
        _check_names(present, tables)
        # The migrations put the first rows in, such as the default queue.
        empty(connection, present)
        for table in present:
            _load(connection, table, tables[str(table.name)])
        migrate(connection, database.place)
        _skip_numbers(connection, skipped)
        meta = SqlMetaTable(connection)
        for key, value in notes.items():
            meta.put(key, value)


def _load(connection: Connection, table: Table, content: TableContent) -> None:
    names = [column.name for column in table.columns]
    if sorted(names) != sorted(content.columns):
        raise StoreError(f"table {table.name} of the archive has other columns than schema has: {content.columns}")
    at = [content.columns.index(name) for name in names]
    for page in content.pages:
        insert_rows(connection, table, [tuple(row[i] for i in at) for row in decode_rows(page)])
    if names == list(content.columns):
        found = digest_of(connection, table)
        if (found.rows, found.hex) != (content.rows, content.digest):
            raise StoreError(f"table {table.name} differs after it was restored: nothing was kept")


def _check_names(present: Sequence[Table], tables: Mapping[str, TableContent]) -> None:
    expected = {str(table.name) for table in present}
    if expected != set(tables):
        different = ", ".join(sorted(expected ^ set(tables)))
        raise StoreError(f"the archive has other tables than its schema: {different}")


def _skip_numbers(connection: Connection, skipped: int) -> None:
    counters = next(table for table in tables_of(connection) if table.name == "counters")
    connection.execute(counters.update().values(value=counters.c.value + skipped))
