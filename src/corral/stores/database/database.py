"""The differences between the databases of the store, SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, ExceptionContext, Select, bindparam, event, select

from corral.control.ports import ServerRegistry
from corral.stores.database.commit_guard import refuse
from corral.stores.database.statements import ValueStatement
from corral.stores.schema.tables import counter_rows

#: How long a caller waits for a connection before the store counts as unreachable.
POOL_TIMEOUT_SECONDS = 10

#: Read connections that are kept, and additional ones under load.
READERS = 8
EXTRA_READERS = 56


@dataclass(frozen=True, kw_only=True, slots=True)
class Database:
    """Two engines to one database: writers take turns on one connection, readers see a frozen view each."""

    kind: str
    #: the database's address, without secrets
    place: str
    writer: Engine
    reader: Engine
    #: takes the writers' lock and returns the epoch
    lock_epoch: Callable[[Connection], int]
    server_version: Callable[[Connection], str]
    #: the servers over this database; None if only one can use it
    open_registry: Callable[[], ServerRegistry] | None = None

    def dispose(self) -> None:
        self.reader.dispose()
        self.writer.dispose()


def _build_epoch(_: str) -> Select[tuple[int]]:
    return select(counter_rows.c.value).where(counter_rows.c.name == bindparam("counter"))


# Compiled once: every write begins with one of them.
_EPOCH = ValueStatement(_build_epoch, ["counter"])
_EPOCH_FOR_UPDATE = ValueStatement(lambda database: _build_epoch(database).with_for_update(), ["counter"])


def read_epoch(connection: Connection, *, for_update: bool) -> int:
    epoch: int = (_EPOCH_FOR_UPDATE if for_update else _EPOCH).run(connection, "epoch")
    return epoch


def explain_errors(engine: Engine, explain: Callable[[ExceptionContext], Exception | None]) -> None:
    """Raise corral's own errors instead of the driver's, if `explain` has one. After any error the transaction cannot
    be committed."""

    @event.listens_for(engine, "handle_error", retval=True)
    def replace(context: ExceptionContext) -> Exception | None:
        if context.is_pre_ping:
            return None  # the pool checks whether a connection is alive, and replaces it if not
        explained = explain(context)
        if context.connection is not None and not context.is_disconnect:
            refuse(context.connection, explained or context.original_exception)
        return explained
