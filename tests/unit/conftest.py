"""A real store for unit tests, and the number of examples that property tests generate: 100 by default, 1000 with
HYPOTHESIS_PROFILE=thorough."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from corral.control.ports import Store
    from tests.unit.control.fresh_stores import FreshStores

SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

# The default profile generates the same cases in every run, so that a failure is caused by a change of the code. The
# thorough profile generates new ones.
settings.register_profile(
    "default", max_examples=100, derandomize=True, deadline=None, suppress_health_check=SLOW_IS_FINE
)
settings.register_profile("thorough", max_examples=1000, deadline=None, suppress_health_check=SLOW_IS_FINE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_disks() -> Iterator[None]:
    """Unit tests do not test power failures, and some write hundreds of files."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="session")
def fresh_stores(tmp_path_factory: pytest.TempPathFactory) -> FreshStores:
    # Imported here: only tests that use a store wait until the database library is loaded.
    from tests.unit.control.fresh_stores import FreshStores

    return FreshStores(tmp_path_factory.mktemp("store"))


@pytest.fixture
def store(fresh_stores: FreshStores) -> Iterator[Store]:
    """An empty store for every test."""
    with fresh_stores.new() as store:
        yield store
