"""The README, the tutorial and the pages of no area, command by command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documentation.pages import pages_with_blocks
from tests.documentation.runner import run_page

pytestmark = pytest.mark.slow

SDK = "docs/how-to/python-sdk.md"
PAGES = [name for name in pages_with_blocks() if (name.count("/") < 3 or "/tutorial/" in name) and name != SDK]


@pytest.mark.parametrize("name", PAGES)
def test_every_block_of_the_page_works(name: str, tmp_path: Path) -> None:
    run_page(name, tmp_path)


def test_the_examples_of_the_python_page_print_what_they_say(tmp_path: Path) -> None:
    lines = run_page(SDK, tmp_path).splitlines()
    assert lines[0] == "operator"
    assert re.fullmatch(r"j-\d+ (queued|starting|running)", lines[1])
    assert "now completed" in lines
    assert "completed 0" in lines
    assert "{'rate': 0.1, 'loss': 0.30000000000000004}" in lines
    assert "[0.1, 0.2, 0.3]" in lines
    assert "0.5 [1, 2]" in lines
    assert "('completed', [1, 2], 'operator')" in lines
    assert lines.count("loss 0.1") == 2, "once from `log`, once from `follow_log`"
    assert "ended: completed 0" in lines
    assert any(re.fullmatch(r"weight \d.*", line) for line in lines)
    assert any(line.startswith("not found: ") for line in lines)
    assert lines[-1].startswith("422 [('gpus', ")
