"""Stores for tests: each test gets an empty one of its own, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from corral.control.ports import Store
from corral.stores import open_store
from tests.servers.postgres import PostgresServer

DATABASES = ("sqlite", "postgresql")


@dataclass(kw_only=True)
class StorePlace:
    """An address, and the stores that a test opened there: several of them are several servers."""

    url: str
    _opened: list[Store] = field(default_factory=list)

    def open(self) -> Store:
        store = open_store(self.url)
        self._opened.append(store)
        return store

    def close(self) -> None:
        for store in self._opened:
            store.close()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated file: copying it is quicker than migrating for every test."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    open_store(f"sqlite:///{path}").close()
    return path


@pytest.fixture(scope="session")
def postgres_template(postgres_server: PostgresServer) -> str:
    name = postgres_server.create_database()
    open_store(postgres_server.url(name)).close()
    return name


@pytest.fixture(params=DATABASES)
def store_place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StorePlace]:
    if request.param == "sqlite":
        path = tmp_path / "corral.db"
        shutil.copy(request.getfixturevalue("sqlite_template"), path)
        place = StorePlace(url=f"sqlite:///{path}")
        yield place
        place.close()
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    name = server.create_database(request.getfixturevalue("postgres_template"))
    place = StorePlace(url=server.url(name))
    yield place
    place.close()
    server.drop_database(name)


@pytest.fixture(params=DATABASES)
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Nothing in it yet, not even a schema."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'corral.db'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    name = server.create_database()
    yield server.url(name)
    server.drop_database(name)


@pytest.fixture
def store(store_place: StorePlace) -> Store:
    return store_place.open()
