"""Stores one after the other, each as good as new, all in one place.

The engines stay: they compile a statement when they first see it, and that would be most of the time of a short test.
No commit waits for the disk, because no unit test pulls a plug; tests of crashes have stores of their own.
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


class Shelf:
    def __init__(self, directory: Path) -> None:
        self._template = directory / "template.db"
        open_store(f"sqlite:///{self._template}").close()
        self._place = directory / "corral.db"
        self._database = open_sqlite(make_url(f"sqlite:///{self._place}"))

        @event.listens_for(self._database.writer, "connect")
        def hurry(connection: Any, _: Any) -> None:
            connection.execute("PRAGMA synchronous = OFF").close()

    @property
    def template(self) -> Path:
        """A file with nothing in it but the schema, to be copied."""
        return self._template

    @contextmanager
    def fresh(self) -> Iterator[SqlStore]:
        """A store with nothing in it. There is one at a time."""
        self._database.dispose()
        for side in ("", "-wal", "-shm"):
            self._place.with_name(self._place.name + side).unlink(missing_ok=True)
        shutil.copy(self._template, self._place)
        store = SqlStore(self._database)
        yield store
        store.close()
