"""A real store for every test, copied from one that is made once, and a desk to work at."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.control.ports import Store
from corral.stores import open_store
from tests.unit.control.world import Desk


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "corral.db"
    open_store(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def store(empty_database: Path, tmp_path: Path) -> Iterator[Store]:
    shutil.copy(empty_database, tmp_path / "corral.db")
    store = open_store(f"sqlite:///{tmp_path}/corral.db")
    yield store
    store.close()


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store)
