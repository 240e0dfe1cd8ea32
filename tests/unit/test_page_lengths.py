"""Pages that people read from top to bottom stay short: a long one is split by task."""

from __future__ import annotations

from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
MOST_WORDS = 1500
#: Tables that are made from code or data, where a reader looks one line up.
TABLES = {"cli.md", "configuration-keys.md", "events.md", "seeds.md"}
PAGES = sorted(
    page
    for folder in ("how-to", "tutorial", "zh", "reference")
    for page in DOCS.glob(f"{folder}/**/*.md")
    if page.name not in TABLES
)


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(DOCS)) for page in PAGES])
def test_a_page_is_short_enough_to_be_read(page: Path) -> None:
    words = len(page.read_text(encoding="utf-8").split())

    assert words <= MOST_WORDS, f"{words} words: move sections to a page of their own"
