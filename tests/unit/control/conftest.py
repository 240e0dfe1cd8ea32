"""A desk to work at, with a real store."""

from __future__ import annotations

import pytest

from corral.control.ports import Store
from tests.unit.control.copied_desks import copied_desk
from tests.unit.control.world import Desk


@pytest.fixture
def desk(store: Store) -> Desk:
    return copied_desk(store, Desk)
