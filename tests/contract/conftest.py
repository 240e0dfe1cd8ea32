"""Engines under contract. A new engine adds its harness here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.engine_harness import LocalHarness

HARNESSES = {LocalHarness.name: LocalHarness}


@pytest.fixture(params=sorted(HARNESSES))
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalHarness]:
    harness = HARNESSES[request.param](tmp_path / "engine")
    yield harness
    harness.clean_up()
