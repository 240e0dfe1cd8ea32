"""Moves a store to another database: copies while the server runs, and the last differences once it has stopped.

1. `copy_while_running`, as often as wanted: the target has the mark of an unfinished copy, and no server uses it. The
   digests of all tables are compared.
2. `finish`: the source is locked against writers, all rows are compared, the differences are copied and read back, and
   the source gets a mark with the place of the target and a new epoch: no server can write to it, or start with it, any
   more.

A crash at any moment leaves the source in use, or the target complete; the same command continues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Table

from corral.control.ports import StoreConflict
from corral.core.counts import counted
from corral.stores.copying.store_marks import MOVED_TO, UNFINISHED, read_mark, remove_marks, set_mark
from corral.stores.copying.table_rows import digest_of, tables_of
from corral.stores.copying.table_sync import CopiedTable, empty, synchronise
from corral.stores.copying.whole_view import keep_open, whole_view
from corral.stores.database.database import Database
from corral.stores.database.errors import StoreError
from corral.stores.database.schema_upgrade import NEWEST, current_revision, migrate
from corral.stores.database.statements import count_up
from corral.stores.database.store_holder import known_installation

_COMMAND = "corral store move"

Progress = Callable[[CopiedTable], None]


class CannotMove(StoreError):
    """The store cannot be moved there; nothing was changed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreMove:
    source: Database
    target: Database

    def prepare(self) -> None:
        """Check both sides, and create the target's schema. Raises CannotMove."""
        if self.source.place == self.target.place:
            raise CannotMove("source and target are the same store")
        with self.source.reader.connect() as connection:
            self._check_source(connection)
            installation = known_installation(connection)
        with self.target.writer.connect() as connection, connection.begin():
            self._check_target(connection, installation)
            migrate(connection, self.target.place)
            set_mark(connection, UNFINISHED, _COMMAND)

    def copy_while_running(self, progress: Progress = lambda _: None) -> list[CopiedTable]:
        """Copy what differs now. Each table is committed."""

        def copy() -> list[CopiedTable]:
            with whole_view(self.source) as source, self.target.writer.connect() as target:
                tables = tables_of(source)
                done = synchronise(source, target, tables, commit=target.commit, progress=progress, with_digests=True)
                _compare(target, tables, done)
                target.commit()
                return done

        return self._again_after_conflict(copy)

    def finish(self, progress: Progress = lambda _: None) -> list[CopiedTable]:
        """Copy the rest, compare every table and hand over. No server may use the source."""
        copied = self._again_after_conflict(lambda: self._finish(progress))
        # The source is closed for good: now the target may be used.
        self._open_target()
        return copied

    def _finish(self, progress: Progress) -> list[CopiedTable]:
        with self.source.writer.connect() as source, source.begin():
            keep_open(source)
            self._check_source(source)
            self.source.lock_epoch(source)
            # Written before the copy, so that the target's epoch is the new one too.
            count_up(source, "epoch", 1)
            with self.target.writer.connect() as target, target.begin():
                keep_open(target)
                tables = tables_of(source)
                copied = synchronise(source, target, tables, progress=progress)
                remove_marks(target)
                set_mark(target, UNFINISHED, _COMMAND)
            set_mark(source, MOVED_TO, self.target.place)
        return copied

    def _again_after_conflict(self, copy: Callable[[], list[CopiedTable]]) -> list[CopiedTable]:
        """Two rows that exchanged a unique value cannot be updated one after the other: the target is copied anew."""
        try:
            return copy()
        except StoreConflict:
            with self.target.writer.connect() as target, target.begin():
                empty(target, tables_of(target))
            return copy()

    def finish_interrupted(self) -> bool:
        """Opens the target after a crash between the two commits of `finish`. Returns whether there was
        such a crash.
        """
        with self.source.reader.connect() as connection:
            if read_mark(connection, MOVED_TO) != self.target.place:
                return False
        with self.target.reader.connect() as connection:
            if read_mark(connection, UNFINISHED) is None:
                return False
        self._open_target()
        return True

    def _open_target(self) -> None:
        with self.target.writer.connect() as target, target.begin():
            remove_marks(target)

    def _check_source(self, connection: Connection) -> None:
        revision = current_revision(connection)
        if revision is None:
            raise CannotMove(f"{self.source.place} holds no store")
        if revision != NEWEST:
            raise CannotMove(f"{self.source.place} has schema {revision}, this corral {NEWEST}: start the server once")
        if place := read_mark(connection, MOVED_TO):
            raise CannotMove(f"{self.source.place} was moved to {place} already")
        if command := read_mark(connection, UNFINISHED):
            raise CannotMove(f"{self.source.place} is an unfinished copy of `{command}`")

    def _check_target(self, connection: Connection, installation: str | None) -> None:
        """An empty database, an unfinished copy, or a store of this installation that was moved away."""
        if current_revision(connection) is None:
            if tables_of(connection):
                raise CannotMove(f"{self.target.place} has tables that are not corral's: give an empty database")
            return
        was_left = read_mark(connection, UNFINISHED) == _COMMAND or read_mark(connection, MOVED_TO) is not None
        other = known_installation(connection)
        if not was_left or other not in (None, installation):
            raise CannotMove(f"{self.target.place} holds another store: give an empty database")


def _compare(target: Connection, tables: Sequence[Table], copied: Sequence[CopiedTable]) -> None:
    for table, expected in zip(tables, copied, strict=True):
        found = digest_of(target, table)
        if (found.rows, found.hex) != (expected.rows, expected.digest):
            raise StoreError(
                f"table {table.name} differs after the copy: {counted(found.rows, 'row')} instead of {expected.rows}; "
                "the store was not moved"
            )
