"""Pages in Chinese: they have the blocks of the English pages, which the tests of the documentation run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documentation.pages import DOCS, ROOT, pages_with_blocks, read_page

CHINESE = DOCS / "zh"
#: The tutorial and the ten main how-tos.
MAIN = (
    "tutorial/first-jobs.md",
    "how-to/jobs/logs-and-files.md",
    "how-to/jobs/gangs.md",
    "how-to/jobs/images.md",
    "how-to/jobs/checkpoints.md",
    "how-to/scheduling/understand-the-wait.md",
    "how-to/workbenches/workbenches.md",
    "how-to/storage/volumes.md",
    "how-to/datasets/datasets.md",
    "how-to/monitoring/watch-gpus.md",
    "how-to/people/manage-people.md",
)
TRANSLATED = sorted(str(path.relative_to(CHINESE)) for path in CHINESE.rglob("*.md"))

_LINK = re.compile(r"\]\((?P<target>[^)#\s]*)(?:#(?P<anchor>[^)]*))?\)")
_ROW = re.compile(r"^(?:(?P<row>\|)|(?P<item> *(?:-|\d+\.) ))", re.MULTILINE)
_HEADING = re.compile(r"^(#+) ", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FENCED = re.compile(r"^ *(?:\d+\. +|- +)?```.*?^ *```\s*?$", re.MULTILINE | re.DOTALL)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _prose(path: Path) -> str:
    """The page without comments and blocks."""
    return _FENCED.sub("", _COMMENT.sub("", _text(path)))


def _blocks(path: Path) -> list[tuple[str, str | None, str]]:
    page = read_page(str(path.relative_to(ROOT)))
    return [(block.language, block.title, block.text) for block in page.blocks]


def _rows(path: Path) -> list[str]:
    return [found[0] for found in _ROW.finditer(_prose(path))]


def _links(path: Path) -> list[tuple[Path, str]]:
    """Page and anchor of every link that stays in the repository."""
    links = (found for found in _LINK.finditer(_prose(path)) if "://" not in found["target"])
    return [((path.parent / (link["target"] or path.name)).resolve(), link["anchor"] or "") for link in links]


def _in_chinese(target: Path) -> Path:
    translated = target.is_relative_to(DOCS) and str(target.relative_to(DOCS)) in TRANSLATED
    return CHINESE / target.relative_to(DOCS) if translated else target


@pytest.mark.parametrize("name", MAIN)
def test_the_main_pages_are_there_in_chinese_and_in_the_navigation(name: str) -> None:
    assert re.search("[\u4e00-\u9fff]", _prose(CHINESE / name))
    assert f"zh/{name}" in _text(ROOT / "mkdocs.yml")


@pytest.mark.parametrize("name", TRANSLATED)
def test_blocks_and_comments_are_those_of_the_english_page(name: str) -> None:
    assert _blocks(CHINESE / name) == _blocks(DOCS / name)
    assert _COMMENT.findall(_text(CHINESE / name)) == _COMMENT.findall(_text(DOCS / name))


@pytest.mark.parametrize("name", TRANSLATED)
def test_headings_have_the_levels_of_the_english_page(name: str) -> None:
    assert _HEADING.findall(_prose(CHINESE / name)) == _HEADING.findall(_prose(DOCS / name))


@pytest.mark.parametrize("name", TRANSLATED)
def test_tables_and_lists_have_as_many_rows_and_items_as_the_english_page(name: str) -> None:
    assert _rows(CHINESE / name) == _rows(DOCS / name)


@pytest.mark.parametrize("name", TRANSLATED)
def test_links_are_those_of_the_english_page_and_lead_to_chinese_pages_where_there_are_some(name: str) -> None:
    expected = sorted((_in_chinese(target), anchor) for target, anchor in _links(DOCS / name))
    assert sorted(_links(CHINESE / name)) == expected
    for target, anchor in expected:
        assert target.exists(), target
        if anchor and target.is_relative_to(CHINESE):
            assert f'<a id="{anchor}"></a>' in _text(target), "translated headings have other anchors"


def test_the_blocks_of_translated_pages_are_run_once() -> None:
    assert not [name for name in pages_with_blocks() if name.startswith("docs/zh/")]
