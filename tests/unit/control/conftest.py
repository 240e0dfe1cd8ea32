"""A real store for every test, as good as new, and a desk to work at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.control.ports import Store
from tests.unit.control.shelf import Shelf
from tests.unit.control.world import Desk


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return Shelf(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="session")
def empty_database(shelf: Shelf) -> Path:
    return shelf.template


@pytest.fixture
def store(shelf: Shelf) -> Iterator[Store]:
    with shelf.fresh() as store:
        yield store


@pytest.fixture
def desk(store: Store) -> Desk:
    return Desk(store)
