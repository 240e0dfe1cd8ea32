"""Brings a database to the schema of this corral, with the migrations in `migrations/versions`.

Each revision is a file with a number as its id; `NEWEST` names the last. A database at `NEWEST` is opened without
loading Alembic; a database at a revision that this corral does not know is not changed.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from corral.stores.database.database import Database
from corral.stores.database.errors import SchemaTooNew

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

NEWEST = "0026"

#: Key of the advisory lock in PostgreSQL: one server migrates, others wait for it.
_MIGRATION_LOCK = 0x636F7272616C


def bring_up_to_date(database: Database) -> None:
    """All migrations in one transaction. Raises SchemaTooNew, and then nothing was touched."""
    with database.reader.connect() as connection:
        if current_revision(connection) == NEWEST:
            return
    with database.writer.connect() as connection, connection.begin():
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
        # Another server may have migrated the database while this one waited for the lock.
        revision = current_revision(connection)
        if revision != NEWEST:
            _upgrade(connection, revision, database.place)


def current_revision(connection: Connection) -> str | None:
    """The revision of the database; None if it is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return revision


def migrate(connection: Connection, place: str, target: str = NEWEST) -> None:
    """Upgrades the schema in the transaction of the connection. Raises SchemaTooNew for an unknown revision, of the
    database or wanted.
    """
    _upgrade(connection, current_revision(connection), place, target)


def _upgrade(connection: Connection, revision: str | None, place: str, target: str = NEWEST) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    with as_file(files("corral.stores") / "migrations") as directory:
        config = Config()
        config.set_main_option("script_location", str(directory).replace("%", "%%"))
        config.attributes["connection"] = connection
        scripts = ScriptDirectory.from_config(config)
        for known in (revision, target):
            if known is not None and not _is_known(scripts, known):
                raise SchemaTooNew(
                    f"{place} has schema {known}, and this corral knows schemas up to {NEWEST}: "
                    "start a newer corral, or restore a backup"
                )
        command.upgrade(config, target)


def _is_known(scripts: ScriptDirectory, revision: str) -> bool:
    from alembic.util.exc import CommandError

    try:
        return scripts.get_revision(revision) is not None
    except CommandError:
        return False
