#!/usr/bin/env python3
"""Write docs/reference/seeds.md from docs/reference/seeds/NNN.yaml: requirements, and the tests that show them.

    python scripts/seeds_page.py

Each file is a list of rows:

    - section: Queues            # optional: a heading above this row and those below it
      requirement: A later job passes a waiting one only if that does not delay it.
      done_by: "`corral why`, core/scheduling/backfill/backfill.py"
      test: tests/unit/simulator/test_planned_start.py::test_one   # or a list of them
    - requirement: A job is drawn as a balloon.
      missing: No page draws balloons.

A row has either `done_by` and `test`, or `missing` with the reason; `done_by` and `test` beside `missing` say what is
already there. `make openapi` runs this script; tests/unit/test_seeds_page.py proves that the page is current and that
every named test exists.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "reference" / "seeds"
PAGE = ROOT / "docs" / "reference" / "seeds.md"

#: The title of each document, by its number.
TITLES = {
    "000": "Operating GPUs: flavors, queues, weighted order, analysis",
    "001": "Managing a GPU cluster: allocation, health, retries, alerts",
    "002": "Pools, groups and users",
    "003": "Tasks and programs that grow and shrink",
    "004": "Workbenches, training and storage",
}
FIELDS = {"section", "requirement", "done_by", "test", "missing"}

INTRODUCTION = """\
# Requirements, and the tests that show them

This page is generated from `docs/reference/seeds/*.yaml` by `make openapi`; a test fails while it is out of date, or
while a named test does not exist. Five documents describe what corral is for; each row is one requirement of a
document, what does it, and the tests that show it. **Missing** marks what corral does not do, with the reason.
"""


class Row(NamedTuple):
    requirement: str
    done_by: str
    #: pytest node ids, relative to the repository
    tests: tuple[str, ...]
    #: why nothing does it; empty if something does
    missing: str
    section: str


class WrongRow(ValueError):
    pass


def rows_of(file: Path) -> list[Row]:
    """The rows of one document; a wrong row is an error that names it."""
    rows = yaml.safe_load(file.read_text(encoding="utf-8"))
    if not isinstance(rows, list):
        raise WrongRow(f"{file.name}: not a list")
    return [_row(f"{file.name}, row {number}", row) for number, row in enumerate(rows, 1)]


def _row(place: str, row: Any) -> Row:
    if not isinstance(row, dict):
        raise WrongRow(f"{place}: not a mapping")
    if unknown := set(row) - FIELDS:
        raise WrongRow(f"{place}: unknown field {', '.join(sorted(map(str, unknown)))}")
    tests = row.get("test", [])
    texts = {field: row.get(field, "") for field in FIELDS - {"test"}}
    tests = [tests] if isinstance(tests, str) else tests
    if not isinstance(tests, list) or not all(isinstance(text, str) for text in (*texts.values(), *tests)):
        raise WrongRow(f"{place}: fields are texts, and `test` is a text or a list of texts")
    if not texts["requirement"]:
        raise WrongRow(f"{place}: `requirement` is missing")
    if not texts["missing"] and not (texts["done_by"] and tests):
        raise WrongRow(f"{place}: needs `done_by` and `test`, or `missing` with the reason")
    return Row(texts["requirement"], texts["done_by"], tuple(tests), texts["missing"], texts["section"])


def documents() -> dict[str, list[Row]]:
    """The rows of each document by its number."""
    return {file.stem: rows_of(file) for file in sorted(DATA.glob("*.yaml"))}


def page() -> str:
    found = documents()
    return "\n".join([INTRODUCTION, *_summary(found), *(line for number in found for line in _table(number, found))])


def _summary(found: dict[str, list[Row]]) -> Iterator[str]:
    yield "| document | requirements | missing |"
    yield "|---|---|---|"
    for number, rows in found.items():
        missing = sum(bool(row.missing) for row in rows)
        yield f"| {number}: {TITLES[number]} | {len(rows)} | {missing or ''} |"
    yield ""


def _table(number: str, found: dict[str, list[Row]]) -> Iterator[str]:
    yield f"## {number}: {TITLES[number]}"
    begun = False
    for row in found[number]:
        if row.section:
            yield f"\n### {number}: {row.section}" if begun else f"### {number}: {row.section}"
        if row.section or not begun:
            yield "| requirement | done by | shown by |"
            yield "|---|---|---|"
        begun = True
        yield f"| {_cell(row.requirement)} | {_cell(_answer(row))} | {'<br>'.join(map(_test, row.tests))} |"
    yield ""


def _answer(row: Row) -> str:
    return f"{row.done_by} **Missing**: {row.missing}".strip() if row.missing else row.done_by


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _test(node_id: str) -> str:
    """As on the page of invariants, without the folder of all tests."""
    return f"`{node_id.removeprefix('tests/')}`"


def main() -> None:
    try:
        PAGE.write_text(page(), encoding="utf-8")
    except WrongRow as wrong:
        sys.exit(str(wrong))


if __name__ == "__main__":
    main()
