"""The threat model names the attack on each boundary: every file that it names exists, and no attack is missing."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "reference" / "threat-model.md"


def test_every_boundary_names_its_attack_and_every_attack_is_named() -> None:
    named = set(re.findall(r"`(test_\w+\.py)`", PAGE.read_text()))
    assert named == {path.name for path in (TESTS / "attacks").rglob("test_*.py")}


def test_every_decision_is_in_the_index() -> None:
    decisions = TESTS.parent / "docs" / "decisions"
    linked = re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", (decisions / "README.md").read_text())
    assert linked == sorted(path.name for path in decisions.glob("0*.md"))
