"""How-tos, command by command, each on a fresh server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documentation.pages import pages_with_blocks
from tests.documentation.runner import run_page

pytestmark = pytest.mark.slow

AREAS = ("jobs",)


@pytest.mark.parametrize("name", [name for area in AREAS for name in pages_with_blocks(area)])
def test_every_block_of_the_page_works(name: str, tmp_path: Path) -> None:
    run_page(name, tmp_path)
