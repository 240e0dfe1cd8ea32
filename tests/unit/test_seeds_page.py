"""The page of requirements is current, its rows are complete, and the tests that it names exist."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.unit.scripts import load_script

ROOT = Path(__file__).parents[2]
seeds = load_script("seeds_page.py")
NAMED = sorted({test for rows in seeds.documents().values() for row in rows for test in row.tests})


@cache
def functions(path: Path) -> set[str]:
    """The tests of a file: `name`, or `Class::name`."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return found


def test_the_page_is_up_to_date() -> None:
    assert seeds.PAGE.read_text(encoding="utf-8") == seeds.page(), "run `python scripts/seeds_page.py`"


@pytest.mark.parametrize("node_id", NAMED)
def test_a_named_test_exists(node_id: str) -> None:
    path, _, name = node_id.partition("::")
    assert path.startswith("tests/"), f"{node_id}: relative to the repository, tests/…"
    assert (ROOT / path).is_file(), f"no file {path}"
    assert name.partition("[")[0] in functions(ROOT / path), f"{path} has no {name}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("requirement: a", "not a list"),
        ("- requirement: a", "needs `done_by` and `test`"),
        ("- {requirement: a, done_by: b}", "needs `done_by` and `test`"),
        ("- {done_by: b, test: c}", "`requirement` is missing"),
        ("- {requirement: a, done_by: b, tests: c}", "unknown field tests"),
        ("- {requirement: a, done_by: b, test: 5}", "fields are texts"),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "000.yaml"
    file.write_text(text)
    with pytest.raises(seeds.WrongRow, match=message):
        seeds.rows_of(file)
