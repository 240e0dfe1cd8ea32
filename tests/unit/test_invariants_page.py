"""The page of invariants names tests: all of them exist, and those that it calls property tests are."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "reference" / "invariants.md"
NAMED = re.findall(r"(∗ )?`([\w/]+\.py)::(\w+)`", PAGE.read_text())


@cache
def functions(path: Path) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


def is_generated(function: ast.FunctionDef) -> bool:
    return any("given" in ast.unparse(decorator) for decorator in function.decorator_list)


def test_the_page_has_rows() -> None:
    assert len(NAMED) > 50


@pytest.mark.parametrize(("mark", "path", "name"), NAMED, ids=[name for _, _, name in NAMED])
def test_named_tests_exist(mark: str, path: str, name: str) -> None:
    found = functions(TESTS / path)
    assert name in found, f"{path} has no {name}"
    assert is_generated(found[name]) == bool(mark), f"{name}: marked as a property test, or not, against what it is"
