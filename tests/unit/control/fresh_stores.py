"""Empty stores, one after the other, in the same file.

The database engines are kept: compiling each statement again would take most of the time of a short test.
Commits do not wait for the disk, because unit tests do not test power failures; crash tests have stores of their own.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import event, make_url

from corral.stores import open_store
from corral.stores.database.sqlite import open_sqlite
from corral.stores.database.store import SqlStore


class FreshStores:
    def __init__(self, directory: Path) -> None:
        self._template = directory / "template.db"
        open_store(f"sqlite:///{self._template}").close()
        self._place = directory / "corral.db"
        self._database = open_sqlite(make_url(f"sqlite:///{self._place}"))

        @event.listens_for(self._database.writer, "connect")
        def do_not_wait_for_disk(connection: Any, _: Any) -> None:
            connection.execute("PRAGMA synchronous = OFF").close()

    @property
    def template(self) -> Path:
        """A file with the schema and no rows, to be copied."""
        return self._template

    @contextmanager
    def new(self) -> Iterator[SqlStore]:
        """An empty store. Only one is open at a time."""
        self._database.dispose()
        for side in ("", "-wal", "-shm"):
            self._place.with_name(self._place.name + side).unlink(missing_ok=True)
        shutil.copy(self._template, self._place)
        store = SqlStore(self._database)
        yield store
        store.close()
